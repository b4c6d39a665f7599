package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/bench/floor"
	"github.com/rhizodat/rhizodat-go/lease"
	"github.com/rhizodat/rhizodat-go/step"
)

// concurrent measures what one writer at a time costs: leases, commits under them,
// steps, and the archive.
func concurrent(ctx context.Context, r *rig, rounds int) error {
	takeAndGive(ctx, r, rounds)
	underLease(ctx, r, rounds)
	replay(ctx, r, rounds)
	kept(ctx, r)
	return archived(ctx, rounds)
}

// takeAndGive measures acquire and release against two forced statements.
func takeAndGive(ctx context.Context, r *rig, rounds int) {
	const n = 60
	db := open("rhizodat", r.dsn())
	theirs := must1(floor.OpenLeases(ctx, r.url("coord")))
	run := func() time.Duration {
		return clients(1, n, func(int, int) error {
			l, err := lease.Acquire(ctx, db, "bench/taken")
			if err != nil {
				return err
			}
			return l.Release(ctx)
		})
	}
	opponent := func() time.Duration {
		return clients(1, n, func(int, int) error { return theirs.TakeAndGive(ctx, "bench/taken", "me") })
	}
	run()
	opponent()
	ratio, o, t := paired(rounds, run, opponent)
	control, _, _ := paired(rounds, opponent, opponent)
	rate := func(d time.Duration) float64 { return n / d.Seconds() }
	fmt.Printf("acquire and release: two statements : ours %s   control %s   (per second %.0f : %.0f)\n", ratio, control, rate(t), rate(o))
	figure("time_lease_ratio", fmt.Sprintf("%.3f", ratio.median), ">=0", true)
	must(db.Close())
	must(theirs.Close(ctx))
}

// long is a lease that is not renewed while it is measured.
const long = time.Hour

// underLease measures what WithLease adds to a commit of two stores.
func underLease(ctx context.Context, r *rig, rounds int) {
	const n = 60
	db := open("rhizodat", r.dsn())
	l := must1(lease.Acquire(ctx, db, "bench/commit", lease.WithTTL(long)))
	under := rhizodat.WithLease(ctx, l)
	commits := func(ctx context.Context) func() time.Duration {
		return func() time.Duration {
			return clients(1, n, func(c, i int) error { return transfer(ctx, db, account(c, i), account(i, c)) })
		}
	}
	commits(under)()
	commits(ctx)()
	ratio, o, t := paired(rounds, commits(under), commits(ctx))
	control, _, _ := paired(rounds, commits(ctx), commits(ctx))
	fmt.Printf("a commit of two stores: without a lease : under one %s   control %s   (per transaction %s : %s)\n", ratio, control, t/n, o/n)
	figure("time_with_lease_ratio", fmt.Sprintf("%.3f", ratio.median), ">=0", true)
	must(l.Release(ctx))
	must(db.Close())

	statements, syncs := leasedCost(ctx, r, true)
	bareStatements, bareSyncs := leasedCost(ctx, r, false)
	fmt.Printf("per transaction: under a lease %.2f statements, %.2f forced writes; without %.2f statements, %.2f forced writes\n",
		statements, syncs, bareStatements, bareSyncs)
	more, moreSyncs := statements-bareStatements, syncs-bareSyncs
	figure("with_lease_extra_statements", fmt.Sprintf("%.2f", more), "<=1", more <= 1.05)
	figure("with_lease_extra_forced_writes", fmt.Sprintf("%.2f", moreSyncs), "<=0.5", moreSyncs <= .5)
}

// leasedCost counts transfers of a process that holds a lease, whether they are under
// it or not.
func leasedCost(ctx context.Context, r *rig, under bool) (statements, syncs float64) {
	return r.cost(ctx, serverNames, 200, func() (func(int) error, func()) {
		db := open("rhizodat", r.dsn())
		l := must1(lease.Acquire(ctx, db, "bench/count", lease.WithTTL(long)))
		of := ctx
		if under {
			of = rhizodat.WithLease(ctx, l)
		}
		return func(i int) error { return transfer(of, db, account(1, i), account(i, 1)) },
			func() { must(errors.Join(l.Release(ctx), db.Close())) }
	})
}

