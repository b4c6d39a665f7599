package clickhouse

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Error is what this package adds to an error of ClickHouse: the store, what was
// being done, and where it is known the cause and the way out. The client's own
// error stays findable with errors.As.
type Error struct {
	Store string
	Doing string // "stage branch"
	Cause string // what it means; empty where the server's words say it
	Way   string // the way out; empty where there is none to name
	Err   error  // may be nil where Cause is the whole story

	kind   branches.Kind
	known  bool // kind was decided where the error was met
	person bool // no further try mends it
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

// ValueError is a value that its column cannot hold. It is PERMANENT, and leaves
// nothing of its statement behind.
type ValueError struct {
	Table, Column, Type string
	Value               any
	Err                 error
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("rhizodat: insert into %s: column %s of type %s: value %s: %s", e.Table, e.Column, e.Type, shown(e.Value), e.Err)
}

func (e *ValueError) Unwrap() error { return e.Err }

// Kind of a refused value.
func (e *ValueError) Kind() branches.Kind { return branches.Permanent }

// shown is a value for an error's text: enough to find it, not all of it.
func shown(v any) string {
	const most = 64
	if v == nil {
		return "NULL"
	}
	text := fmt.Sprintf("%v", v)
	if _, isText := v.(string); isText {
		text = fmt.Sprintf("%q", v)
	}
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// StatementError is a statement that a unit cannot hold. It has not reached the
// server, and the unit goes on without it.
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

// ErrTooLarge says that a unit holds more than max_payload.
var ErrTooLarge = errors.New("rhizodat: buffer rows: the unit's rows are larger than max_payload")

// fail wraps what went wrong with the store's name.
func (s *Store) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if missing(err) {
		err = errors.Join(branches.ErrNotInstalled, err)
	}
	return &Error{Store: s.name, Doing: doing, Err: err}
}

// refuse is a PERMANENT error with a way out.
func (s *Store) refuse(doing, cause, way string) error {
	return (&Error{Store: s.name, Doing: doing, Cause: cause, Way: way}).because(branches.Permanent)
}

// busy is a TRANSIENT error: the next try may find it otherwise.
func (s *Store) busy(doing, cause string, err error) error {
	return (&Error{Store: s.name, Doing: doing, Cause: cause, Err: err}).because(branches.Transient)
}
