package recovery_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// Run ends with its context, and what it was working on is finished.
func TestRunEndsInOrder(t *testing.T) {
	w := newWorld(t)
	txn := w.leave(t, journal.StateCommitted, "")
	before := goleak.IgnoreCurrent()
	ctx, stop := context.WithCancel(t.Context())
	w.a.set(func(s *fakeStore) { s.onFinish = func(branches.Ref) { stop() } })
	running, err := recovery.Start(ctx, w.config)
	if err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	running.Stop()
	if got := w.state(t, txn); got != journal.StateDone {
		t.Errorf("the record is %s: the work was cut short", got)
	}
	goleak.VerifyNone(t, before, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// Run passes again and again, and compacts when it is due.
func TestRunPassesAndCompacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	txn := w.leave(t, journal.StateCommitted, "")
	var passes atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	worker := w.worker(t, func(c *recovery.Config) {
		c.CompactEvery, c.Retain, c.Observer = time.Hour, time.Minute, passCounter{&passes}
	})
	done := make(chan error)
	go func() { done <- worker.Run(ctx) }()
	reach := func(state journal.State) {
		await.Until(t, "the record to be "+state.String(), func() bool {
			if err := w.wall.AwaitSleepers(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			w.wall.Advance(15 * time.Minute)
			return w.state(t, txn) == state
		})
	}
	reach(journal.StateDone)
	w.older(t, 1000*time.Hour)
	reach("")
	stop()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	if passes.Load() < 3 {
		t.Errorf("%d passes", passes.Load())
	}
}

type passCounter struct{ n *atomic.Int64 }

func (c passCounter) Pass(context.Context, recovery.Report, error) { c.n.Add(1) }

// A worker needs a journal, and one that can tell whose a gid is.
func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	if _, err := recovery.New(recovery.Config{}); err != recovery.ErrNoJournal { //nolint:errorlint // it is returned as it is
		t.Errorf("no journal: %v", err)
	}
	w := newWorld(t)
	_, err := recovery.New(recovery.Config{Journal: struct{ journal.Journal }{w.journal}})
	if err == nil || !strings.Contains(err.Error(), "whose a prepared transaction is") {
		t.Errorf("a journal without a registry: %v", err)
	}
	_, err = recovery.Start(t.Context(), badSource{})
	if err == nil || !strings.Contains(err.Error(), "told") {
		t.Errorf("a source that fails: %v", err)
	}
}

type badSource struct{}

func (badSource) Recovery() (recovery.Config, error) { return recovery.Config{}, errFake }

// The note of a finished record, and stories of records in every state.
func TestShowTellsEveryState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.worker(t, func(c *recovery.Config) { c.StaleAfter = time.Hour })
	w.pass(t, worker) // registers the stores
	for _, state := range journal.States {
		txn := w.leave(t, state, "")
		story, err := worker.Show(t.Context(), txn)
		if err != nil {
			t.Fatal(err)
		}
		if story.State != state || story.Happened == "" || story.Next == "" || story.Why == "" || len(story.Branches) != 2 || !story.Branches[0].Prepared {
			t.Errorf("%s: %+v", state, story)
		}
	}
	none, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	story, err := worker.Show(t.Context(), none)
	if err != nil || !strings.Contains(story.Happened, "Nothing is known") {
		t.Errorf("unknown unit: %v, %q", err, story.Happened)
	}
	w.a.hold(none)
	if story, err = worker.Show(t.Context(), none); err != nil || !strings.Contains(story.Next, "ABORTED") {
		t.Errorf("lost record: %v, %q", err, story.Next)
	}
	w.a.set(func(s *fakeStore) { s.applied[none] = true; delete(s.prepared, branches.NewGID(none, "a")) })
	if story, err = worker.Show(t.Context(), none); err != nil || !strings.Contains(story.Happened, "committed in store a") {
		t.Errorf("one-phase commit: %v, %q", err, story.Happened)
	}
	status, err := worker.Status(t.Context())
	if err != nil || status.States[journal.StateActive] != 1 || len(status.Stores) != 2 || len(status.Stores[0].Prepared) != 5 {
		t.Errorf("status: %v, %+v", err, status)
	}
	entries, err := worker.List(t.Context(), recovery.Filter{})
	if err != nil || len(entries) != 3 {
		t.Errorf("list: %v, %d entries; want the 3 that are not final", err, len(entries))
	}
	if fmt.Sprint(entries) == "" || entries[0].Stores[1] != "b" {
		t.Errorf("entry: %+v", entries[0])
	}
}
