package main

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"time"
)

// single measures (a): a DSN with one store against pgx/v5/stdlib.
func single(ctx context.Context, r *rig, rounds int) {
	pgxDB := open("pgx", r.url("bank_a"))
	again := open("pgx", r.url("bank_a")) // the control pair
	ours := open("rhizodat", "pg="+r.url("bank_a"))
	marked := open("rhizodat", "pg="+r.url("bank_a")+" markers=on")
	defer closeAll(pgxDB, again, ours, marked)

	work := []struct {
		name string
		n    int
		run  func(*sql.DB) error
	}{
		{"exec", 500, func(db *sql.DB) error {
			_, err := db.ExecContext(ctx, "SELECT 1 WHERE $1 = 1", 1)
			return err
		}},
		{"query_1", 500, func(db *sql.DB) error { return query(ctx, db, 1) }},
		{"query_1000", 40, func(db *sql.DB) error { return query(ctx, db, 1000) }},
		{"transaction", 100, func(db *sql.DB) error { return transaction(ctx, db) }},
	}
	for _, w := range work {
		loop := func(db *sql.DB) func() time.Duration {
			return func() time.Duration {
				return clients(1, w.n, func(int, int) error { return w.run(db) })
			}
		}
		for _, db := range []*sql.DB{pgxDB, again, ours, marked} {
			loop(db)() // statements are prepared, plans cached
		}
		control, _, _ := paired(rounds, loop(again), loop(pgxDB))
		ratio, o, t := paired(rounds, loop(ours), loop(pgxDB))
		withMarker, _, _ := paired(rounds, loop(marked), loop(pgxDB))
		per := func(d time.Duration) time.Duration { return d / time.Duration(w.n) }
		fmt.Printf("%-12s pgx : ours %s   control pgx : pgx %s   pgx : ours with a marker %s   (medians %s : %s)\n",
			w.name, ratio, control, withMarker, per(t), per(o))
		figure("time_single_"+w.name+"_ratio", fmt.Sprintf("%.3f", ratio.median), ">=0.95", ratio.median >= .95)
		extra := allocs(w.n, func() error { return w.run(ours) }) - allocs(w.n, func() error { return w.run(pgxDB) })
		if w.name == "transaction" {
			extra /= 4 // BEGIN, two statements, COMMIT
		}
		figure("single_"+w.name+"_extra_allocs", fmt.Sprintf("%.2f", extra), "<=2", extra <= 2.05)
	}
}

func query(ctx context.Context, db *sql.DB, limit int) error {
	rows, err := db.QueryContext(ctx, "SELECT id, name, price::text, at FROM item ORDER BY id LIMIT $1", limit)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var (
			id          int64
			name, price string
			at          time.Time
		)
		if err := rows.Scan(&id, &name, &price, &at); err != nil {
			return err
		}
	}
	return rows.Err()
}

func transaction(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, amount := range []int{-1, 1} {
		if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + $1 WHERE id = $2", amount, 7); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// allocs counts the allocations of one run of f, over n runs.
func allocs(n int, f func() error) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		must(f())
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n)
}

func closeAll(dbs ...*sql.DB) {
	for _, db := range dbs {
		_ = db.Close()
	}
}
