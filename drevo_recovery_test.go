package rhizodat_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// atRelease calls f as soon as a unit is decided.
type atRelease struct{ f func() }

func (a atRelease) Step(_ context.Context, e coordinator.StepEvent) {
	if e.Step == coordinator.S8 && e.Moment == coordinator.Before && e.Store == "" {
		a.f()
	}
}

func (atRelease) Outcome(context.Context, coordinator.OutcomeEvent) {}

// commitObserved commits a unit over both stores, f being called after S7.
func (m *grown) commitObserved(t *testing.T, f func()) error {
	t.Helper()
	db := sql.OpenDB(connector(t, m.dsn, atRelease{f}))
	defer func() { _ = db.Close() }()
	tx := begin(t, t.Context(), db)
	exec(t, tx, debit, 1, 10)
	exec(t, tx, person, named(1)...)
	return tx.Commit()
}

// The server dies between the decision and commitPrepared: the unit is committed
// and pending, and recovery finishes it, once.
func TestDrevoDownAfterDecision(t *testing.T) {
	cluster := drevotest.Own(t)
	m := newGrown(t, cluster, "finish_timeout=300ms")
	err := m.commitObserved(t, func() { cluster.Kill(t) })
	pending, ok := errors.AsType[*rhizodat.CommittedPending](err)
	if !ok || len(pending.Stores) != 1 || pending.Stores[0] != "graph" {
		t.Fatalf("commit = %v, want pending in graph", err)
	}
	if report := m.recover(t); report.Pending == 0 {
		t.Errorf("recovery while the server is down: %+v", report)
	}
	cluster.Start(t)
	if got := m.graph.Prepared(t); len(got) != 1 {
		t.Errorf("prepared after the restart: %v", got)
	}
	for range 2 {
		m.recover(t)
		m.want(t, "1", "1")
	}
	found, err := connectorLookup(t, m.dsn, pending.DatTxn)
	if err != nil || found.Verdict != rhizodat.VerdictCommitted {
		t.Errorf("lookup = %v, %v", found.Verdict, err)
	}
}

// drevo rolls a decided branch back by itself: nobody is told that it committed.
func TestDrevoHeuristic(t *testing.T) {
	m := newGrown(t, drevotest.Server(t))
	err := m.commitObserved(t, func() {
		for _, gid := range m.graph.Prepared(t) {
			if err := m.graph.Resolve(t.Context(), "heuristicRollback", gid); err != nil {
				t.Error(err)
			}
		}
	})
	heuristic, ok := errors.AsType[*rhizodat.Heuristic](err)
	if !ok || len(heuristic.Stores) != 1 || heuristic.Stores[0] != "graph" {
		t.Fatalf("commit = %v, want heuristic in graph", err)
	}
	m.want(t, "1", "")
}

// A process dies after prepare and before the decision: the sweep rolls back what
// no journal knows, and the fence is down.
func TestDrevoSweep(t *testing.T) {
	m := newGrown(t, drevotest.Server(t))
	m.recover(t) // binds the store to the journal
	store, err := drevo.Open("graph", m.graph.URL(), drevo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	session, err := store.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := session.Begin(t.Context(), branches.BeginOptions{Txn: txn})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Exec(t.Context(), "CREATE (:Person {id: 9})", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Stage(t.Context(), branches.Unit{Txn: txn, TxTime: 1, Marker: true}); err != nil {
		t.Fatal(err)
	}
	if err := b.Prepare(t.Context(), branches.NewGID(txn, "graph")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m.recover(t)
	}
	m.want(t, "", "")
	m.graph.Exec(t, "CREATE (:Person {id: 1})")
	m.want(t, "", "1")
}

// Writers of one graph refuse each other, by the fence and by conflicts: all of
// them finish by Run, whose full jitter keeps them from meeting again and again.
func TestWritersAgainstTheFence(t *testing.T) {
	const writers, units = 16, 3
	m := newGrown(t, drevotest.Server(t))
	db := openDSN(t, m.dsn)
	var (
		all      sync.WaitGroup
		attempts atomic.Int64
		worst    atomic.Int64
	)
	policy := rhizodat.Policy{Attempts: 200, Deadline: time.Minute, Base: 20 * time.Millisecond, Max: 500 * time.Millisecond}
	for w := range writers {
		all.Go(func() {
			for u := range units {
				mine := int64(0)
				_, err := rhizodat.Run(t.Context(), db, policy, func(ctx context.Context, tx *sql.Tx) error {
					attempts.Add(1)
					mine++
					id := 100*w + u
					if _, err := tx.ExecContext(ctx, person, named(id)...); err != nil {
						return err
					}
					_, err := tx.ExecContext(ctx, debit, id, 1)
					return err
				})
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
				for seen := worst.Load(); mine > seen && !worst.CompareAndSwap(seen, mine); seen = worst.Load() {
				}
			}
		})
	}
	all.Wait()
	if n := m.graph.Count(t, "Person"); n != writers*units {
		t.Errorf("%d people, want %d", n, writers*units)
	}
	if n := m.pg.Int(t, pgtest.Name(m.bank), "SELECT count(*) FROM account"); n != writers*units {
		t.Errorf("%d accounts, want %d", n, writers*units)
	}
	// In lockstep one of 16 would win each time: 8.5 attempts for a commit.
	const lockstep = (writers + 1) / 2.0
	mean := float64(attempts.Load()) / (writers * units)
	t.Logf("%d writers, %d commits: %.1f attempts a commit, at most %d", writers, writers*units, mean, worst.Load())
	t.Logf("figure drevo_attempts_per_commit %.1f <%.1f %s", mean, lockstep, map[bool]string{true: "ok", false: "short"}[mean < lockstep])
	if mean >= lockstep {
		t.Errorf("%.1f attempts a commit: the writers run in lockstep", mean)
	}
}
