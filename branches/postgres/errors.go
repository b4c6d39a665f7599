package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
)

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
