package journaltest

import (
	"context"
	"errors"
	"sync"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// writers of a race, and its rounds.
const (
	writers = 16
	rounds  = 10
)

var races = []Item{
	{"race/one of 16 Creates wins", func(b *Bed) {
		b.race(absent, journal.StateActive, func(ctx context.Context, s journal.Session, txn branches.TxnID) error {
			rec := journal.Record{Txn: txn, TxTime: someTime}
			return s.Create(ctx, &rec)
		})
	}},
	{"race/one of 16 Prepares wins", func(b *Bed) {
		b.race(journal.StateActive, journal.StatePrepared, func(ctx context.Context, s journal.Session, txn branches.TxnID) error {
			return s.Prepare(ctx, journal.Decision{Txn: txn, TxTime: someTime})
		})
	}},
	{"race/one of 16 Decides wins", func(b *Bed) {
		b.race(journal.StatePrepared, journal.StateCommitted, func(ctx context.Context, s journal.Session, txn branches.TxnID) error {
			return s.Decide(ctx, journal.Decision{Txn: txn, TxTime: someTime})
		})
	}},
	{"race/one of 16 Decides with Prepare wins", func(b *Bed) {
		b.race(journal.StateActive, journal.StateCommitted, func(ctx context.Context, s journal.Session, txn branches.TxnID) error {
			return s.Decide(ctx, journal.Decision{Txn: txn, TxTime: someTime, WithPrepare: true})
		})
	}},
	{"race/one of 16 Finishes counts", func(b *Bed) {
		b.race(journal.StateCommitted, journal.StateDone, func(ctx context.Context, _ journal.Session, txn branches.TxnID) error {
			n, err := b.Journal.Finish(ctx, []branches.TxnID{txn})
			if err == nil && n == 0 {
				return &journal.Conflict{Txn: txn}
			}
			return err
		})
	}},
	{"race/deciding against aborting", raceOfOutcome},
	{"race/creating against aborting", raceOfBirth},
	{"race/commits at once, each with its own answer", raceOfCommits},
}

// race lets many writers try the same change of one record: J1.
func (b *Bed) race(from, to journal.State, change func(context.Context, journal.Session, branches.TxnID) error) {
	b.Helper()
	reader := b.session()
	for range rounds {
		txn := b.in(reader, from)
		won := 0
		for _, err := range b.together(writers-1, func(ctx context.Context, _ int, s journal.Session) error {
			return change(ctx, s, txn)
		}) {
			if err == nil {
				won++
			} else if _, refused := errors.AsType[*journal.Conflict](err); !refused {
				b.Fatalf("a writer got %v, want nil or a *Conflict", err)
			}
		}
		if won != 1 {
			b.Fatalf("%d writers were acknowledged, want 1", won)
		}
		b.expectState(reader, txn, to)
	}
}

// together runs n functions at once, each with a session of its own.
func (b *Bed) together(n int, f func(ctx context.Context, i int, s journal.Session) error) []error {
	b.Helper()
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		s, err := b.Journal.Session(b.Context())
		if err != nil {
			b.Fatalf("Session: %v", err)
		}
		wg.Go(func() {
			defer s.Release()
			<-start
			errs[i] = f(b.Context(), i, s)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// raceOfOutcome: coordinators decide while workers abort. Whatever wins, every
// answer that was given is the one that stands.
func raceOfOutcome(b *Bed) {
	b.Helper()
	reader := b.session()
	for range rounds {
		txn := b.in(reader, journal.StateActive)
		states := make([]journal.State, writers-1)
		decided := 0
		for i, err := range b.together(len(states), func(ctx context.Context, i int, s journal.Session) (err error) {
			if i%2 == 0 {
				return s.Decide(ctx, journal.Decision{Txn: txn, TxTime: someTime, WithPrepare: true})
			}
			states[i], err = s.Abort(ctx, txn, journal.Durability(i/2%2))
			return err
		}) {
			_, refused := errors.AsType[*journal.Conflict](err)
			decides := i%2 == 0
			switch {
			case decides && err == nil:
				decided++
			case decides && refused, err == nil:
			default:
				b.Fatalf("writer %d got %v", i, err)
			}
		}
		stands := b.read(reader, txn).State
		want := map[journal.State]int{journal.StateCommitted: 1, journal.StateAborted: 0}
		if n, ok := want[stands]; !ok || n != decided {
			b.Fatalf("%d deciders were acknowledged and the record is %s", decided, stands)
		}
		for i := 1; i < len(states); i += 2 {
			if states[i] != stands {
				b.Fatalf("Abort answered %s and the record is %s", states[i], stands)
			}
		}
	}
}

// raceOfBirth: a worker forbids a commit whose S4 is just being written.
func raceOfBirth(b *Bed) {
	b.Helper()
	reader := b.session()
	for range rounds {
		txn := b.txn()
		var aborted journal.State
		errs := b.together(2, func(ctx context.Context, i int, s journal.Session) (err error) {
			if i == 0 {
				rec := journal.Record{Txn: txn, TxTime: someTime}
				return s.Create(ctx, &rec)
			}
			aborted, err = s.Abort(ctx, txn, journal.Forced)
			return err
		})
		if errs[0] != nil {
			b.expectConflict(errs[0], txn, journal.StateAborted)
		}
		b.must("Abort", errs[1])
		if aborted != journal.StateAborted {
			b.Fatalf("Abort answered %s, want ABORTED", aborted)
		}
		b.expectState(reader, txn, journal.StateAborted)
	}
}

// raceOfCommits: many commits write their records and decide them at once, some
// of them aborted in between. A journal may write for several in one transaction,
// and still each is told of its own record.
func raceOfCommits(b *Bed) {
	b.Helper()
	reader := b.session()
	for round := range rounds {
		txns := make([]branches.TxnID, writers-1)
		for i := range txns {
			txns[i] = b.txn()
		}
		times := make([]hlc.Time, len(txns))
		for i, err := range b.together(len(txns), func(ctx context.Context, i int, s journal.Session) error {
			rec := journal.Record{Txn: txns[i], TxTime: someTime + hlc.Time(i)}
			err := s.Create(ctx, &rec)
			times[i] = rec.TxTime
			return err
		}) {
			b.must("Create", err)
			if want := someTime + hlc.Time(i); times[i] != want {
				b.Fatalf("record %d was stamped %d, want %d", i, times[i], want)
			}
		}
		for i := round % 3; i < len(txns); i += 3 {
			b.abort(reader, txns[i])
		}
		for i, err := range b.together(len(txns), func(ctx context.Context, i int, s journal.Session) error {
			return s.Decide(ctx, journal.Decision{Txn: txns[i], TxTime: times[i], WithPrepare: true})
		}) {
			want := journal.StateCommitted
			if i%3 == round%3 {
				want = journal.StateAborted
				b.expectConflict(err, txns[i], want)
			} else {
				b.must("Decide", err)
			}
			b.expectState(reader, txns[i], want)
		}
	}
}
