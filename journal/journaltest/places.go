package journaltest

import (
	"context"
	"errors"
	"time"

	"github.com/rhizodat/rhizodat-go/journal"
)

var places = []Item{
	{"places/a taken place is waited for as long as the context allows", placesTaken},
	{"places/a listing does not wait for a commit", placesSpare},
	{"places/a released session is of no use, and may be released again", placesReleased},
	{"places/a closed journal hands out nothing", placesClosed},
}

func placesTaken(b *Bed) {
	j := b.Open(journal.Options{Places: 1})
	first, err := j.Session(b.Context())
	b.must("Session", err)
	txn := b.in(first, journal.StatePrepared)

	short, cancel := context.WithTimeout(b.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := j.Session(short); !errors.Is(err, context.DeadlineExceeded) {
		b.Fatalf("a second session of one place: %v, want the context's error", err)
	}

	second := make(chan error, 1)
	go func() {
		s, err := j.Session(b.Context())
		if err == nil {
			_, err = s.Abort(b.Context(), txn, journal.Forced)
			s.Release()
		}
		second <- err
	}()
	b.must("Decide", first.Decide(b.Context(), journal.Decision{Txn: txn, TxTime: someTime}))
	first.Release()
	b.must("the session that waited", <-second)
	b.expectState(b.session(), txn, journal.StateCommitted)
}

// placesSpare: a coordinator calls these while it holds its session.
func placesSpare(b *Bed) {
	j := b.Open(journal.Options{Places: 1})
	s, err := j.Session(b.Context())
	b.must("Session", err)
	defer s.Release()
	txn := b.in(s, journal.StateCommitted)
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	b.must("Harden", j.Harden(ctx))
	rec := b.read(s, txn)
	b.must("Annotate", j.Annotate(ctx, rec))
	found := 0
	b.must("Scan", j.Scan(ctx, journal.Filter{States: journal.States}, func(journal.Record) error { found++; return nil }))
	if found != 1 {
		b.Fatalf("Scan found %d records, want 1", found)
	}
}

func placesReleased(b *Bed) {
	j := b.Open(journal.Options{Places: 1})
	s, err := j.Session(b.Context())
	b.must("Session", err)
	txn := b.in(s, journal.StatePrepared)
	s.Release()
	s.Release()
	if err := s.Decide(b.Context(), journal.Decision{Txn: txn, TxTime: someTime}); err == nil {
		b.Fatalf("a released session decided")
	}
	again, err := j.Session(b.Context()) // the one place, given back once
	b.must("Session", err)
	defer again.Release()
	short, cancel := context.WithTimeout(b.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := j.Session(short); !errors.Is(err, context.DeadlineExceeded) {
		b.Fatalf("releasing twice made a second place: %v", err)
	}
	b.expectState(again, txn, journal.StatePrepared)
}

func placesClosed(b *Bed) {
	j := b.Open(journal.Options{})
	s, err := j.Session(b.Context())
	b.must("Session", err)
	b.in(s, journal.StateCommitted)
	s.Release()
	b.must("Close", j.Close())
	b.must("Close again", j.Close())
	if _, err := j.Session(b.Context()); err == nil {
		b.Fatalf("a closed journal handed out a session")
	}
	if err := j.Harden(b.Context()); err == nil {
		b.Fatalf("a closed journal hardened")
	}
}
