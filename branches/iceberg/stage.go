package iceberg

import (
	"context"
	"errors"

	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
)

// Stage is S3: the last rows go to files, and what could make the commit fail after
// the decision is looked for now.
func (b *Branch) Stage(ctx context.Context, unit branches.Unit) (branches.Staged, error) {
	if err := b.Doomed(); err != nil {
		return branches.Staged{}, err
	}
	b.unit = unit
	if err := b.stage(ctx); err != nil {
		// Nor may it be committed in another way.
		return branches.Staged{}, b.dooms(b.store.fail("stage branch", err))
	}
	b.staged = true
	if len(b.changes) == 0 {
		return branches.Staged{Vote: branches.VoteReadOnly}, nil
	}
	staged := branches.Staged{Vote: branches.VoteApply, Payload: []byte{}}
	if !unit.OnePhase {
		var err error
		if staged.Payload, err = change.EncodePayload(b.changes); err != nil {
			return branches.Staged{}, b.dooms(b.store.fail("stage branch", err))
		}
	}
	return staged, nil
}

func (b *Branch) stage(ctx context.Context) error {
	b.changes = nil
	for _, w := range b.ordered() {
		if w.empty() {
			continue
		}
		if b.unit.Marker && b.unit.TxTime <= 0 {
			return errNoTime
		}
		if err := w.flush(ctx); err != nil {
			return err
		}
		c, err := w.change()
		if err != nil {
			return err
		}
		if !c.Empty() {
			if err := b.store.precheck(ctx, c, b.txn); err != nil {
				return err
			}
			b.changes = append(b.changes, c)
		}
		if err := w.clean(ctx); err != nil {
			b.store.opts.Logger.WarnContext(ctx, "rhizodat: unused files left to orphan cleanup",
				"store", b.store.name, "table", name(w.tbl.Identifier()), "dat_txn", b.txn, "error", err)
		}
	}
	return nil
}

// precheck looks at the table as it is now.
func (s *Store) precheck(ctx context.Context, c *change.Change, txn branches.TxnID) error {
	tbl, err := s.catalog.Load(ctx, c.Table)
	if err != nil {
		return err
	}
	verdict, err := c.Check(ctx, tbl, txn)
	if err != nil {
		return err
	}
	switch verdict.State {
	case change.Done:
		return s.stands("stage branch", c.Table, change.ErrApplied)
	case change.Never:
		return s.stands("stage branch", c.Table, change.ErrNever)
	case change.Vanished:
		return s.busy("stage branch", "table "+name(c.Table)+": "+verdict.Why, change.ErrGone)
	case change.Pending:
	}
	_, err = c.Precheck(ctx, tbl)
	return s.misfit("stage branch", c.Table, err)
}

// stands is the error of a unit that is in the table before its time.
func (s *Store) stands(doing string, ident table.Identifier, cause error) error {
	return &branches.Error{
		Store: s.name, Doing: doing, Cause: "table " + name(ident), Err: cause,
		Asks: branches.Permanent, Mask: s.to.masked,
	}
}

// misfit gives a change that no longer fits its table the kind of its reason.
func (s *Store) misfit(doing string, ident table.Identifier, err error) error {
	switch {
	case errors.Is(err, change.ErrConflict):
		return s.busy(doing, "table "+name(ident), err)
	case errors.Is(err, change.ErrSchema), errors.Is(err, change.ErrReplaced), errors.Is(err, change.ErrTooLate):
		return &branches.Error{
			Store: s.name, Doing: doing, Cause: "table " + name(ident), Err: err,
			Asks: branches.Permanent, Mask: s.to.masked,
		}
	}
	return err
}
