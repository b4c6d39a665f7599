package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Error is what this package adds to an error of PostgreSQL: the store, what
// was being done, and where it is known the cause and the way out. The server's
// own error stays findable with errors.As.
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

// because states the error's kind where the SQLSTATE alone does not tell it.
func (e *Error) because(kind branches.Kind) *Error {
	e.kind, e.known = kind, true
	return e
}

// ErrPreparedDisabled says that the server has no slots for prepared transactions, so
// the store cannot take part in a unit of several stores.
var ErrPreparedDisabled = errors.New("rhizodat: prepared transactions are disabled: set max_prepared_transactions in postgresql.conf and restart the server")

// ErrBranchOver says that the branch's transaction was ended by text that the driver did
// not see.
var ErrBranchOver = errors.New("rhizodat: use branch: its transaction is over")

// aborted is the error of a branch whose transaction a statement has failed:
// PostgreSQL answers its COMMIT with ROLLBACK. Like pgx's own it satisfies
// errors.Is(err, pgx.ErrTxCommitRollback), and the statement's error stays
// findable.
type aborted struct{ cause error }

func (e *aborted) Error() string {
	if e.cause == nil {
		return pgx.ErrTxCommitRollback.Error()
	}
	return pgx.ErrTxCommitRollback.Error() + ": " + e.cause.Error()
}

func (e *aborted) Unwrap() []error {
	if e.cause == nil {
		return []error{pgx.ErrTxCommitRollback}
	}
	return []error{pgx.ErrTxCommitRollback, e.cause}
}

// Kind is that of the statement that failed.
func (e *aborted) Kind() branches.Kind { return classify(e.cause) }
