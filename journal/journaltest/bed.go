package journaltest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// absent is the state of a record that is not there.
const absent journal.State = ""

// someTime is the dat_tx_time that records of the suite are created with.
var someTime = hlc.FromMillis(1_767_225_600_000)

// Bed is what an item runs on.
type Bed struct {
	testing.TB
	Open    Open
	Journal journal.Journal // opened with the zero Options
}

// NewBed makes a journal for one item.
func NewBed(tb testing.TB, fresh Fresh) *Bed {
	tb.Helper()
	open := fresh(tb)
	return &Bed{TB: tb, Open: open, Journal: open(journal.Options{})}
}

// session takes a session until the end of the item.
func (b *Bed) session() journal.Session {
	b.Helper()
	s, err := b.Journal.Session(b.Context())
	if err != nil {
		b.Fatalf("Session: %v", err)
	}
	b.Cleanup(s.Release)
	return s
}

// txn makes a new id.
func (b *Bed) txn() branches.TxnID {
	b.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		b.Fatalf("NewTxnID: %v", err)
	}
	return txn
}

// record is a record of two branches that was not written yet.
func (b *Bed) record() journal.Record {
	b.Helper()
	txn := b.txn()
	return journal.Record{Txn: txn, TxTime: someTime, Branches: []journal.Branch{
		{Store: "a", GID: branches.NewGID(txn, "a"), TwoPhase: true},
		{Store: "ch", GID: branches.NewGID(txn, "ch"), Payload: []byte("rows")},
	}}
}

// write creates rec.
func (b *Bed) write(s journal.Session, rec journal.Record) journal.Record {
	b.Helper()
	if err := s.Create(b.Context(), &rec); err != nil {
		b.Fatalf("Create: %v", err)
	}
	if rec.State != journal.StateActive || rec.CreatedMS == 0 || rec.UpdatedMS == 0 {
		b.Fatalf("Create left the record as %+v", rec)
	}
	return rec
}

// in makes a record in a state by the ordinary steps; absent makes an id only.
func (b *Bed) in(s journal.Session, state journal.State) branches.TxnID {
	b.Helper()
	if state == absent {
		return b.txn()
	}
	rec := b.write(s, b.record())
	ctx, d := b.Context(), journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime}
	switch state {
	case journal.StateActive:
	case journal.StateAborted:
		b.abort(s, rec.Txn)
	case journal.StatePrepared:
		b.must("Prepare", s.Prepare(ctx, d))
	case journal.StateCommitted, journal.StateDone:
		d.WithPrepare = true
		b.must("Decide", s.Decide(ctx, d))
		if state == journal.StateDone {
			b.expectFinish(1, rec.Txn)
		}
	}
	b.expectState(s, rec.Txn, state)
	return rec.Txn
}

func (b *Bed) must(doing string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", doing, err)
	}
}

func (b *Bed) read(s journal.Session, txn branches.TxnID) journal.Record {
	b.Helper()
	rec, err := s.Read(b.Context(), txn)
	if err != nil {
		b.Fatalf("Read: %v", err)
	}
	if rec.Txn != txn {
		b.Fatalf("Read(%s) answered record %s", txn, rec.Txn)
	}
	return rec
}

// expectState reads what stands; absent expects ErrNotFound.
func (b *Bed) expectState(s journal.Session, txn branches.TxnID, want journal.State) {
	b.Helper()
	rec, err := s.Read(b.Context(), txn)
	if want == absent {
		if !errors.Is(err, journal.ErrNotFound) {
			b.Fatalf("Read of a record that is not there: %v, want ErrNotFound", err)
		}
		return
	}
	if err != nil || rec.State != want {
		b.Fatalf("Read: state %q, %v, want %s", rec.State, err, want)
	}
}

// abort aborts txn, unforced and then forced.
func (b *Bed) abort(s journal.Session, txn branches.TxnID) {
	b.Helper()
	for _, durability := range []journal.Durability{journal.Unforced, journal.Forced} {
		if state, err := s.Abort(b.Context(), txn, durability); err != nil || state != journal.StateAborted {
			b.Fatalf("Abort: %q, %v, want ABORTED", state, err)
		}
	}
}

func (b *Bed) expectFinish(want int, txns ...branches.TxnID) {
	b.Helper()
	if n, err := b.Journal.Finish(b.Context(), txns); err != nil || n != want {
		b.Fatalf("Finish: %d, %v, want %d", n, err, want)
	}
}

// expectConflict wants a refusal that names the record and what stands.
func (b *Bed) expectConflict(err error, txn branches.TxnID, found journal.State) {
	b.Helper()
	conflict, ok := errors.AsType[*journal.Conflict](err)
	if !ok {
		b.Fatalf("got error %v, want a *Conflict", err)
	}
	if conflict.Txn != txn || conflict.Found != found {
		b.Fatalf("got %+v, want a conflict of %s that found %q", conflict, txn, found)
	}
}

// scan collects what Scan answers.
func (b *Bed) scan(filter journal.Filter) []journal.Record {
	b.Helper()
	var list []journal.Record
	err := b.Journal.Scan(b.Context(), filter, func(rec journal.Record) error {
		list = append(list, rec)
		return nil
	})
	b.must("Scan", err)
	return list
}

// same compares records, with the JSON keys that are only kept. What a branch
// remembers of having been read does not count.
func same(a, b any) string {
	memory := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".stored" }, cmp.Ignore())
	return cmp.Diff(a, b, memory, cmp.AllowUnexported(journal.Branch{}, journal.Note{}))
}

// canceled is a context that has ended.
func (b *Bed) canceled() context.Context {
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	return ctx
}
