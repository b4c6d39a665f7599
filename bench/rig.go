package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the opponent's driver, "pgx"

	"github.com/rhizodat/rhizodat-go/internal/pgserver"
)

// accounts in each database; enough that 16 clients seldom meet.
const accounts = 1000

// rig is three servers, as a deployment has them: two banks and a coordinator's.
type rig struct {
	servers map[string]*pgserver.Server // bank_a, bank_b, coord
}

var serverNames = []string{"bank_a", "bank_b", "coord"}

// newRig starts the servers with everything forced, as in production.
func newRig(ctx context.Context) (*rig, error) {
	r := &rig{servers: map[string]*pgserver.Server{}}
	for _, name := range serverNames {
		s, err := pgserver.Launch(ctx, "shared_buffers=128MB", "max_prepared_transactions=2000",
			"max_connections=200", "autovacuum=off",
			"shared_preload_libraries=pg_stat_statements", "pg_stat_statements.max=100000")
		if err != nil {
			r.close()
			return nil, err
		}
		r.servers[name] = s
		if err := r.exec(ctx, name, "postgres", `CREATE DATABASE `+name); err != nil {
			r.close()
			return nil, err
		}
		if err := r.exec(ctx, name, name, `CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
			CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL);
			INSERT INTO account SELECT n, 1000 FROM generate_series(0, `+fmt.Sprint(accounts-1)+`) n;
			CREATE TABLE item (id bigint PRIMARY KEY, name text NOT NULL, price numeric NOT NULL, at timestamptz NOT NULL);
			INSERT INTO item SELECT n, 'item ' || n, n * 1.25, now() FROM generate_series(0, 999) n`); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

func (r *rig) close() {
	for _, s := range r.servers {
		_ = s.Close()
	}
}

func (r *rig) url(name string) string { return r.servers[name].DSN(name) }

// dsn of our driver over the two banks.
func (r *rig) dsn() string {
	return "a=" + r.url("bank_a") + " b=" + r.url("bank_b") + " journal=" + r.url("coord")
}

func (r *rig) exec(ctx context.Context, server, database, text string) error {
	c, err := pgx.Connect(ctx, r.servers[server].DSN(database))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	_, err = c.PgConn().Exec(ctx, text).ReadAll()
	return err
}

// counters are a server's own. A backend hands its numbers in when it ends: they
// are exact where every connection has been closed.
type counters struct{ statements, syncs int64 }

func (r *rig) counters(ctx context.Context, servers ...string) (counters, error) {
	var sum counters
	for _, name := range servers {
		c, err := pgx.Connect(ctx, r.url(name))
		if err != nil {
			return sum, err
		}
		var calls, syncs int64
		if err = alone(ctx, c); err == nil {
			err = c.QueryRow(ctx, `SELECT (SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_%'), (SELECT wal_sync FROM pg_stat_wal)`).Scan(&calls, &syncs)
		}
		_ = c.Close(ctx)
		if err != nil {
			return sum, err
		}
		sum.statements += calls
		sum.syncs += syncs
	}
	return sum, nil
}

// alone waits for the end of the other backends, whose clients have gone.
func alone(ctx context.Context, c *pgx.Conn) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var others int
		err := c.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&others)
		switch {
		case err != nil || others == 0:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("count costs: %d connections are still open", others)
		}
	}
}

// cost is what one run of work takes, of n, in statements and forced writes of some
// servers. begin opens its connections and end closes them; no other is open.
func (r *rig) cost(ctx context.Context, servers []string, n int, begin func() (work func(i int) error, end func())) (statements, syncs float64) {
	before := must1(r.counters(ctx, servers...))
	work, end := begin()
	for i := range n {
		must(work(i))
	}
	end()
	after := must1(r.counters(ctx, servers...))
	return float64(after.statements-before.statements) / float64(n), float64(after.syncs-before.syncs) / float64(n)
}

// open makes a pool that keeps one connection.
func open(driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	must(err)
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	return db
}

// clients runs work n times on each of k goroutines and returns the time of all.
func clients(k, n int, work func(client, i int) error) time.Duration {
	var wg sync.WaitGroup
	start := time.Now()
	for c := range k {
		wg.Go(func() {
			for i := range n {
				must(work(c, i))
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func must1[T any](value T, err error) T {
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", mask(err))
		os.Exit(1)
	}
}

// mask keeps the fixtures' passwords out of what is printed.
func mask(err error) string {
	text := err.Error()
	if u, perr := url.Parse(text); perr == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}
