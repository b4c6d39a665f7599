package iceberg

import (
	"context"
	"errors"
	"time"

	"github.com/apache/iceberg-go/catalog"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Finish is S9 from any process. nil is a snapshot of the unit in every table of
// the payload.
func (s *Store) Finish(ctx context.Context, ref branches.Ref) error {
	changes, err := change.DecodePayload(ref.Payload)
	switch {
	case err != nil:
		return s.fail("finish branch", err)
	case ref.TxTime <= 0:
		return s.fail("finish branch", errNoTime)
	}
	mark := change.Mark{Txn: ref.Txn, Time: ref.TxTime}
	var errs []error
	var lost *branches.Heuristic
	for _, c := range changes {
		err := s.commitTable(ctx, c, mark, true)
		if proof := never(err); proof != "" {
			lost = &branches.Heuristic{Store: ref.Store, GID: ref.GID, Evidence: "table " + name(c.Table) + ": " + proof}
			continue
		}
		errs = append(errs, s.misfit("finish branch", c.Table, err))
	}
	// A heuristic outcome is final, so the other tables come first.
	if err := errors.Join(errs...); err != nil {
		return s.fail("finish branch", err)
	}
	if lost != nil {
		return lost
	}
	return nil
}

// commitTable is the commit sequence of one table, under its lock. The data files
// were written before, outside of it.
func (s *Store) commitTable(ctx context.Context, c *change.Change, mark change.Mark, decided bool) error {
	done, err := s.turn(ctx, c.Table, decided)
	if err != nil {
		return err
	}
	defer done()
	return s.finisher.Finish(ctx, c, mark, decided)
}

// never is why a change can never be committed, and empty where that is not proved.
func never(err error) string {
	if branches.IsUnknown(err) {
		return ""
	}
	for _, proof := range []error{change.ErrGone, change.ErrNever, change.ErrReplaced, change.ErrRedo} {
		if errors.Is(err, proof) {
			return err.Error()
		}
	}
	return ""
}

// Abort removes the staged files of an aborted unit. Where a table holds the unit
// after all nothing is removed.
func (s *Store) Abort(ctx context.Context, ref branches.Ref) error {
	if len(ref.Payload) == 0 {
		return nil // its files, if any, are orphans; nobody knows their names
	}
	changes, err := change.DecodePayload(ref.Payload)
	if err != nil {
		return s.fail("abort branch", err)
	}
	for _, c := range changes {
		tbl, err := s.catalog.Load(ctx, c.Table)
		switch {
		case errors.Is(err, catalog.ErrNoSuchTable), errors.Is(err, catalog.ErrNoSuchNamespace):
			continue // with the table went its directory, or its owner has a use for it
		case err == nil:
			err = c.Abort(ctx, tbl, ref.Txn)
		}
		switch {
		case errors.Is(err, change.ErrApplied):
			return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Committed: true, Evidence: "table " + name(c.Table) + " holds a snapshot of it"}
		case err != nil:
			return s.fail("abort branch", err)
		}
	}
	return nil
}

// Commit ends the branch in one phase: what Finish does, but a conflict is an answer.
// Of several tables the first decides; what goes wrong after it is rolled forward,
// here or by Settle.
func (b *Branch) Commit(ctx context.Context) error {
	defer b.leave()
	s := b.store
	if err := b.Doomed(); err != nil {
		return err
	}
	if !b.staged {
		b.unit = branches.Unit{Txn: b.txn, OnePhase: true}
		if err := b.stage(ctx); err != nil {
			s.leftover(ctx, b)
			return s.fail("commit branch", err)
		}
	}
	mark := change.Mark{Txn: b.txn, Time: b.time()}
	for i, c := range b.changes {
		err := s.commitTable(ctx, c, mark, i > 0)
		if branches.IsUnknown(err) && s.holds(ctx, c, b.txn) {
			err = nil
		}
		switch {
		case err == nil:
		case i > 0 || branches.IsUnknown(err):
			s.doubt(b)
			return branches.Unknown(s.fail("commit branch", err))
		default:
			s.leftover(ctx, b)
			return s.fail("commit branch", s.misfit("commit branch", c.Table, err))
		}
	}
	return nil
}

// holds reports whether the table shows that a commit without an answer has taken
// effect. That it does not proves nothing: the request may be on its way yet.
func (s *Store) holds(ctx context.Context, c *change.Change, txn branches.TxnID) bool {
	tbl, err := s.catalog.Load(ctx, c.Table)
	if err != nil {
		return false
	}
	verdict, err := c.Check(ctx, tbl, txn)
	return err == nil && verdict.State == change.Done
}

// cleanTime bounds the removal of files that are of no use any more.
const cleanTime = 5 * time.Second

// leftover removes the files of a commit that certainly had no effect. What stays is
// for orphan cleanup and changes no outcome.
func (s *Store) leftover(ctx context.Context, b *Branch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	if err := b.drop(ctx); err != nil {
		s.opts.Logger.WarnContext(ctx, "rhizodat: staged files left to orphan cleanup", "store", s.name, "dat_txn", b.txn, "error", err)
	}
}

// time of the snapshots: the unit's, or the store's own clock where nothing was
// staged.
func (b *Branch) time() hlc.Time {
	if b.unit.TxTime > 0 {
		return b.unit.TxTime
	}
	return b.store.opts.Clock.Now()
}
