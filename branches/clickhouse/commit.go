package clickhouse

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Commit ends the branch in one phase. With a marker it does what Finish does,
// once and without repair: what goes wrong half-way is not mended but given up,
// by Settle. Without one it is the client's insert and nothing else.
func (b *Branch) Commit(ctx context.Context) error {
	defer b.leave()
	s := b.session.store
	if err := b.Doomed(); err != nil {
		return err
	}
	if b.buffer.empty() {
		return nil
	}
	if !b.staged {
		sealed, err := b.buffer.payload()
		if err != nil {
			return s.fail("commit branch", err)
		}
		b.payload = sealed
	}
	if !b.unit.Marker {
		return s.fail("commit branch", s.plain(ctx, b))
	}
	return b.commitMarked(ctx)
}

// commitMarked inserts and marks. An error is "unknown" unless it is proved that
// no row is there and none will come.
func (b *Branch) commitMarked(ctx context.Context) error {
	s := b.session.store
	r := newRun(branches.NewGID(b.txn, s.name), b.txn, b.unit.TxTime, b.payload)
	if err := s.insertEvery(ctx, r); err != nil {
		return s.given(ctx, r, err)
	}
	fate, err := s.markWhole(ctx, r)
	switch {
	case err != nil:
		return branches.Unknown(s.fail("commit branch", err))
	case fate == branches.FateNever:
		return s.given(ctx, r, s.stands("commit branch", fate))
	case fate == branches.FateAbsent:
		return s.given(ctx, r, s.busy("commit branch", "a table does not hold the rows that were inserted", nil))
	}
	return nil
}

// given says what an error of a commit proves. The server has answered, no
// attempt runs and no row is there: nothing took effect. Anything else is settled
// by the caller.
func (s *Store) given(ctx context.Context, r *run, err error) error {
	wrapped := s.fail("commit branch", err)
	own := errors.As(err, new(*branches.Error))
	if ctx.Err() != nil || !answered(err) && !own {
		return branches.Unknown(wrapped)
	}
	for _, b := range r.batches {
		if s.quiet(ctx, r.gid, s.settlePatience()) != nil {
			return branches.Unknown(wrapped)
		}
		seen, countErr := s.count(ctx, b.name, r.txn)
		if seen.rows > 0 && seen.fate == branches.FateNever {
			// Whoever gave the unit up takes them out too; the caller need not wait.
			if seen.rows = 0; s.clearTable(ctx, r.gid, r.txn, b.name) != nil {
				return branches.Unknown(wrapped)
			}
		}
		if countErr != nil && code(countErr) != codeUnknownTable || seen.rows > 0 {
			return branches.Unknown(wrapped)
		}
	}
	if own {
		return err
	}
	return wrapped
}
