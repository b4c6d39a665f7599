package journaltest

import (
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// operation is a change of state as a caller asks for it. It returns the state
// that Abort answered, absent for the others.
type operation struct {
	name string
	run  func(b *Bed, s journal.Session, txn branches.TxnID) (journal.State, error)
	// leads gives the state after the operation for each state before it.
	// What is not listed is refused and changes nothing. It is written out
	// here, not taken from package journal, so that the two are compared.
	leads map[journal.State]journal.State
	// quiet: a refusal is no error (Abort answers the state, Finish a count).
	quiet bool
}

var abortLeads = map[journal.State]journal.State{
	absent:                 journal.StateAborted,
	journal.StateActive:    journal.StateAborted,
	journal.StatePrepared:  journal.StateAborted,
	journal.StateCommitted: journal.StateCommitted,
	journal.StateDone:      journal.StateDone,
	journal.StateAborted:   journal.StateAborted,
}

var operations = []operation{
	{
		name: "Create", leads: map[journal.State]journal.State{absent: journal.StateActive},
		run: func(b *Bed, s journal.Session, txn branches.TxnID) (journal.State, error) {
			rec := b.record()
			rec.Txn = txn
			return absent, s.Create(b.Context(), &rec)
		},
	},
	{
		name: "Prepare", leads: map[journal.State]journal.State{journal.StateActive: journal.StatePrepared},
		run: func(b *Bed, s journal.Session, txn branches.TxnID) (journal.State, error) {
			return absent, s.Prepare(b.Context(), journal.Decision{Txn: txn, TxTime: someTime})
		},
	},
	{
		name: "Decide", leads: map[journal.State]journal.State{journal.StatePrepared: journal.StateCommitted},
		run: func(b *Bed, s journal.Session, txn branches.TxnID) (journal.State, error) {
			return absent, s.Decide(b.Context(), journal.Decision{Txn: txn, TxTime: someTime})
		},
	},
	{
		name: "Decide with Prepare",
		leads: map[journal.State]journal.State{
			journal.StateActive: journal.StateCommitted, journal.StatePrepared: journal.StateCommitted,
		},
		run: func(b *Bed, s journal.Session, txn branches.TxnID) (journal.State, error) {
			return absent, s.Decide(b.Context(), journal.Decision{Txn: txn, TxTime: someTime, WithPrepare: true})
		},
	},
	{
		name: "Abort unforced", leads: abortLeads, quiet: true,
		run: func(b *Bed, s journal.Session, txn branches.TxnID) (journal.State, error) {
			return s.Abort(b.Context(), txn, journal.Unforced)
		},
	},
	{
		name: "Abort forced", leads: abortLeads, quiet: true,
		run: func(b *Bed, s journal.Session, txn branches.TxnID) (journal.State, error) {
			return s.Abort(b.Context(), txn, journal.Forced)
		},
	},
	{
		name: "Finish", leads: map[journal.State]journal.State{journal.StateCommitted: journal.StateDone}, quiet: true,
		run: func(b *Bed, _ journal.Session, txn branches.TxnID) (journal.State, error) {
			n, err := b.Journal.Finish(b.Context(), []branches.TxnID{txn})
			if n < 0 || n > 1 {
				err = fmt.Errorf("finish of one record counted %d", n)
			}
			return absent, err
		},
	},
}

// transitions holds one item for each operation and each state it may find.
var transitions = everyTransition()

func everyTransition() []Item {
	var items []Item
	for _, op := range operations {
		for _, from := range append([]journal.State{absent}, journal.States...) {
			name := from.String()
			if from == absent {
				name = "absent"
			}
			items = append(items, Item{
				Name: "transition/" + op.name + "/" + name,
				Run:  func(b *Bed) { op.check(b, from) },
			})
		}
	}
	return items
}

func (op operation) check(b *Bed, from journal.State) {
	b.Helper()
	s := b.session()
	other := b.in(s, journal.StatePrepared) // a bystander, which nothing touches
	before := b.read(s, other)
	txn := b.in(s, from)
	var stood journal.Record
	if from != absent {
		stood = b.read(s, txn)
	}

	answered, err := op.run(b, s, txn)

	to, legal := op.leads[from]
	switch {
	case legal || op.quiet:
		b.must(op.name, err)
	default:
		b.expectConflict(err, txn, from)
	}
	if !legal {
		to = from
	}
	if answered != absent && answered != to {
		b.Fatalf("%s answered %s, want %s", op.name, answered, to)
	}
	b.expectState(s, txn, to)
	op.checkRest(b, s, txn, stood, to)
	if diff := same(before, b.read(s, other)); diff != "" {
		b.Fatalf("another record changed (-before +after):\n%s", diff)
	}
}

// checkRest: a refused change leaves the record as it was to the last column,
// and a change of state takes nothing away and makes a new version.
func (op operation) checkRest(b *Bed, s journal.Session, txn branches.TxnID, stood journal.Record, to journal.State) {
	b.Helper()
	if stood.Txn.IsZero() {
		return
	}
	now := b.read(s, txn)
	if to != stood.State {
		if now.UpdatedMS <= stood.UpdatedMS {
			b.Fatalf("a change of state left version %d at %d", stood.UpdatedMS, now.UpdatedMS)
		}
		stood.State, stood.UpdatedMS = now.State, now.UpdatedMS
	}
	if diff := same(stood, now); diff != "" {
		b.Fatalf("the record changed otherwise (-before +after):\n%s", diff)
	}
}
