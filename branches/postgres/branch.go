package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Branch is one transaction, from BEGIN to its end.
type Branch struct {
	session *Session

	opening       string // BEGIN, still to be sent; empty once it was
	begunReadOnly bool
	modeNamed     bool  // a statement may have changed the access mode
	wrote         bool  // a command tag says so
	doom          error // the first error that failed the transaction

	vote      branches.Vote
	marker    *branches.Unit // the marker is still to be written, by Commit
	plain     bool           // no marker at all: pgx itself
	elsewhere bool           // the session has a role set: it cannot finish
}

var (
	_ branches.Branch      = (*Branch)(nil)
	_ branches.Writer      = (*Branch)(nil)
	_ branches.Savepointer = (*Branch)(nil)
)

var errBranchOpen = errors.New("a branch is open on this session")

// Wrote reports whether a command tag has shown a written row. Stage then votes
// VotePrepare whatever the server says. A temporary table can be written in a
// read-only transaction, which cannot hold a marker: that proves nothing.
func (b *Branch) Wrote() bool {
	may, _ := b.maybeReadOnly()
	return b.wrote && !may
}

// Doomed returns why the branch cannot commit, or nil. The error of the
// statement that failed it is found in it, and pgx.ErrTxCommitRollback.
func (b *Branch) Doomed() error {
	if b.session.dead() {
		return b.session.store.fail("use branch", lostSession(b.doom))
	}
	switch status := b.session.client().PgConn().TxStatus(); {
	case status == statusOpen, status == statusIdle && !b.Begun():
		return nil
	case status == statusFailed:
		return &aborted{b.doom}
	}
	return b.session.store.fail("use branch", ErrBranchOver)
}

// Savepoint sets a savepoint.
func (b *Branch) Savepoint(ctx context.Context, name string) error {
	return b.exec(ctx, "savepoint "+quote(name))
}

// RollbackTo rolls back to a savepoint, which clears the doom of every
// statement since.
func (b *Branch) RollbackTo(ctx context.Context, name string) error {
	if err := b.exec(ctx, "rollback to savepoint "+quote(name)); err != nil {
		return err
	}
	// What was written may be gone with it: only the server knows now.
	b.wrote, b.doom = false, nil
	return nil
}

// Release releases a savepoint.
func (b *Branch) Release(ctx context.Context, name string) error {
	return b.exec(ctx, "release savepoint "+quote(name))
}

// Rollback rolls the transaction back. A session on which that fails is closed,
// which does the same.
func (b *Branch) Rollback(ctx context.Context) error {
	defer b.leave()
	if b.session.dead() || !b.Begun() || b.session.client().PgConn().TxStatus() == statusIdle {
		return nil
	}
	if _, err := b.session.client().Exec(ctx, "rollback"); err != nil {
		_ = b.session.conn.Close() // the error at hand says more
		return err
	}
	return nil
}

func (b *Branch) exec(ctx context.Context, text string) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	_, err := b.session.client().Exec(ctx, text)
	if err != nil {
		b.session.failed(err)
	}
	return err
}

// leave gives the session back: it belongs to no branch.
func (b *Branch) leave() {
	if b.session.branch == b {
		b.session.branch = nil
	}
}

// sees is told of every statement before it is sent. A nil Branch is a
// statement outside of any.
func (b *Branch) sees(query string) {
	if b != nil && !b.modeNamed && namesMode(query) {
		b.modeNamed = true
	}
}

// did is told of every command tag.
func (b *Branch) did(tag pgconn.CommandTag) {
	if b == nil || b.wrote || tag.RowsAffected() == 0 {
		return
	}
	b.wrote = tag.Insert() || tag.Update() || tag.Delete() || strings.HasPrefix(tag.String(), "MERGE ")
}

// asks is told of every statement that returned rows, whose tag stdlib keeps.
// An INSERT … RETURNING that hit no row is then prepared for nothing; to wait
// for S3's answer in every one that did would cost more.
func (b *Branch) asks(query string) {
	if b != nil && !b.wrote {
		b.wrote = writes(query)
	}
}

// lostSession is the cause of a session's end, where it is known.
func lostSession(cause error) error {
	if cause == nil {
		return errSessionLost
	}
	return &sessionLost{cause}
}

var errSessionLost = errors.New("its session is lost")

// sessionLost is what a branch says whose session broke under a statement.
type sessionLost struct{ cause error }

func (e *sessionLost) Error() string   { return errSessionLost.Error() + ": " + e.cause.Error() }
func (e *sessionLost) Unwrap() []error { return []error{errSessionLost, e.cause} }
