package coordinator

import (
	"context"
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
	// Lease and Fence are the grant that the unit commits under; empty for none.
	Lease string
	Fence journal.Fence
	// Step is recorded by S7, and may be filled until Commit is called; nil for
	// none.
	Step *journal.StepRecord

	txTime   hlc.Time
	session  journal.Session // held from before S4 to the end of S7
	recorded bool            // S4 was sent: the journal may hold a record
	began    time.Time
	prepared time.Time // last answer of S5
	released time.Time // last answer of S8
	conflict bool
}

// Conditional reports whether S7 asks for more than the record's state. Such a
// unit is decided by the journal however few branches it has: a store's own
// commit could not ask.
func (u *Unit) Conditional() bool { return u.Lease != "" || u.Step != nil }

// Part is one store's branch of a unit.
type Part struct {
	Name   string
	Store  branches.Store
	Branch branches.Branch
	Notice bool  // see branches.Unit
	Doom   error // why the unit can only be rolled back, beyond what the branch itself knows

	staged    branches.Staged
	phase     phase
	heuristic *branches.Heuristic // the store had committed what was to be aborted
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
	return len(u.Parts) > 1 || len(u.Parts) == 1 && u.Conditional()
}

// doomed returns why the first branch that cannot commit any more cannot.
func (u *Unit) doomed() error {
	for _, p := range u.Parts {
		err := p.Doom
		if err == nil {
			err = p.Branch.Doomed()
		}
		if err != nil {
			return &partError{part: p, err: err}
		}
	}
	return nil
}

// endings are the branches that gave vote, on their way to S8 or S9.
func (u *Unit) endings(vote branches.Vote) []*ending {
	var ends []*ending
	for _, p := range u.voted(vote) {
		ends = append(ends, &ending{ref: p.ref(u), store: p.Store, branch: p.Branch})
	}
	return ends
}

// record is what S4 writes.
func (u *Unit) record() *journal.Record {
	r := &journal.Record{Txn: u.Txn, State: journal.StateActive, TxTime: u.txTime, Lease: u.Lease, Fence: u.Fence}
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

// fan runs f for every item at once, the last one on the caller's goroutine,
// waits for all, and returns the error that came first: those behind it may be
// its consequences.
func fan[T any](items []T, f func(T) error) error {
	if len(items) == 0 {
		return nil
	}
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	run := func(item T) {
		if err := f(item); err != nil {
			once.Do(func() { first = err })
		}
	}
	last := len(items) - 1
	for _, item := range items[:last] {
		wg.Go(func() { run(item) })
	}
	run(items[last])
	wg.Wait()
	return first
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

// stores finds the unit's own stores, and keeps nothing else of it.
func (u *Unit) stores() Stores {
	byName := make(map[string]branches.Store, len(u.Parts))
	for _, p := range u.Parts {
		byName[p.Name] = p.Store
	}
	return func(name string) branches.Store { return byName[name] }
}
