package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

const tagPrepare = "PREPARE TRANSACTION"

// Prepare is S5, and S3 too where Stage left it to this message. Its answer is
// believed by the command tag alone. After it the session is idle and free for
// the next unit.
func (b *Branch) Prepare(ctx context.Context, gid branches.GID) error {
	if b.vote == branches.VoteReadOnly {
		return b.alive(ctx)
	}
	literal, err := literalGID(gid)
	if err != nil {
		return err
	}
	defer b.leave()
	s := b.session
	s.unsynced = false
	got, err := b.sendPrepare(ctx, part{text: "PREPARE TRANSACTION " + literal, once: true})
	switch {
	case err == nil && got.last() != tagPrepare && !guard.Off(guard.Tag):
		// The transaction had failed unseen; the server has rolled it back.
		return s.store.fail("prepare branch", &aborted{b.doom})
	case err == nil && b.unmarked(got):
		return branches.Unknown(b.stageError(errMarkerRefused)) // to be rolled back by its gid
	case err == nil && s.unsynced:
		// The tag is the normal one, and the standby does not have it.
		return branches.Unknown(s.store.fail("prepare branch", errUnsynced))
	case err == nil:
		return nil
	case answered(err):
		b.cleanUp(ctx)
		return b.prepareError(err)
	case unsent(err):
		_ = s.conn.Close() // which rolls back: nobody has prepared it
		return s.store.fail("prepare branch", err)
	}
	return branches.Unknown(s.store.fail("prepare branch", err))
}

// sendPrepare sends PREPARE, behind the work of S3 if that is still to be done.
func (b *Branch) sendPrepare(ctx context.Context, prepare part) (answers, error) {
	if b.marker == nil {
		return ask(ctx, b.session.client(), prepare.text)
	}
	names, err := b.session.store.known(ctx)
	if err != nil {
		return nil, err
	}
	got, err := b.session.send(ctx,
		part{text: checkConstraints},
		part{text: forced + roleLeft},
		names.mark(*b.marker, "", ""),
		prepare)
	b.elsewhere = got.cell(1, 2) != "none"
	return got, err
}

// unmarked is true of a prepared transaction whose marker a trigger or a rule
// suppressed. It must not be committed, for nothing would prove that it was.
func (b *Branch) unmarked(got answers) bool { return b.marker != nil && got.affected(2) != 1 }

// prepareError says what an answered error of PREPARE's message means: it is
// that of PREPARE, or of the work of S3 before it. The branch is rolled back.
func (b *Branch) prepareError(err error) error {
	switch code(err) {
	case codeNotSupported, codeNotInState, codeOutOfMemory:
		return b.session.store.explainPrepare(err)
	}
	if b.marker != nil {
		return b.stageError(err)
	}
	return b.session.store.explainPrepare(err)
}

var errUnsynced = errors.New("the server gave up waiting for synchronous replication")

// alive proves that the session of a branch that wrote nothing, and with it the
// locks that guard the unit, is still there.
func (b *Branch) alive(ctx context.Context) error {
	if err := b.session.client().Ping(ctx); err != nil {
		b.session.failed(err)
		return b.session.store.fail("ping branch", lostSession(err))
	}
	return b.Doomed()
}

// cleanUp leaves the failed state that an error outside of the end itself left.
func (b *Branch) cleanUp(ctx context.Context) {
	if b.session.dead() || b.session.client().PgConn().TxStatus() == statusIdle {
		return
	}
	if _, err := b.session.client().Exec(ctx, "rollback"); err != nil {
		_ = b.session.conn.Close() // which rolls back
	}
}

// explainPrepare says what an answered PREPARE means. The branch is rolled
// back already.
func (s *Store) explainPrepare(err error) error {
	pgErr := serverError(err)
	switch {
	case pgErr.Code == codeNotSupported:
		return s.refusePrepare(err)
	case pgErr.Code == codeNotInState:
		return &branches.Error{Store: s.name, Doing: "prepare branch", Err: errors.Join(ErrPreparedDisabled, err), Asks: branches.Permanent}
	case pgErr.Code == codeOutOfMemory && slotsUsedUp(err):
		return &branches.Error{
			Store: s.name, Doing: "prepare branch", Err: err, Cause: "all slots for prepared transactions are in use",
			Way:  "raise max_prepared_transactions; rhizorecover status shows who holds them",
			Asks: branches.Transient,
		}
	}
	return s.fail("prepare branch", err)
}

// slotsUsedUp tells the lack of slots from the lack of memory: both are 53200.
func slotsUsedUp(err error) bool {
	pgErr := serverError(err)
	return pgErr != nil && pgErr.Code == codeOutOfMemory && pgErr.File == "twophase.c"
}

// The causes for which PostgreSQL refuses to prepare with 0A000. Known by the
// routine that raised it, since the text is translated.
var refusals = map[string]struct{ cause, way string }{
	"AtPrepare_Notify":   {"LISTEN, UNLISTEN or NOTIFY (also from a trigger)", "notify in a transaction of its own, or keep the unit to this store"},
	"PrepareTransaction": {"a temporary table, even only read, or an exported snapshot", "use an ordinary table, or keep the unit to this store"},
	"PreCommit_Portals":  {"a cursor WITH HOLD", "close it first, or use one without hold"},
	"CheckForSessionAndXactLocks": {
		"session-level and transaction-level advisory locks on one key", "use one of the two kinds",
	},
	"AtPrepare_Locks": {
		"session-level and transaction-level advisory locks on one key", "use one of the two kinds",
	},
	"pgfdw_xact_callback": {"a foreign table of postgres_fdw", "make the other database a store of its own"},
}

func (s *Store) refusePrepare(err error) error {
	known, ok := refusals[serverError(err).Routine]
	if !ok {
		known.cause = "something that cannot be prepared"
	}
	return s.refuse(known.cause, known.way, err)
}

func (s *Store) refuseNotify(err error) error {
	known := refusals["AtPrepare_Notify"]
	return s.refuse(known.cause, known.way, err)
}

func (s *Store) refuse(cause, way string, err error) error {
	return &branches.Error{
		Store: s.name, Doing: "prepare branch", Err: err, Way: way,
		Cause: fmt.Sprintf("%s in a unit of several stores", cause),
		Asks:  branches.Permanent,
	}
}
