package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

const (
	tagCommit   = "COMMIT"
	tagRollback = "ROLLBACK"
)

// Commit ends the branch in one phase. A marker that Stage put off goes in the
// same message.
func (b *Branch) Commit(ctx context.Context) error {
	if b.marker != nil {
		return b.commitMarked(ctx)
	}
	defer b.leave()
	tag, err := b.session.client().Exec(ctx, "commit")
	if err == nil && tag.String() == tagRollback && !guard.Off(guard.Tag) {
		if b.plain || b.vote == 0 {
			return pgx.ErrTxCommitRollback // as pgx says it
		}
		return &aborted{b.doom}
	}
	return b.committed(ctx, err)
}

// commitMarked writes the marker in the message of COMMIT.
//
// A COMMIT behind other statements is not held back by a statement that
// answers with 0 rows, only by one that raises. So a marker that was
// suppressed (a trigger, a rule) raises by a division, else a lost reply would
// later be settled as "never". The deferred constraints speak first, under the
// application's role.
func (b *Branch) commitMarked(ctx context.Context) error {
	defer b.leave()
	names, err := b.session.store.known(ctx)
	if err != nil {
		_ = b.session.conn.Close() // which rolls back
		return b.session.store.fail("commit branch", err)
	}
	condition := hasEffect
	if b.marker.Notice || b.wrote {
		condition = "true"
	}
	got, err := b.session.send(ctx,
		part{text: checkConstraints},
		part{text: leaveRole},
		names.mark(*b.marker, "WITH marker AS (", " WHERE "+condition+" RETURNING dat_txn)"+
			" SELECT 1/CASE WHEN EXISTS (SELECT FROM marker)"+
			" OR pg_catalog.pg_current_xact_id_if_assigned() IS NULL THEN 1 ELSE 0 END"),
		part{text: "COMMIT"})
	if err == nil && got.last() != tagCommit && !guard.Off(guard.Tag) {
		return &aborted{b.doom}
	}
	if err != nil && code(err) == codeDivisionByZero && serverError(err).Where == "" {
		b.cleanUp(ctx)
		return b.stageError(errMarkerRefused)
	}
	if err != nil && answered(err) {
		b.cleanUp(ctx)
		return b.stageError(err)
	}
	return b.committed(ctx, err)
}

// committed says what an error of COMMIT proves. An answer is an answer; what
// was not sent did nothing, once its session is gone; the rest is unknown.
func (b *Branch) committed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case answered(err):
		b.cleanUp(ctx)
	case unsent(err):
		_ = b.session.conn.Close() // which rolls back
	default:
		_ = b.session.conn.Close() // whatever it does, it serves no other unit
		return branches.Unknown(err)
	}
	return err
}
