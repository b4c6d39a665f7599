package main

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/bench/floor"
	"github.com/rhizodat/rhizodat-go/coordinator"
)

// windows gathers the lock windows that the observer reports.
type windows struct {
	mu     sync.Mutex
	sample []float64
}

func (*windows) Step(context.Context, rhizodat.StepEvent) {}

func (w *windows) Outcome(_ context.Context, e rhizodat.OutcomeEvent) {
	if e.Verdict != coordinator.VerdictCommitted {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sample = append(w.sample, float64(e.LockWindow)/float64(time.Millisecond))
}

// double measures (b) and (c): two databases and a journal against the floor.
func double(ctx context.Context, r *rig, rounds int) {
	for _, k := range []int{1, 4, 16} {
		n := 60
		if k > 1 {
			n = 160 / k
		}
		w := &windows{}
		ours := openObserved(r, k, w)
		theirs, err := floor.Open(ctx, r.url("bank_a"), r.url("bank_b"), r.url("coord"), k)
		must(err)
		run := func() time.Duration {
			return clients(k, n, func(c, i int) error { return transfer(ctx, ours, account(c, i), account(i, c)) })
		}
		opponent := func() time.Duration {
			return clients(k, n, func(c, i int) error { return theirs.Transfer(ctx, account(c, i), account(i, c), 1) })
		}
		run()
		opponent()
		ratio, o, t := paired(rounds, run, opponent)
		control, _, _ := paired(rounds, opponent, opponent)
		fmt.Printf("two stores, %2d clients: floor : ours %s   control floor : floor %s   (per transaction %s : %s)\n",
			k, ratio, control, t/time.Duration(n*k), o/time.Duration(n*k))
		goal, ok := ">=0", true
		if k > 1 {
			goal, ok = ">=0.9", ratio.median >= .9
		}
		figure(fmt.Sprintf("time_double_%d_ratio", k), fmt.Sprintf("%.3f", ratio.median), goal, ok)
		figure(fmt.Sprintf("time_double_%d_lock_window_ms", k), fmt.Sprintf("%.3f", quartilesOf(w.sample).median), ">=0", true)
		must(ours.Close())
		theirs.Close()
	}
	costs(ctx, r)
}

// costs prints statements and forced writes per transaction of both.
func costs(ctx context.Context, r *rig) {
	const n = 200
	s, f := r.cost(ctx, serverNames, n, func() (func(int) error, func()) {
		ours := openObserved(r, 1, &windows{})
		return func(i int) error { return transfer(ctx, ours, account(1, i), account(i, 1)) }, func() { must(ours.Close()) }
	})
	ts, tf := r.cost(ctx, serverNames, n, func() (func(int) error, func()) {
		theirs := must1(floor.Open(ctx, r.url("bank_a"), r.url("bank_b"), r.url("coord"), 1))
		return func(i int) error { return theirs.Transfer(ctx, account(1, i), account(i, 1), 1) }, theirs.Close
	})
	fmt.Printf("per transaction: ours %.1f statements, %.1f forced writes; floor %.1f statements, %.1f forced writes\n", s, f, ts, tf)
	figure("double_forced_writes_above_floor", fmt.Sprintf("%.2f", f-tf), "<=0.5", f-tf <= .5)
}

func openObserved(r *rig, k int, w *windows) *sql.DB { return openWith(r.dsn(), k, w) }

// openWith makes a pool that keeps k connections.
func openWith(dsn string, k int, observer rhizodat.Observer) *sql.DB {
	cfg := must1(rhizodat.ParseDSN(dsn))
	cfg.Observer = observer
	db := sql.OpenDB(must1(rhizodat.NewConnector(cfg)))
	db.SetMaxOpenConns(k)
	db.SetMaxIdleConns(k)
	return db
}

func transfer(ctx context.Context, db *sql.DB, from, to int64) error {
	_, err := rhizodat.Run(ctx, db, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "store:a UPDATE account SET balance = balance - $1 WHERE id = $2", 1, from); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "store:b UPDATE account SET balance = balance + $1 WHERE id = $2", 1, to)
		return err
	})
	return err
}

func account(a, b int) int64 { return int64((a*61 + b*7) % accounts) }
