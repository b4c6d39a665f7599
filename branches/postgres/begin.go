package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Begin opens a branch, in one message, or puts that off to the branch's first
// statement (opening.go). It returns driver.ErrBadConn where the session turned
// out to be lost: nothing has happened yet.
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
	b := &Branch{session: s, begunReadOnly: opts.ReadOnly}
	if opts.Shared && s.store.opts.LockTimeout > 0 {
		b.opening = text
	} else if _, err = s.client().Exec(ctx, text); err != nil { // as pgx does: the single store's own way
		return nil, s.notBegun(ctx, err)
	}
	if !s.mayDelay() {
		if err := b.begin(ctx); err != nil {
			return nil, err
		}
	}
	s.branch = b
	return b, nil
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

// beginBounded begins and bounds the branch's waits for locks: two stores can
// deadlock with each other unseen by either server, for ever. The bound belongs
// to the message of BEGIN, since a later SET LOCAL is undone by ROLLBACK TO an
// earlier savepoint; and it is no SELECT, whose snapshot would leave the
// application no SET TRANSACTION. A smaller bound of the session's own stays:
// SHOW tells it, and where it is not what the last branch saw, one more message
// puts it back.
func (s *Session) beginBounded(ctx context.Context, text string) error {
	if s.bound == "" {
		s.bound = setBound(s.store.opts.LockTimeout)
	}
	got, err := s.send(ctx, part{text: text}, part{text: showBound}, part{text: s.bound})
	if err != nil {
		return err
	}
	return s.boundBy(ctx, got.cell(1, 0))
}

const showBound = "SHOW lock_timeout"

// boundBy bounds the branch by the smaller of ours and the session's own.
func (s *Session) boundBy(ctx context.Context, shown string) error {
	bound := s.store.opts.LockTimeout
	if own := parseSetting(shown); own > 0 {
		bound = min(bound, own)
	}
	wanted := setBound(bound)
	s.bounded = true
	if wanted == s.bound {
		return nil
	}
	s.bound = wanted
	_, err := s.send(ctx, part{text: wanted})
	return err
}

func setBound(bound time.Duration) string {
	return "SET LOCAL lock_timeout=" + literalInt(max(bound.Milliseconds(), 1))
}

// parseSetting reads a time as SHOW prints it: 0, 500ms, 3s, 1min, 2h, 1d. What
// it cannot read is no bound.
func parseSetting(text string) time.Duration {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	n, _ := strconv.ParseInt(digits, 10, 32)
	return time.Duration(n) * settingUnits[text[len(digits):]]
}

// The units of https://www.postgresql.org/docs/current/config-setting.html;
// lock_timeout is in milliseconds, which is what a bare number means.
var settingUnits = map[string]time.Duration{
	"": time.Millisecond, "ms": time.Millisecond, "s": time.Second,
	"min": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
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
