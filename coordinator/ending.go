package coordinator

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// ending is one branch on its way to its end.
type ending struct {
	ref       branches.Ref
	store     branches.Store
	branch    branches.Branch     // nil in a process that did not run it
	err       error               // why it is not ended yet
	heuristic *branches.Heuristic // it never will be: the store had resolved it
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
	_ = c.insist(ctx, func() error { // e keeps the error
		e.settle(finish(ctx, e.ref))
		finish = e.store.Finish // a session that had an error is not used again
		if insist && e.heuristic == nil {
			return e.err
		}
		return nil // no further try is wanted, or changes anything
	})
}

// settle keeps what the store has said. A heuristic outcome is final.
func (e *ending) settle(err error) {
	e.err = err
	if h := heuristicOf(err, e.ref); h != nil {
		e.heuristic = h
	}
}

// heuristicOf finds a heuristic outcome in err, and names the branch as the
// record does, however the adapter has.
func heuristicOf(err error, ref branches.Ref) *branches.Heuristic {
	found, ok := errors.AsType[*branches.Heuristic](err)
	if !ok {
		return nil
	}
	h := *found
	h.Store, h.GID = ref.Store, ref.GID
	return &h
}

// decided turns the endings of a decided unit into its outcome: DONE is owed, or
// this process keeps trying, or a person is needed.
func (c *Coordinator) decided(ctx context.Context, u *Unit, ends []*ending) Outcome {
	out := Outcome{DatTxn: u.Txn, DatTxTime: u.txTime, Verdict: VerdictCommitted, Journaled: true}
	var heuristics []*branches.Heuristic
	var cause error
	for _, e := range ends {
		switch {
		case e.heuristic != nil:
			heuristics = append(heuristics, e.heuristic)
		case e.err != nil:
			out.Pending = append(out.Pending, e.ref.Store)
			if cause == nil {
				cause = e.err
			}
		}
	}
	switch {
	case len(heuristics) > 0:
		out.Verdict = VerdictHeuristic
		out.Err = &Heuristic{DatTxn: u.Txn, Stores: storesOf(heuristics), Pending: out.Pending, cause: heuristics[0]}
	case len(out.Pending) > 0:
		out.Verdict = VerdictPending
		out.Err = &CommittedPending{DatTxn: u.Txn, DatTxTime: u.txTime, Stores: out.Pending, cause: cause}
	default:
		c.later.done(ctx, u.Txn)
		return out
	}
	if !c.remembered(ctx, u.Txn, heuristics) || len(out.Pending) > 0 {
		c.later.finish(ctx, u)
	}
	return out
}

// contradicted is the outcome of an abort that a store had not waited for: it
// had committed its prepared branch by itself.
func (c *Coordinator) contradicted(ctx context.Context, u *Unit, out Outcome) Outcome {
	var heuristics []*branches.Heuristic
	for _, p := range u.Parts {
		if p.heuristic != nil {
			heuristics = append(heuristics, p.heuristic)
		}
	}
	if len(heuristics) == 0 {
		return out
	}
	c.remembered(ctx, u.Txn, heuristics)
	out.Verdict = VerdictHeuristic
	out.Err = &Heuristic{DatTxn: u.Txn, Stores: storesOf(heuristics), Aborted: true, cause: heuristics[0]}
	return out
}

func storesOf(heuristics []*branches.Heuristic) []string {
	names := make([]string, len(heuristics))
	for i, h := range heuristics {
		names[i] = h.Store
	}
	return names
}

// remembered is remember with a bound of its own. What fails here recovery
// writes, when it meets the same answer of the store.
func (c *Coordinator) remembered(ctx context.Context, txn branches.TxnID, heuristics []*branches.Heuristic) bool {
	if len(heuristics) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.FinishTimeout)
	defer cancel()
	err := c.remember(ctx, txn, heuristics)
	if err != nil {
		c.log.WarnContext(ctx, "rhizodat: heuristic outcome not yet in the journal", "dat_txn", txn, "error", err)
	}
	return err == nil
}

// remember writes heuristic outcomes into the record's branches, so that the
// record is never DONE before a person has seen them. What a person has said of
// a branch stays.
func (c *Coordinator) remember(ctx context.Context, txn branches.TxnID, heuristics []*branches.Heuristic) error {
	for {
		rec, err := c.read(ctx, txn)
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
		err = c.cfg.Journal.Annotate(ctx, rec)
		if _, changed := errors.AsType[*journal.Conflict](err); !changed {
			return err
		}
	}
}

// read reads a record. It keeps no place in the journal, since what follows
// takes one of its own and there may be only one.
func (c *Coordinator) read(ctx context.Context, txn branches.TxnID) (journal.Record, error) {
	session, err := c.cfg.Journal.Session(ctx)
	if err != nil {
		return journal.Record{}, err
	}
	defer session.Release()
	return session.Read(ctx, txn)
}

// undo takes one branch back as far as it went.
func (c *Coordinator) undo(ctx context.Context, u *Unit, p *Part) error {
	switch p.phase {
	case phaseOpen:
		return p.Branch.Rollback(ctx)
	case phasePrepared, phaseUnknown:
		ref := p.ref(u)
		err := p.Store.Abort(ctx, ref)
		p.heuristic = heuristicOf(err, ref)
		if p.heuristic == nil && (err != nil || p.phase == phaseUnknown) { // a lost PREPARE may land yet
			c.later.abort(ctx, p.Store, ref)
		}
		return err
	case phaseGone:
	}
	return nil
}
