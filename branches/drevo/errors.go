package drevo

import (
	"errors"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
)

// Error is what this package adds to an error of drevo: the store, what was being
// done, and where it is known the cause and the way out. The driver's own error
// stays findable with errors.As.
type Error struct {
	Store string
	Doing string // "prepare branch"
	Cause string // what it means; empty where the server's words say it
	Way   string // the way out; empty where there is none to name
	Err   error  // may be nil where Cause is the whole story

	kind  branches.Kind
	known bool // kind was decided where the error was met
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("rhizodat: " + e.Doing + ": store " + e.Store)
	if e.Cause != "" {
		b.WriteString(": " + e.Cause)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Way != "" {
		b.WriteString(" (" + e.Way + ")")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Kind is the error's kind for the whole unit.
func (e *Error) Kind() branches.Kind {
	if e.known {
		return e.kind
	}
	return classify(e.Err)
}

// because states the error's kind where the code alone does not tell it.
func (e *Error) because(kind branches.Kind) *Error {
	e.kind, e.known = kind, true
	return e
}

// StatementError is a statement that a unit cannot hold, or an argument that drevo
// cannot take. It has not reached the server, and the unit goes on without it.
type StatementError struct {
	Store  string
	Reason string
	Way    string
}

func (e *StatementError) Error() string {
	text := "rhizodat: run statement: store " + e.Store + ": " + e.Reason
	if e.Way != "" {
		text += " (" + e.Way + ")"
	}
	return text
}

// Kind of a refused statement.
func (e *StatementError) Kind() branches.Kind { return branches.Permanent }

var (
	errBranchOpen = errors.New("a branch is open on this session")
	errNoTime     = errors.New("the unit has no dat_tx_time") // a marker of 0 is a tombstone
	errNoContext  = errors.New("rhizodat: run statement: call it with a context")
	errUncounted  = errors.New("rhizodat: count rows: drevo tells no counters: return what is to be known, as in RETURN count(n)")
)

// fail wraps what went wrong with the store's name, and names the way out of what
// only a person can mend.
func (s *Store) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Store == s.name {
		return err // it says so already
	}
	wrapped := &Error{Store: s.name, Doing: doing, Err: err}
	switch {
	case bolt.IsFull(err):
		wrapped.Way = "make room on the server's disk and restart drevo: until then it refuses every write"
	case bolt.IsWALFailure(err):
		wrapped.Way = "restart drevo: after a failed write of its log it refuses every write"
		return wrapped.because(s.Classify(err))
	case bolt.Code(err) == bolt.CodeNoGraph:
		wrapped.Way = "make the graph: POST /databases on drevo's HTTP port"
	}
	return wrapped
}

// refuse is a PERMANENT error with a way out.
func (s *Store) refuse(doing, cause, way string) error {
	return (&Error{Store: s.name, Doing: doing, Cause: cause, Way: way}).because(branches.Permanent)
}
