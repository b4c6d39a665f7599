package coordinator

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// ending is one branch of a decided unit on its way to its end.
type ending struct {
	ref       branches.Ref
	store     branches.Store
	branch    branches.Branch // nil in a process that did not run it
	err       error           // why it is not ended yet
	heuristic *branches.Heuristic
}

// endAll ends branches in parallel. With insist a failure is tried again, each
// time over a new session of the store, until ctx ends.
func (c *Coordinator) endAll(ctx context.Context, txn branches.TxnID, step Step, ends []*ending, insist bool) {
	if len(ends) == 0 {
		return
	}
	c.observe(ctx, StepEvent{Txn: txn, Step: step, Moment: Before})
	_ = fan(ends, func(e *ending) error { // each ending keeps its own error
		c.observe(ctx, StepEvent{Txn: txn, Step: step, Moment: Before, Store: e.ref.Store})
		e.end(ctx, c, insist)
		c.observe(ctx, StepEvent{Txn: txn, Step: step, Moment: After, Store: e.ref.Store, Err: e.err})
		return nil
	})
	c.observe(ctx, StepEvent{Txn: txn, Step: step, Moment: After})
}

func (e *ending) end(ctx context.Context, c *Coordinator, insist bool) {
	finish := e.store.Finish
	if e.branch != nil {
		finish = e.branch.Finish
	}
	for delay := firstDelay; ; delay = next(delay) {
		e.err = finish(ctx, e.ref)
		if e.err == nil || errors.As(e.err, &e.heuristic) || !insist {
			return
		}
		if c.wall.Sleep(ctx, delay) != nil {
			return
		}
		finish = e.store.Finish // a session that had an error is not used again
	}
}

// ended turns the endings of a decided unit into its outcome: DONE is owed, or
// this process keeps trying, or a person is needed.
func (c *Coordinator) ended(ctx context.Context, out Outcome, ends []*ending) Outcome {
	var pending []*ending
	var heuristics []*branches.Heuristic
	for _, e := range ends {
		switch {
		case e.heuristic != nil:
			heuristics = append(heuristics, e.heuristic)
		case e.err != nil:
			pending = append(pending, e)
			out.Pending = append(out.Pending, e.ref.Store)
		}
	}
	switch {
	case len(heuristics) > 0:
		stores := make([]string, len(heuristics))
		for i, h := range heuristics {
			stores[i] = h.Store
		}
		out.Verdict = VerdictHeuristic
		out.Err = &Heuristic{DatTxn: out.DatTxn, Stores: stores, Pending: out.Pending, cause: heuristics[0]}
		if err := c.remember(ctx, out.DatTxn, heuristics); err != nil {
			c.log.WarnContext(ctx, "rhizodat: heuristic outcome not yet in the journal", "dat_txn", out.DatTxn, "error", err)
		}
	case len(pending) > 0:
		out.Verdict = VerdictPending
		out.Err = &CommittedPending{
			DatTxn: out.DatTxn, DatTxTime: out.DatTxTime, Stores: out.Pending, cause: pending[0].err,
		}
		c.later.finish(ctx, out.DatTxn, pending)
	default:
		c.later.done(ctx, out.DatTxn)
	}
	return out
}

// remember writes heuristic outcomes into the record's branches, so that the
// record is never DONE before a person has seen them.
func (c *Coordinator) remember(ctx context.Context, txn branches.TxnID, heuristics []*branches.Heuristic) error {
	session, err := c.cfg.Journal.Session(ctx)
	if err != nil {
		return err
	}
	defer session.Release()
	for {
		rec, err := session.Read(ctx, txn)
		if err != nil {
			return err
		}
		changed := false
		for _, h := range heuristics {
			for i := range rec.Branches {
				b := &rec.Branches[i]
				if b.Store == h.Store && b.Outcome == journal.OutcomeNormal {
					b.Outcome, b.Reason, changed = journal.OutcomeHeuristic, h.Error(), true
				}
			}
		}
		if !changed {
			return nil
		}
		var conflict *journal.Conflict
		if err := c.cfg.Journal.Annotate(ctx, rec); !errors.As(err, &conflict) {
			return err
		}
	}
}
