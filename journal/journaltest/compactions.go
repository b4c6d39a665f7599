package journaltest

import (
	"time"

	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

var compactions = []Item{
	{"compaction/lists final records, longest unchanged first", removable},
	{"compaction/removes final records only", remove},
	{"compaction/the horizon only rises", horizon},
	{"compaction/keeps the highest time", highWater},
}

func (b *Bed) compactor() journal.Compactor {
	b.Helper()
	c, ok := b.Journal.(journal.Compactor)
	if !ok {
		b.Fatalf("%T is no journal.Compactor", b.Journal)
	}
	return c
}

// later is after everything that the suite writes.
func later() time.Time { return hlc.System.Now().Add(time.Hour) }

func removable(b *Bed) {
	s := b.session()
	done := b.in(s, journal.StateCommitted)
	aborted := b.in(s, journal.StateAborted)
	for _, state := range []journal.State{journal.StateActive, journal.StatePrepared, journal.StateCommitted} {
		b.in(s, state)
	}
	at := b.read(s, aborted).UpdatedMS
	for b.read(s, done).State != journal.StateDone || b.read(s, done).UpdatedMS <= at {
		b.awaitClock(at)
		b.expectFinish(1, done)
	}
	list := func(before time.Time, limit int) []journal.Record {
		b.Helper()
		got, err := b.compactor().Removable(b.Context(), before, limit)
		b.must("Removable", err)
		return got
	}
	all := list(later(), 10)
	b.expectIDs("Removable", all, aborted, done) // done is older, and changed last
	if all[0].Branches[1].Payload != nil {
		b.Fatalf("Removable read a payload")
	}
	b.expectIDs("limit", list(later(), 1), aborted)
	b.expectIDs("unchanged since", list(time.UnixMilli(at), 10))
	b.expectIDs("unchanged since", list(time.UnixMilli(at+1), 10), aborted)
}

// awaitClock waits until the clock has passed a millisecond.
func (b *Bed) awaitClock(ms int64) {
	b.Helper()
	for give := hlc.System.Now().Add(10 * time.Second); hlc.System.Now().UnixMilli() <= ms; {
		if hlc.System.Now().After(give) {
			b.Fatalf("the clock stands still")
		}
	}
}

func (b *Bed) expectRemove(want int, txns ...branches.TxnID) {
	b.Helper()
	if n, err := b.compactor().Remove(b.Context(), txns); err != nil || n != want {
		b.Fatalf("Remove: %d, %v, want %d", n, err, want)
	}
}

func remove(b *Bed) {
	s := b.session()
	var all []branches.TxnID
	want := map[branches.TxnID]journal.State{}
	for _, state := range append([]journal.State{absent}, journal.States...) {
		txn := b.in(s, state)
		all = append(all, txn)
		if want[txn] = state; state.Final() {
			want[txn] = absent
		}
	}
	b.expectRemove(2, all...)
	for txn, state := range want {
		b.expectState(s, txn, state)
	}
	b.expectRemove(0, all...)
	b.expectRemove(0)
}

// born makes an id of a chosen millisecond.
func (b *Bed) born(at time.Time) branches.TxnID {
	b.Helper()
	txn := b.txn()
	ms := at.UnixMilli()
	for i := range 6 {
		txn[i] = byte(ms >> (8 * (5 - i))) //nolint:gosec // G115: one byte after the other
	}
	if uuid.UUID(txn).Version() != 7 || !txn.Time().Equal(time.UnixMilli(ms)) {
		b.Fatalf("made id %s for %v", txn, at)
	}
	return txn
}

func (b *Bed) expectHorizon(want time.Time) {
	b.Helper()
	got, err := b.compactor().Horizon(b.Context())
	b.must("Horizon", err)
	if !got.Equal(want) {
		b.Fatalf("Horizon: %v, want %v", got, want)
	}
}

func horizon(b *Bed) {
	s := b.session()
	b.expectHorizon(time.Time{})
	early, late, latest := time.UnixMilli(1_700_000_000_000), time.UnixMilli(1_700_000_001_000), time.UnixMilli(1_700_000_002_000)
	var txns []branches.TxnID
	for _, at := range []time.Time{early, late, latest} {
		rec := b.record()
		rec.Txn = b.born(at)
		txns = append(txns, b.write(s, rec).Txn)
	}
	b.abort(s, txns[0])
	b.abort(s, txns[1])
	b.expectRemove(1, txns[1], txns[2]) // the latest is ACTIVE and stays
	b.expectHorizon(late)
	b.expectRemove(1, txns[0])
	b.expectHorizon(late)
}

func highWater(b *Bed) {
	s := b.session()
	k, ok := b.Journal.(journal.Timekeeper)
	if !ok {
		b.Fatalf("%T is no journal.Timekeeper", b.Journal)
	}
	expect := func(want hlc.Time) {
		b.Helper()
		if got, err := k.HighWater(b.Context()); err != nil || got != want {
			b.Fatalf("HighWater: %v, %v, want %v", got, err, want)
		}
	}
	rec := b.record()
	rec.TxTime = someTime + 1000
	high := b.write(s, rec)
	expect(high.TxTime)
	b.write(s, b.record()) // lower, and it stays
	expect(high.TxTime)
	b.abort(s, high.Txn)
	b.expectRemove(1, high.Txn)
	expect(high.TxTime)
}
