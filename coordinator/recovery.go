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

// ErrNotConfigured says that a record names a store that this process does not have.
var ErrNotConfigured = errors.New("rhizodat: finish branch: store not configured here")

var (
	errNotDecided = errors.New("rhizodat: roll forward: the record is not decided")
	errNoPayload  = errors.New("rhizodat: finish branch: the record was read without its payload")
)

// Progress is what one pass over a record has achieved.
type Progress struct {
	State      journal.State // the record's state after the pass
	Pending    map[string]error
	Heuristics []*branches.Heuristic
}

// RollForward is steps S8 to S10 for a record that this process did not run:
// one try of every branch that is not ended yet. It is idempotent.
// REQUIRES: the record was seen as COMMITTED or DONE, the journal was hardened
// after that, and rec was read, with its payloads, after that. (A COMMITTED that
// is only seen may not be durable; one that was lost before the hardening is not
// there to be read after it.)
func (c *Coordinator) RollForward(ctx context.Context, rec journal.Record, stores Stores) (Progress, error) {
	p := Progress{State: rec.State, Pending: map[string]error{}}
	if !rec.State.Decided() {
		return p, errNotDecided
	}
	var locked, payloads, skipped, ends []*ending
	held := false // by a branch that only a person can end
	for _, b := range rec.Branches {
		e := newEnding(rec, b, stores)
		switch {
		case b.Outcome == journal.OutcomeHeuristic:
			held = true
			continue
		case b.Outcome == journal.OutcomeApplied:
			continue
		case e.err != nil:
		case b.Outcome == journal.OutcomeSkipped:
			skipped = append(skipped, e)
		case b.TwoPhase:
			locked = append(locked, e)
		default:
			payloads = append(payloads, e)
		}
		ends = append(ends, e)
	}
	c.release(ctx, rec.Txn, locked, false)
	c.rollForward(ctx, rec.Txn, payloads, false)
	takeBack(ctx, skipped) // a person gave them up: they must not come back
	p.collect(ends)
	if len(p.Heuristics) > 0 {
		if err := c.remember(ctx, rec.Txn, p.Heuristics); err != nil {
			return p, &journalError{err}
		}
		return p, nil
	}
	if held || len(p.Pending) > 0 || rec.State == journal.StateDone {
		return p, nil
	}
	if err := c.done(ctx, []branches.TxnID{rec.Txn}); err != nil {
		return p, &journalError{err}
	}
	p.State = journal.StateDone
	return p, nil
}

// done is S10.
func (c *Coordinator) done(ctx context.Context, txns []branches.TxnID) error {
	for _, txn := range txns {
		c.observe(ctx, StepEvent{Txn: txn, Step: S10, Moment: Before})
	}
	_, err := c.cfg.Journal.Finish(ctx, txns)
	for _, txn := range txns {
		c.observe(ctx, StepEvent{Txn: txn, Step: S10, Moment: After, Err: err})
	}
	return err
}

// RollBack makes sure that a record nobody decided never will be, and then
// takes its branches back. When the decision came first it touches nothing and
// returns the state that stands. It is idempotent. A branch without a record is
// taken back by a rec that holds no more than its gid.
// REQUIRES: rec was read with its payloads.
func (c *Coordinator) RollBack(ctx context.Context, rec journal.Record, stores Stores) (Progress, error) {
	p := Progress{State: rec.State, Pending: map[string]error{}}
	var err error
	if p.State, err = c.forbid(ctx, rec.Txn); err != nil {
		return p, &journalError{err}
	}
	if p.State != journal.StateAborted {
		return p, nil
	}
	var back, ends []*ending
	for _, b := range rec.Branches {
		if b.Outcome == journal.OutcomeHeuristic || b.Outcome == journal.OutcomeApplied {
			continue // it stays: a person's
		}
		e := newEnding(rec, b, stores)
		if e.err == nil {
			back = append(back, e)
		}
		ends = append(ends, e)
	}
	takeBack(ctx, back)
	p.collect(ends)
	if len(p.Heuristics) > 0 {
		if err := c.remember(ctx, rec.Txn, p.Heuristics); err != nil {
			return p, &journalError{err}
		}
	}
	return p, nil
}

// forbid writes ABORTED. Forced, even when it is only found: an ABORTED lost in
// a crash of the journal would let the coordinator prepare and decide the
// record again while its branches are gone.
func (c *Coordinator) forbid(ctx context.Context, txn branches.TxnID) (journal.State, error) {
	session, err := c.cfg.Journal.Session(ctx)
	if err != nil {
		return "", err
	}
	defer session.Release() // before a heuristic is remembered, which takes a place of its own
	return session.Abort(ctx, txn, journal.Forced)
}

func newEnding(rec journal.Record, b journal.Branch, stores Stores) *ending {
	e := &ending{ref: rec.Ref(b), store: stores(b.Store)}
	switch {
	case e.store == nil:
		e.err = ErrNotConfigured
	case !b.TwoPhase && b.Payload == nil:
		e.err = errNoPayload
	}
	return e
}

// takeBack aborts branches whose unit is durably ABORTED, or that a person gave up.
func takeBack(ctx context.Context, ends []*ending) {
	_ = fan(ends, func(e *ending) error { // each ending keeps its own error
		e.settle(e.store.Abort(ctx, e.ref))
		return nil
	})
}

func (p *Progress) collect(ends []*ending) {
	for _, e := range ends {
		switch {
		case e.heuristic != nil:
			p.Heuristics = append(p.Heuristics, e.heuristic)
		case e.err != nil:
			p.Pending[e.ref.Store] = e.err
		}
	}
}
