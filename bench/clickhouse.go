package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	client "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/chserver"
)

// events is a throw-away table of ClickHouse.
type events struct {
	server   *chserver.Server // nil: somebody's own
	at       chserver.Endpoint
	database string
}

// What TRUNCATE leaves is taken away at once: each part that is kept makes the next
// insert dearer.
const makeEvents = ` (k UInt64, s String, f Float64, n Int32, at DateTime, dat_txn Nullable(UUID), dat_tx_time Nullable(Int64),
	INDEX dat_txn dat_txn TYPE bloom_filter GRANULARITY 1) ENGINE = MergeTree ORDER BY k
	SETTINGS old_parts_lifetime = 0, merge_tree_clear_old_parts_interval_seconds = 1`

var eventColumns = []string{"k", "s", "f", "n", "at"}

func openEvents(ctx context.Context) (*events, error) {
	e := &events{database: "bench_" + strings.ToLower(rand.Text()[:8])}
	at, found, err := chserver.EnvEndpoint()
	if err != nil {
		return nil, err
	}
	if e.at = at; !found {
		if e.server, err = chserver.Launch(ctx, ""); err != nil {
			return nil, err
		}
		e.at = e.server.Endpoint()
	}
	for _, text := range []string{
		"CREATE DATABASE " + e.database,
		"CREATE TABLE " + e.database + ".event" + makeEvents,
		// A merge runs beside whichever side is measured next, whoever wrote the parts.
		"SYSTEM STOP MERGES " + e.database + ".event",
	} {
		if _, err = e.at.Ask(ctx, "", text); err != nil {
			break
		}
	}
	return e, err
}

func (e *events) empty(ctx context.Context) error {
	_, err := e.at.Ask(ctx, "", "TRUNCATE TABLE "+e.database+".event")
	return err
}

func (e *events) close(ctx context.Context) {
	if e.server != nil {
		_ = e.server.Close() // it was thrown away
		return
	}
	_, _ = e.at.Ask(ctx, "", "DROP DATABASE "+e.database+" SYNC") // nor is this of consequence
}

// eventRows are n rows, each of its own.
func eventRows(n int) [][]any {
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = []any{uint64(i), fmt.Sprintf("name %d", i%1000), float64(i) / 3, int32(i), time.Unix(int64(i), 0)}
	}
	return rows
}

// leastWithin is 1 over the goal, 1.2 times the opponent's time.
const leastWithin = 1 / 1.2

// analytic measures a unit of one ClickHouse branch against the same batch
// through clickhouse-go alone, by both protocols, and the memory of its rows. A DSN
// of one store leaves no marker, as clickhouse-go leaves none; with one the unit can
// be settled, for which it pays some requests more, whatever its size.
func analytic(ctx context.Context, rounds int) error {
	e, err := openEvents(ctx)
	if err != nil {
		return err
	}
	defer e.close(ctx)
	for _, protocol := range []struct{ name, dsn string }{
		{"native", e.at.Native(e.database)},
		{"http", e.at.HTTP(e.database)},
	} {
		o := openOpponent(protocol.dsn)
		again := openOpponent(protocol.dsn) // the control pair
		plain := open("rhizodat", "ch="+protocol.dsn)
		marked := open("rhizodat", "ch="+protocol.dsn+" markers=on")
		install(ctx, "ch="+protocol.dsn+" markers=on")
		for _, n := range []int{1, 1000, 100_000} {
			pair := eventPair{ctx: ctx, into: e, rows: eventRows(n), times: max(3, min(30, 20_000/n))}
			pair.show(protocol.name, rounds, o, again, plain, marked)
		}
		must(errors.Join(o.Close(), again.Close()))
		closeAll(plain, marked)
	}
	bytesPerRow(ctx, e)
	return nil
}

// eventPair is one number of rows, written that often in a measurement.
type eventPair struct {
	ctx   context.Context //nolint:containedctx // of one call
	into  *events
	rows  [][]any
	times int
}

