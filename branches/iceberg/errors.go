package iceberg

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/catalogs"
)

// Error is what this package adds to an error of the catalog or the warehouse: the
// store, what was being done, and where it is known the cause and the way out. The
// library's own error stays findable with errors.As. Its text shows no secret of
// the DSN.
type Error struct {
	Store string
	Doing string // "stage branch"
	Cause string // what it means; empty where the library's words say it
	Way   string // the way out; empty where there is none to name
	Err   error  // may be nil where Cause is the whole story

	kind    branches.Kind
	known   bool // kind was decided where the error was met
	secrets []string
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
	text := b.String()
	for _, secret := range e.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Kind is the error's kind for the whole unit.
func (e *Error) Kind() branches.Kind {
	if e.known {
		return e.kind
	}
	return classify(e.Err)
}

// because states the error's kind where the error alone does not tell it.
func (e *Error) because(kind branches.Kind) *Error {
	e.kind, e.known = kind, true
	return e
}

// StatementError is a statement that a unit cannot hold. It has changed nothing,
// and the unit goes on without it.
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

// ValueError is a value that the table cannot hold where it would go. It is
// PERMANENT, and leaves nothing of its statement behind.
type ValueError struct {
	Table, Column string
	Reason        string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("rhizodat: write into %s: column %s: %s", e.Table, e.Column, e.Reason)
}

// Kind of a refused value.
func (e *ValueError) Kind() branches.Kind { return branches.Permanent }

// fail wraps what went wrong with the store's name. What has it already stays as
// it is.
func (s *Store) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*Error](err); ok && own.Store == s.name {
		return err
	}
	if errors.Is(err, catalogs.ErrMissing) {
		err = errors.Join(branches.ErrNotInstalled, err)
	}
	return &Error{Store: s.name, Doing: doing, Err: err, secrets: s.to.secrets}
}

// refuse is a PERMANENT error with a way out.
func (s *Store) refuse(doing, cause, way string) error {
	return (&Error{Store: s.name, Doing: doing, Cause: cause, Way: way, secrets: s.to.secrets}).because(branches.Permanent)
}

// busy is a TRANSIENT error: the next try may find it otherwise.
func (s *Store) busy(doing, cause string, err error) error {
	return (&Error{Store: s.name, Doing: doing, Cause: cause, Err: err, secrets: s.to.secrets}).because(branches.Transient)
}
