package journaltest

import (
	"errors"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

var clocks = []Item{
	{"clock/a caller that is far off is refused, with both times", drift},
	{"clock/created_ms is read when it is sent", createdMS},
	{"clock/versions rise while the caller's clock steps back", stepBack},
	{"clock/the journal tells its time", tellTime},
}

// at opens the journal for a caller with a clock of its own.
func (b *Bed) at(wall hlc.Wall) journal.Session {
	b.Helper()
	s, err := b.Open(journal.Options{Wall: wall, MaxDrift: time.Minute}).Session(b.Context())
	b.must("Session", err)
	b.Cleanup(s.Release)
	return s
}

func drift(b *Bed) {
	for _, off := range []time.Duration{-2 * time.Minute, 2 * time.Minute} {
		wall := hlc.NewManual(hlc.System.Now().Add(off))
		s := b.at(wall)
		rec := b.record()
		err := s.Create(b.Context(), &rec)
		refused, ok := errors.AsType[*journal.Drift](err)
		if !ok {
			b.Fatalf("%v off: %v, want a *Drift", off, err)
		}
		apart := refused.Caller.Sub(refused.Journal)
		if refused.Caller.UnixMilli() != wall.Now().UnixMilli() || (apart-off).Abs() > 30*time.Second || refused.Max != time.Minute {
			b.Fatalf("%v off: it answered %+v", off, refused)
		}
		if text := err.Error(); !strings.Contains(text, refused.Caller.UTC().Format("15:04:05")) ||
			!strings.Contains(text, refused.Journal.UTC().Format("15:04:05")) {
			b.Fatalf("the error does not name both times: %s", text)
		}
		b.expectState(s, rec.Txn, absent)
	}
	for _, off := range []time.Duration{-30 * time.Second, 30 * time.Second} {
		b.write(b.at(hlc.NewManual(hlc.System.Now().Add(off))), b.record())
	}
}

func createdMS(b *Bed) {
	wall := hlc.NewManual(hlc.System.Now().Add(-5 * time.Second))
	s := b.at(wall)
	wall.Advance(3 * time.Second)
	rec := b.write(s, b.record())
	if want := wall.Now().UnixMilli(); rec.CreatedMS != want || b.read(s, rec.Txn).CreatedMS != want {
		b.Fatalf("created_ms is %d, want %d", rec.CreatedMS, want)
	}
}

func stepBack(b *Bed) {
	wall := hlc.NewManual(hlc.System.Now())
	s := b.at(wall)
	rec := b.write(s, b.record())
	version := rec.UpdatedMS
	for _, change := range []func() error{
		func() error { return s.Prepare(b.Context(), journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime}) },
		func() error { return s.Decide(b.Context(), journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime}) },
	} {
		wall.Set(wall.Now().Add(-10 * time.Second))
		b.must("change", change())
		now := b.read(s, rec.Txn).UpdatedMS
		if now <= version {
			b.Fatalf("version %d became %d", version, now)
		}
		version = now
	}
}

func tellTime(b *Bed) {
	k, ok := b.Journal.(journal.Timekeeper)
	if !ok {
		b.Fatalf("%T is no journal.Timekeeper", b.Journal)
	}
	before, err := k.Clock(b.Context())
	b.must("Clock", err)
	if off := hlc.System.Now().Sub(before); off.Abs() > time.Minute {
		b.Fatalf("the journal's clock is off by %v", off)
	}
	b.awaitClock(before.UnixMilli())
	after, err := k.Clock(b.Context())
	b.must("Clock", err)
	if !after.After(before) {
		b.Fatalf("the journal's clock stands still at %v", before)
	}
}
