package journal_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rhizodat/rhizodat-go/journal"
)

// What says itself what it is of is not said again; everything else is, once.
func TestWrap(t *testing.T) {
	plain := errors.New("connection reset")
	for name, own := range map[string]error{
		"conflict": &journal.Conflict{}, "drift": &journal.Drift{}, "layout": &journal.Layout{},
		"fenced": &journal.Fenced{}, "superseded": &journal.Superseded{}, "unfit": &journal.Unfit{},
		"not found": journal.ErrNotFound, "full": journal.ErrFull, "joined": errors.Join(plain, journal.ErrFull),
	} {
		if got := journal.Wrap("read journal", own); got != own { //nolint:errorlint // the value itself
			t.Errorf("%s: %v, want it as it is", name, got)
		}
	}
	err := journal.Wrap("read journal", plain)
	if want := "rhizodat: read journal: connection reset"; err.Error() != want || !errors.Is(err, plain) {
		t.Errorf("says %q, want %q around its cause", err, want)
	}
	if inner := fmt.Errorf("x: %w", journal.ErrNotFound); !errors.Is(journal.Wrap("read journal", inner), journal.ErrNotFound) {
		t.Error("a wrapped word is lost")
	}
	if journal.Wrap("read journal", nil) != nil {
		t.Error("nothing is an error")
	}
}
