package rig

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/pgserver"
)

func TestEnd(t *testing.T) {
	whole, short := NewBoard(io.Discard), NewBoard(io.Discard)
	whole.Exactly("a", 1, 1)
	short.Exactly("a", 1, 2)
	for _, test := range []struct {
		name          string
		board         *Board
		leftOut       []string
		err           error
		code          int
		out, problems string
	}{
		{"all is well", whole, nil, nil, 0, "", ""},
		{"a short figure", short, nil, nil, 1, "", ""},
		{"a part is missing", whole, []string{"x", "y"}, nil, 4, "left out: x; y\n", ""},
		{"a short figure counts more", short, []string{"x"}, nil, 1, "", ""},
		{"no server", whole, nil, fmt.Errorf("start: %w", pgserver.ErrNoServer), 4, "left out: start: " + pgserver.ErrNoServer.Error() + "\n", ""},
		{"an error", whole, []string{"x"}, errors.New("broken"), 1, "", "prog: broken\n"},
	} {
		var out, problems strings.Builder
		code := test.board.end(&out, &problems, "prog", test.leftOut, test.err)
		if code != test.code || out.String() != test.out || problems.String() != test.problems {
			t.Errorf("%s: %d, %q, %q", test.name, code, out.String(), problems.String())
		}
	}
}