func (p eventPair) show(protocol string, rounds int, o, again client.Conn, plain, marked *sql.DB) {
	ours := func(db *sql.DB) func() time.Duration {
		return p.loop(func() error { return appendUnit(p.ctx, db, p.rows) })
	}
	theirs := func(conn client.Conn) func() time.Duration {
		return p.loop(func() error { return batch(p.ctx, conn, p.rows) })
	}
	for _, run := range []func() time.Duration{theirs(o), theirs(again), ours(plain), ours(marked)} {
		run()
	}
	control, _, _ := paired(rounds, theirs(again), theirs(o))
	ratio, our, their := paired(rounds, ours(plain), theirs(o))
	withMarker, withTime, _ := paired(rounds, ours(marked), theirs(o))
	each := func(d time.Duration) time.Duration { return (d / time.Duration(p.times)).Round(time.Microsecond) }
	n := len(p.rows)
	fmt.Printf("%s, %6d rows: clickhouse-go : ours %s   control %s   with a marker %s   (medians %s : %s, with a marker %s)\n",
		protocol, n, ratio, control, withMarker, each(their), each(our), each(withTime))
	goal, ok := ">=0", true
	if n >= 1000 {
		goal, ok = fmt.Sprintf(">=%.3f", leastWithin), ratio.median >= leastWithin
	}
	name := fmt.Sprintf("time_clickhouse_%s_%d_", protocol, n)
	figure(name+"ratio", fmt.Sprintf("%.3f", ratio.median), goal, ok)
	figure(name+"marked_ratio", fmt.Sprintf("%.3f", withMarker.median), ">=0", true)
}

func (p eventPair) loop(run func() error) func() time.Duration {
	return func() time.Duration {
		must(p.into.empty(p.ctx))
		return clients(1, p.times, func(int, int) error { return run() })
	}
}

// appendUnit writes rows in a unit of one branch.
func appendUnit(ctx context.Context, db *sql.DB, rows [][]any) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := rhizodat.Append(ctx, tx, "ch", "event", eventColumns, rhizodat.CopyRows(rows)); err != nil {
		return err
	}
	return tx.Commit()
}

func openOpponent(dsn string) client.Conn {
	options, err := client.ParseDSN(strings.Replace(dsn, chserver.SchemeHTTP, "http", 1))
	must(err)
	conn, err := client.Open(options)
	must(err)
	return conn
}

// batch writes rows as clickhouse-go's own documentation does.
func batch(ctx context.Context, conn client.Conn, rows [][]any) error {
	ctx = client.Context(ctx, client.WithSettings(client.Settings{"async_insert": 0}))
	b, err := conn.PrepareBatch(ctx, "INSERT INTO event (k, s, f, n, at)")
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := b.Append(row...); err != nil {
			return errors.Join(err, b.Abort())
		}
	}
	return b.Send()
}

// mostBytes per buffered row: its values take 33 bytes as ClickHouse keeps them.
const mostBytes = 64

// bytesPerRow prints the memory that a row takes from its statement to its commit.
func bytesPerRow(ctx context.Context, e *events) {
	const n = 500_000
	db := open("rhizodat", "ch="+e.at.Native(e.database))
	defer closeAll(db)
	tx, err := db.BeginTx(ctx, nil)
	must(err)
	rows := eventRows(1000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	next := 0
	_, err = rhizodat.Append(ctx, tx, "ch", "event", eventColumns, func() ([]any, error) {
		if next++; next > n {
			return nil, nil
		}
		row := rows[next%len(rows)]
		row[0], row[2] = uint64(next), float64(next)/3 //nolint:gosec // small
		return row, nil
	})
	must(err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := float64(after.HeapAlloc-before.HeapAlloc) / n
	must(tx.Rollback())
	runtime.KeepAlive(rows)
	fmt.Printf("a buffered row takes %.1f bytes until its commit\n", per)
	figure("clickhouse_bytes_per_buffered_row", fmt.Sprintf("%.1f", per), fmt.Sprintf("<=%d", mostBytes), per <= mostBytes)
}
