package drevo_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/journal"
)

// together calls f at once for 16 journals that know nothing of each other, as
// those of 16 processes.
func together(t *testing.T, location string, f func(i int, j journal.Journal) error) []error {
	t.Helper()
	errs := make([]error, 16)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range errs {
		j := open(t, location, journal.Options{})
		if _, err := j.Clock(t.Context()); err != nil { // connected, and examined
			t.Fatal(err)
		}
		wg.Go(func() {
			<-start
			errs[i] = f(i, j)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func decide(ctx context.Context, j journal.Journal, rec journal.Record) error {
	s, err := j.Session(ctx)
	if err != nil {
		return err
	}
	defer s.Release()
	return s.Decide(ctx, decision(rec))
}

// drevo refuses a transaction whenever any other was first. One of those who
// want the same record wins, and the others are told that they have lost.
func TestOneOf16ProcessesDecides(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	rec := b.active(t)
	won := 0
	for i, err := range together(t, b.graph.URL(), func(_ int, j journal.Journal) error { return decide(t.Context(), j, rec) }) {
		conflict, refused := errors.AsType[*journal.Conflict](err)
		switch {
		case err == nil:
			won++
		case !refused || conflict.Found != journal.StateCommitted:
			t.Errorf("process %d got %v, want nil or a *Conflict that found COMMITTED", i, err)
		}
	}
	if won != 1 {
		t.Errorf("%d processes were acknowledged, want 1", won)
	}
}

// Those who want different records all win, although drevo lets only one of them
// commit at a time.
func TestEachOf16ProcessesDecidesItsOwn(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	var recs [16]journal.Record
	for i := range recs {
		recs[i] = b.active(t)
	}
	for i, err := range together(t, b.graph.URL(), func(i int, j journal.Journal) error { return decide(t.Context(), j, recs[i]) }) {
		if err != nil {
			t.Errorf("process %d got %v", i, err)
		}
		b.expectState(t, recs[i].Txn, journal.StateCommitted)
	}
}

// fenced prepares a transaction in the journal's graph, as somebody may who does
// not know better.
func fenced(t *testing.T, b *bed, gid string) {
	t.Helper()
	tx, err := b.graph.Session(t).BeginTransaction(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Run(t.Context(), "CREATE (:Stranger)", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Run(t.Context(), "CALL drevo.tx.prepare($gid)", map[string]any{"gid": gid}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// hurried is a clock whose sleepers do not sleep; before the n-th would, it calls
// at.
type hurried struct {
	hlc.Wall
	n, slept int
	at       func()
}

func (h *hurried) Sleep(ctx context.Context, d time.Duration) error {
	if h.slept++; h.slept == h.n {
		h.at()
	}
	return ctx.Err()
}

// A fence is waited for, and not for ever.
func TestFence(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	rec := b.active(t)
	fenced(t, b, "stranger")

	wall := &hurried{Wall: hlc.System}
	j := open(t, b.graph.URL(), journal.Options{Wall: wall})
	err := decide(t.Context(), j, rec)
	if !bolt.IsFenced(err) || branches.IsUnknown(err) || j.Classify(err) != branches.Transient {
		t.Fatalf("Decide behind a fence that stays: %v, want its error, transient", err)
	}
	if wall.slept < 20 || wall.slept > 1000 {
		t.Errorf("it has tried %d times", wall.slept+1)
	}
	b.expectState(t, rec.Txn, journal.StateActive)

	wall = &hurried{Wall: hlc.System, n: 3, at: func() {
		if err := b.graph.Resolve(t.Context(), "rollbackPrepared", "stranger"); err != nil {
			t.Error(err)
		}
	}}
	if err := decide(t.Context(), open(t, b.graph.URL(), journal.Options{Wall: wall}), rec); err != nil || wall.slept != wall.n {
		t.Fatalf("Decide behind a fence that falls: %v after %d waits", err, wall.slept)
	}
	b.expectState(t, rec.Txn, journal.StateCommitted)
}

// A write that goes on for long holds up nobody else of its process.
func TestTurnIsACourtesy(t *testing.T) {
	t.Parallel() // it waits
	b := newBed(t, drevotest.Server(t))
	rec := b.active(t)
	stuck, release := make(chan struct{}), make(chan struct{})
	wall := &hurried{Wall: hlc.System, n: 1, at: func() { close(stuck); <-release }}
	j := open(t, b.graph.URL(), journal.Options{Wall: wall})
	fenced(t, b, "stranger")
	answer := make(chan error, 1)
	go func() { answer <- decide(t.Context(), j, rec) }()
	<-stuck
	if err := b.graph.Resolve(t.Context(), "rollbackPrepared", "stranger"); err != nil {
		t.Fatal(err)
	}
	if err := j.Harden(t.Context()); err != nil {
		t.Errorf("Harden behind a write that is stuck: %v", err)
	}
	close(release)
	if err := <-answer; err != nil {
		t.Error(err)
	}
}
