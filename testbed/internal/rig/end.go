package rig

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rhizodat/rhizodat-go/internal/chserver"
	"github.com/rhizodat/rhizodat-go/internal/pgserver"
)

// ExitLeftOut is the exit code of all scripts for a part that this machine lacks.
const ExitLeftOut = 4

// End tells how a program ended that has put its figures on the board, and gives its
// exit code. err is of the program as a whole; leftOut are the parts that it went
// without.
func (b *Board) End(program string, leftOut []string, err error) int {
	return b.end(os.Stdout, os.Stderr, program, leftOut, err)
}

func (b *Board) end(out, problems io.Writer, program string, leftOut []string, err error) int {
	switch {
	case errors.Is(err, pgserver.ErrNoServer), errors.Is(err, chserver.ErrNoServer):
		leftOut = []string{err.Error()}
	case err != nil:
		_, _ = fmt.Fprintln(problems, program+":", err) // the exit code says it, too
		return 1
	case b.ExitCode() != 0 || len(leftOut) == 0:
		return b.ExitCode()
	}
	_, _ = fmt.Fprintln(out, "left out:", strings.Join(leftOut, "; ")) // as above
	return ExitLeftOut
}
