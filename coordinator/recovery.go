package coordinator

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Stores finds a store by the name a record has for it; nil when this process
// is not configured with it, or may not touch it.
type Stores func(name string) branches.Store

// ErrNotConfigured: a record names a store that this process does not have.
var ErrNotConfigured = errors.New("rhizodat: finish branch: store not configured here")

// Progress is what one pass over a record has achieved.
type Progress struct {
	State      journal.State // the record's state after the pass
	Pending    map[string]error
	Heuristics []*branches.Heuristic
}

// RollForward is steps S8 to S10 for a record that this process did not run:
// one try of every branch that is not ended yet. It is idempotent.
// REQUIRES: rec was read as COMMITTED or DONE, and the journal hardened since.
func (c *Coordinator) RollForward(ctx context.Context, rec journal.Record, stores Stores) (Progress, error) {
	p := Progress{State: rec.State, Pending: map[string]error{}}
	var locked, payloads, ends []*ending
	held := false // by a branch that only a person can end
	for _, b := range rec.Branches {
		if b.Outcome == journal.OutcomeHeuristic {
			held = true
		}
		if b.Outcome == journal.OutcomeHeuristic || b.Outcome == journal.OutcomeApplied {
			continue
		}
		e := &ending{ref: rec.Ref(b), store: stores(b.Store)}
		ends = append(ends, e)
		switch {
		case e.store == nil:
			e.err = ErrNotConfigured
		case b.Outcome == journal.OutcomeSkipped: // a person gave it up: it must not come back
			e.err = e.store.Abort(ctx, e.ref)
		case b.TwoPhase:
			locked = append(locked, e)
		default:
			payloads = append(payloads, e)
		}
	}
	c.release(ctx, rec.Txn, locked, false)
	c.rollForward(ctx, rec.Txn, payloads, false)
	for _, e := range ends {
		switch {
		case e.heuristic != nil:
			p.Heuristics = append(p.Heuristics, e.heuristic)
		case e.err != nil:
			p.Pending[e.ref.Store] = e.err
		}
	}
	if len(p.Heuristics) > 0 {
		return p, c.remember(ctx, rec.Txn, p.Heuristics)
	}
	if held || len(p.Pending) > 0 || rec.State == journal.StateDone {
		return p, nil
	}
	if _, err := c.cfg.Journal.Finish(ctx, []branches.TxnID{rec.Txn}); err != nil {
		return p, &journalError{err}
	}
	p.State = journal.StateDone
	return p, nil
}

// RollBack makes sure that a record nobody decided never will be, and then
// takes its branches back. When the decision came first it touches nothing and
// returns the state that stands. It is idempotent.
func (c *Coordinator) RollBack(ctx context.Context, rec journal.Record, stores Stores) (Progress, error) {
	p := Progress{State: rec.State, Pending: map[string]error{}}
	session, err := c.cfg.Journal.Session(ctx)
	if err != nil {
		return p, &journalError{err}
	}
	defer session.Release()
	// Forced, even when ABORTED is only found: an ABORTED lost in a crash of the
	// journal would let the coordinator prepare and decide the record again
	// while its branches are gone.
	if p.State, err = session.Abort(ctx, rec.Txn, journal.Forced); err != nil {
		return p, &journalError{err}
	}
	if p.State != journal.StateAborted {
		return p, nil
	}
	for _, b := range rec.Branches {
		store := stores(b.Store)
		if store == nil {
			p.Pending[b.Store] = ErrNotConfigured
			continue
		}
		var heuristic *branches.Heuristic
		switch err := store.Abort(ctx, rec.Ref(b)); {
		case err == nil:
		case errors.As(err, &heuristic):
			p.Heuristics = append(p.Heuristics, heuristic)
		default:
			p.Pending[b.Store] = err
		}
	}
	return p, nil
}
