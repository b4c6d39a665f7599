package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Begin opens a branch, in one message. It returns driver.ErrBadConn where the
// session turned out to be lost: nothing has happened yet.
func (s *Session) Begin(ctx context.Context, opts branches.BeginOptions) (branches.Branch, error) {
	if s.branch != nil {
		return nil, s.store.fail("begin branch", errBranchOpen)
	}
	if !s.Usable() {
		return nil, driver.ErrBadConn
	}
	text, err := beginText(opts)
	if err != nil {
		return nil, err
	}
	message := []part{{text: text}}
	if bound := s.store.opts.LockTimeout; opts.Shared && bound > 0 {
		message = append(message, boundLocks(bound))
	}
	if _, err := s.send(ctx, message...); err != nil {
		return nil, s.notBegun(ctx, err)
	}
	s.branch = &Branch{session: s, begunReadOnly: opts.ReadOnly}
	return s.branch, nil
}

// notBegun ends what a failed BEGIN left and says whether another session may
// be tried.
func (s *Session) notBegun(ctx context.Context, err error) error {
	if answered(err) {
		if s.client().PgConn().TxStatus() != statusIdle {
			_, _ = s.client().Exec(ctx, "rollback") // else Usable tells
		}
		return err
	}
	_ = s.conn.Close() // the error at hand says more
	if ctx.Err() != nil {
		return err
	}
	return driver.ErrBadConn
}

// beginText maps isolation levels as pgx's stdlib does.
func beginText(opts branches.BeginOptions) (string, error) {
	text := "begin"
	switch level := sql.IsolationLevel(opts.Isolation); level { //nolint:exhaustive // the others are refused
	case sql.LevelDefault:
	case sql.LevelReadUncommitted:
		text += " isolation level " + string(pgx.ReadUncommitted)
	case sql.LevelReadCommitted:
		text += " isolation level " + string(pgx.ReadCommitted)
	case sql.LevelRepeatableRead, sql.LevelSnapshot:
		text += " isolation level " + string(pgx.RepeatableRead)
	case sql.LevelSerializable:
		text += " isolation level " + string(pgx.Serializable)
	default:
		return "", fmt.Errorf("unsupported isolation: %v", level)
	}
	if opts.ReadOnly {
		text += " " + string(pgx.ReadOnly)
	}
	return text, nil
}

// boundLocks bounds the branch's waits for locks: two stores can deadlock with
// each other unseen by either server, for ever. It belongs to the message of
// BEGIN, since a later SET LOCAL is undone by ROLLBACK TO an earlier savepoint.
// A smaller bound of the session's own stays.
func boundLocks(bound time.Duration) part {
	ms := literalInt(max(bound.Milliseconds(), 1))
	const own = "pg_catalog.current_setting('lock_timeout')::pg_catalog.interval"
	return part{text: "SELECT pg_catalog.set_config('lock_timeout','" + ms + "',true)" +
		" WHERE " + own + " NOT BETWEEN '1ms' AND '" + ms + "ms'"}
}

// maybeReadOnly reports whether the branch's transaction may be read-only, and
// whether that is certain. An INSERT in such a transaction would fail it.
func (b *Branch) maybeReadOnly() (may, certain bool) {
	switch {
	case b.modeNamed:
		return true, false
	case b.begunReadOnly:
		return true, true
	}
	// Reported by PostgreSQL 14 and newer; where it is not, it may be on.
	return b.session.client().PgConn().ParameterStatus("default_transaction_read_only") != "off", false
}
