package coordinator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Unit is one meta-transaction as the coordinator gets it: S1 and S2 are over.
// It belongs to one goroutine.
type Unit struct {
	Txn   branches.TxnID
	Parts []*Part

	txTime   hlc.Time
	session  journal.Session // held from before S4 to the end of S7
	recorded bool            // S4 was sent: the journal may hold a record
	began    time.Time
	prepared time.Time // last answer of S5
	released time.Time // last answer of S8
	conflict bool
}

// Part is one store's branch of a unit.
type Part struct {
	Name   string
	Store  branches.Store
	Branch branches.Branch
	Notice bool  // see branches.Unit
	Doom   error // why the unit can only be rolled back, beyond what the branch itself knows

	staged branches.Staged
	phase  phase
}

// phase says who may still end a branch before the decision, and how.
type phase int

const (
	phaseOpen     phase = iota // by Branch.Rollback
	phasePrepared              // by its gid
	phaseUnknown               // PREPARE was sent and not answered: by its gid, again and again
	phaseGone                  // the store has ended it
)

func (p *Part) ref(u *Unit) branches.Ref {
	return branches.Ref{
		Txn: u.Txn, Store: p.Name, GID: branches.NewGID(u.Txn, p.Name),
		TwoPhase: p.staged.Vote == branches.VotePrepare, TxTime: u.txTime, Payload: p.staged.Payload,
	}
}

// voted returns the parts that gave one of the votes.
func (u *Unit) voted(votes ...branches.Vote) []*Part {
	var parts []*Part
	for _, p := range u.Parts {
		for _, v := range votes {
			if p.staged.Vote == v {
				parts = append(parts, p)
			}
		}
	}
	return parts
}

// allWrote reports whether S3 cannot change who takes part, so that S4 may run
// beside it.
func (u *Unit) allWrote() bool {
	for _, p := range u.Parts {
		w, ok := p.Branch.(branches.Writer)
		if !ok || !w.Wrote() {
			return false
		}
	}
	return len(u.Parts) > 1
}

// doomed returns the first part whose branch cannot commit any more.
func (u *Unit) doomed() (*Part, error) {
	for _, p := range u.Parts {
		if p.Doom != nil {
			return p, p.Doom
		}
		if err := p.Branch.Doomed(); err != nil {
			return p, err
		}
	}
	return nil, nil
}

// record is what S4 writes.
func (u *Unit) record() *journal.Record {
	r := &journal.Record{Txn: u.Txn, State: journal.StateActive, TxTime: u.txTime}
	for _, p := range u.Parts {
		if p.staged.Vote == branches.VoteReadOnly {
			continue
		}
		ref := p.ref(u)
		r.Branches = append(r.Branches, journal.Branch{
			Store: ref.Store, GID: ref.GID, TwoPhase: ref.TwoPhase, Payload: ref.Payload,
		})
	}
	return r
}

// partError is an error with the store it came from.
type partError struct {
	part *Part
	err  error
}

func (e *partError) Error() string { return e.err.Error() }
func (e *partError) Unwrap() error { return e.err }

// partOf finds the part an error came from; nil for the journal's or our own.
func partOf(err error) *Part {
	var e *partError
	if errors.As(err, &e) {
		return e.part
	}
	return nil
}

// fan runs f for every item at once, the last one on the caller's goroutine,
// waits for all, and returns the first error in the order of items.
func fan[T any](items []T, f func(T) error) error {
	if len(items) == 0 {
		return nil
	}
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	for i, item := range items[:len(items)-1] {
		wg.Go(func() { errs[i] = f(item) })
	}
	last := len(items) - 1
	errs[last] = f(items[last])
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// each runs f for every part at once, and observes it as that store's share of step.
func (c *Coordinator) each(ctx context.Context, u *Unit, step Step, parts []*Part, f func(*Part) error) error {
	return fan(parts, func(p *Part) error {
		c.observe(ctx, StepEvent{Txn: u.Txn, Step: step, Moment: Before, Store: p.Name})
		err := f(p)
		c.observe(ctx, StepEvent{Txn: u.Txn, Step: step, Moment: After, Store: p.Name, Err: err})
		if err != nil {
			return &partError{part: p, err: err}
		}
		return nil
	})
}