// replay measures a step that is recorded against one query for its row.
func replay(ctx context.Context, r *rig, rounds int) {
	const n = 300
	db, plain := open("rhizodat", r.dsn()), open("pgx", r.url("coord"))
	key := step.Key{Execution: "bench", Label: "replay", Input: 7}
	do := func(int, int) error {
		_, err := step.Do(ctx, db, key, func(context.Context) (string, error) { return "the value", nil })
		return err
	}
	ask := func(int, int) error {
		var value string
		return plain.QueryRowContext(ctx, "SELECT value FROM dat_step WHERE execution = $1 AND label = $2", key.Execution, key.Label).Scan(&value)
	}
	run := func() time.Duration { return clients(1, n, do) }
	opponent := func() time.Duration { return clients(1, n, ask) }
	run()
	opponent()
	ratio, o, t := paired(rounds, run, opponent)
	control, _, _ := paired(rounds, opponent, opponent)
	fmt.Printf("a recorded step: one query : ours %s   control %s   (medians %s : %s)\n", ratio, control, t/n, o/n)
	figure("time_step_replay_ratio", fmt.Sprintf("%.3f", ratio.median), ">=0", true)
	closeAll(db, plain)
}

// What one process keeps, and for how long it is watched.
const (
	keptLeases  = 100
	keptTTL     = 6 * time.Second
	renewPeriod = keptTTL / 3
	keptPeriods = 4
)

// kept counts what the journal is asked while one process keeps many leases.
func kept(ctx context.Context, r *rig) {
	db := open("rhizodat", r.dsn())
	held := make([]*lease.Lease, keptLeases)
	for i := range held {
		held[i] = must1(lease.Acquire(ctx, db, fmt.Sprint("bench/kept/", i), lease.WithTTL(keptTTL)))
	}
	watch := must1(pgx.Connect(ctx, r.url("coord")))
	await(ctx, watch, renewals(ctx, watch).calls+2) // they come to be renewed together, however they were acquired
	first, began := renewals(ctx, watch), time.Now()
	last := await(ctx, watch, first.calls+keptPeriods)
	periods := float64(time.Since(began)) / float64(renewPeriod)
	for _, l := range held {
		must(context.Cause(l.Context()))
		must(l.Release(ctx))
	}
	must(watch.Close(ctx))
	must(db.Close())
	each, all := float64(last.calls-first.calls)/periods, float64(last.all-first.all)/periods
	fmt.Printf("%d leases kept by one process: %.2f renewals in each period of %s, and %.2f statements in all, %.2f a second\n",
		keptLeases, each, renewPeriod, all, all/renewPeriod.Seconds())
	figure("leases_kept_renewals_per_period", fmt.Sprintf("%.2f", each), "<=1", each <= 1.05)
	figure("leases_kept_statements_per_period", fmt.Sprintf("%.2f", all), ">=0", true)
}

// asked is what the journal's server has been asked.
type asked struct{ calls, all int64 }

// renewals counts the statements that renew leases, and all but our own looks.
func renewals(ctx context.Context, watch *pgx.Conn) (n asked) {
	must(watch.QueryRow(ctx, `SELECT coalesce(sum(calls) FILTER (WHERE query LIKE '%UPDATE "public".dat_lease %expires_at%due.ttl%'), 0)::bigint,
		coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_%'`).Scan(&n.calls, &n.all))
	return n
}

// await waits until the leases were renewed that often.
func await(ctx context.Context, watch *pgx.Conn, calls int64) asked {
	for deadline := time.Now().Add(2 * keptPeriods * keptTTL); ; time.Sleep(20 * time.Millisecond) {
		n := renewals(ctx, watch)
		if n.calls >= calls {
			return n
		}
		if time.Now().After(deadline) {
			must(errors.New("count renewals: none come"))
		}
	}
}
