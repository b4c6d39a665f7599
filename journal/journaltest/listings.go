package journaltest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

var listings = []Item{
	{"listing/by state, oldest first", scanStates},
	{"listing/by limit and position", scanPages},
	{"listing/unchanged since a time", scanUpdated},
	{"listing/above a dat_tx_time", scanTimes},
	{"listing/leaves payloads where they are", scanLight},
	{"listing/more than a page, in order, each once", scanMany},
	{"listing/ends with the caller's error", scanError},
	{"finish/a batch counts what it changed", finishBatch},
	{"finish/more ids than a statement takes", finishMany},
}

func ids(records []journal.Record) []branches.TxnID {
	var list []branches.TxnID
	for _, rec := range records {
		list = append(list, rec.Txn)
	}
	return list
}

func (b *Bed) expectIDs(doing string, got []journal.Record, want ...branches.TxnID) {
	b.Helper()
	if diff := cmp.Diff(want, ids(got)); diff != "" {
		b.Fatalf("%s (-want +got):\n%s", doing, diff)
	}
}

func scanStates(b *Bed) {
	s := b.session()
	var undecided []branches.TxnID
	byState := map[journal.State][]branches.TxnID{}
	for range 2 {
		for _, state := range journal.States {
			txn := b.in(s, state)
			byState[state] = append(byState[state], txn)
			if state == journal.StateActive || state == journal.StatePrepared {
				undecided = append(undecided, txn)
			}
		}
	}
	for state, want := range byState {
		b.expectIDs("Scan "+state.String(), b.scan(journal.Filter{States: []journal.State{state}}), want...)
	}
	two := []journal.State{journal.StatePrepared, journal.StateActive}
	b.expectIDs("Scan of two states", b.scan(journal.Filter{States: two}), undecided...)
	b.expectIDs("Scan of the zero filter", b.scan(journal.Filter{}))
}

func scanPages(b *Bed) {
	s := b.session()
	var all []branches.TxnID
	for range 5 {
		all = append(all, b.in(s, journal.StateActive))
	}
	active := []journal.State{journal.StateActive}
	b.expectIDs("Limit", b.scan(journal.Filter{States: active, Limit: 2}), all[:2]...)
	b.expectIDs("After", b.scan(journal.Filter{States: active, After: all[1]}), all[2:]...)
	b.expectIDs("both", b.scan(journal.Filter{States: active, After: all[1], Limit: 2}), all[2:4]...)
	b.expectIDs("past the end", b.scan(journal.Filter{States: active, After: all[4]}))
}

func scanUpdated(b *Bed) {
	s := b.session()
	rec := b.write(s, b.record())
	active := []journal.State{journal.StateActive}
	at := time.UnixMilli(rec.UpdatedMS)
	b.expectIDs("unchanged since its own time", b.scan(journal.Filter{States: active, UpdatedBefore: at}))
	b.expectIDs("a millisecond later", b.scan(journal.Filter{States: active, UpdatedBefore: at.Add(time.Millisecond)}), rec.Txn)
}

func scanTimes(b *Bed) {
	s := b.session()
	var all []journal.Record
	for i := range 3 {
		rec := b.record()
		rec.TxTime = someTime + hlc.Time(i)
		rec = b.write(s, rec)
		b.must("Decide", s.Decide(b.Context(), journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime, WithPrepare: true}))
		all = append(all, rec)
	}
	b.expectFinish(1, all[2].Txn)
	decided := []journal.State{journal.StateCommitted, journal.StateDone}
	above := func(t hlc.Time) []journal.Record { return b.scan(journal.Filter{States: decided, TxTimeAbove: t}) }
	b.expectIDs("above the first", above(all[0].TxTime), all[1].Txn, all[2].Txn)
	b.expectIDs("above the last", above(all[2].TxTime))
}

func scanLight(b *Bed) {
	s := b.session()
	var want []journal.Record
	for _, size := range []int{0, 10, 100_000} {
		rec := b.record()
		rec.Branches[1].Payload = make([]byte, size)
		rec.Branches[1].Reason = `"payload":"AAAA" and \"payload\":\"AAAA\"`
		rec = b.write(s, rec)
		rec.Branches = slices.Clone(rec.Branches)
		rec.Branches[1].Payload = nil
		want = append(want, rec)
	}
	if diff := same(want, b.scan(journal.Filter{States: journal.States})); diff != "" {
		b.Fatalf("Scan (-want +got):\n%s", diff)
	}
}

// many is more than any page or batch of a journal.
const many = 1050

// writeMany creates records of one branch, in the order of their ids.
func (b *Bed) writeMany() []branches.TxnID {
	b.Helper()
	s := b.session()
	list := make([]branches.TxnID, many)
	for i := range list {
		list[i] = b.write(s, journal.Record{Txn: b.txn(), TxTime: someTime}).Txn
	}
	return list
}

func scanMany(b *Bed) {
	want := b.writeMany()
	b.expectIDs("Scan", b.scan(journal.Filter{States: journal.States}), want...)
	b.expectIDs("Scan with a limit", b.scan(journal.Filter{States: journal.States, Limit: many - 1}), want[:many-1]...)
}

func scanError(b *Bed) {
	s := b.session()
	for range 3 {
		b.write(s, b.record())
	}
	enough, calls := errors.New("enough"), 0
	err := b.Journal.Scan(b.Context(), journal.Filter{States: journal.States}, func(journal.Record) error {
		calls++
		return enough
	})
	if !errors.Is(err, enough) || calls != 1 {
		b.Fatalf("Scan: %v after %d calls, want the caller's error after 1", err, calls)
	}
}

func finishBatch(b *Bed) {
	s := b.session()
	var all []branches.TxnID
	want := map[branches.TxnID]journal.State{}
	for range 2 {
		for _, state := range append([]journal.State{absent}, journal.States...) {
			txn := b.in(s, state)
			all = append(all, txn)
			if want[txn] = state; state == journal.StateCommitted {
				want[txn] = journal.StateDone
				all = append(all, txn) // named twice, it counts once
			}
		}
	}
	b.expectFinish(2, all...)
	b.expectFinish(0, all...)
	b.expectFinish(0)
	for txn, state := range want {
		b.expectState(s, txn, state)
	}
}

func finishMany(b *Bed) {
	all := b.writeMany()
	s := b.session()
	decided := 0
	for i, txn := range all {
		if i%100 == 0 {
			b.must("Decide", s.Decide(b.Context(), journal.Decision{Txn: txn, TxTime: someTime, WithPrepare: true}))
			decided++
		}
	}
	b.expectFinish(decided, all...)
	if got := b.scan(journal.Filter{States: []journal.State{journal.StateDone}}); len(got) != decided {
		b.Fatalf("%d records are DONE, want %d", len(got), decided)
	}
}
