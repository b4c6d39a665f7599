package rhizodat_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/pgserver"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// PgBouncer in transaction mode gives every transaction another connection of
// the server, so that no state of a session can be relied on. The URLs of
// stores and journal say so by default_query_exec_mode.
func TestPgBouncer(t *testing.T) {
	s := pgtest.NewSuite(t, "pgbouncer")
	for _, mode := range []string{"exec", "simple_protocol"} {
		for _, item := range []struct {
			name string
			run  func(*pooled)
		}{
			{"one store", (*pooled).oneStore},
			{"two stores", (*pooled).twoStores},
			{"savepoints and constraints", (*pooled).savepoints},
			{"many units on few connections", (*pooled).many},
			{"copy", (*pooled).copy},
			{"undecided unit is rolled back", (*pooled).aborted},
			{"decided unit is rolled forward", (*pooled).forward},
			{"unit of another role", (*pooled).owner},
		} {
			s.Run(mode+"/"+item.name, func(t *testing.T) {
				t.Helper()
				item.run(newPooled(t, mode, "default_pool_size=6"))
			})
		}
	}
	// What does not work, so that docs/orms.md stays true.
	for _, item := range []struct {
		mode, name string
		run        func(*pooled)
		settings   []string
	}{
		{"cache_statement", "prepared statements", (*pooled).statements, []string{"default_pool_size=1", "admin_users=postgres"}},
		{"exec", "db.Prepare", (*pooled).statements, []string{"default_pool_size=1", "admin_users=postgres"}},
		{"exec", "session state", (*pooled).state, []string{"default_pool_size=1"}},
		{"exec", "schema in the URL", (*pooled).schema, nil},
	} {
		s.Run(item.mode+"/"+item.name, func(t *testing.T) {
			t.Helper()
			item.run(newPooled(t, item.mode, item.settings...))
		})
	}
}

// pooled is a rig whose connections go through PgBouncer.
type pooled struct {
	*rig
	t       *testing.T
	mode    string
	through func(database string) string
}

func newPooled(t *testing.T, mode string, settings ...string) *pooled {
	t.Helper()
	p := &pooled{rig: newRig(t), t: t, mode: mode}
	bouncer := p.cluster.Bouncer(t, settings...)
	p.through = func(database string) string { return bouncer(database) + "&default_query_exec_mode=" + mode }
	p.dsn = "a=" + p.through(p.a) + " b=" + p.through(p.b) + " journal=" + p.through(p.journal) + " default=a"
	return p
}

func (p *pooled) oneStore() {
	t := p.t
	db := openDSN(t, "pg="+p.through(p.a))
	var name string
	err := db.QueryRowContext(t.Context(), `INSERT INTO item (id, name) VALUES ($1, $2) RETURNING name`, 1, "one").Scan(&name)
	if err != nil || name != "one" {
		t.Errorf("returning: %q, %v", name, err)
	}
	var n int
	err = db.QueryRowContext(t.Context(), `SELECT count(*) FROM item WHERE name = ANY($1)`, []string{"one", "two"}).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("array: %d, %v", n, err)
	}
	for id, end := range map[int]func(*sql.Tx) error{2: (*sql.Tx).Commit, 3: (*sql.Tx).Rollback} {
		tx := begin(t, t.Context(), db)
		exec(t, tx, insert, id, "x")
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
	}
	p.want(t, "1 2", "")
}

func (p *pooled) twoStores() {
	t := p.t
	db := p.open(t)
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, end := range map[int]func(*sql.Tx) error{1: (*sql.Tx).Commit, 2: (*sql.Tx).Rollback} {
		tx := begin(t, t.Context(), db)
		exec(t, tx, "store:a "+insert, id, "x")
		exec(t, tx, "store:b "+insert, id, "x")
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
	}
	ctx, h := rhizodat.Track(t.Context())
	tx := begin(t, ctx, db)
	exec(t, tx, "store:b "+insert, 3, "one phase, with a marker")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	out, err := rhizodat.Lookup(ctx, db, h.Outcome().DatTxn)
	if err != nil || out.Verdict != rhizodat.VerdictCommitted {
		t.Errorf("look up: %v, %v", out.Verdict, err)
	}
	p.want(t, "1", "1 3")
	p.states(t, "DONE=1")
}

func (p *pooled) savepoints() {
	t := p.t
	tx := begin(t, t.Context(), p.open(t))
	exec(t, tx, "store:a "+insert, 1, "kept")
	exec(t, tx, "SAVEPOINT s")
	exec(t, tx, "store:b "+insert, 2, "dropped")
	_, err := tx.ExecContext(t.Context(), "store:b "+insert, 2, "again")
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "23505" {
		t.Errorf("duplicate: %v", err)
	}
	exec(t, tx, "ROLLBACK TO s")
	exec(t, tx, "store:b "+insert, 3, "kept")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	p.want(t, "1", "3")
}

func (p *pooled) many() {
	t := p.t
	before := map[string]int{p.a: p.cluster.Backends(t, p.a), p.b: p.cluster.Backends(t, p.b)} // some go around PgBouncer
	db := p.open(t)
	db.SetMaxOpenConns(4)
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	const workers, each = 8, 10
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := range each {
				_, err := rhizodat.Run(t.Context(), db, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
					for _, store := range []string{"a", "b"} {
						if _, err := tx.ExecContext(ctx, "store:"+store+" "+insert, w*each+i, "x"); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Errorf("unit %d of worker %d: %v", i, w, err)
				}
			}
		})
	}
	wait.Wait()
	for _, url := range []string{p.a, p.b} {
		if n := p.cluster.Int(t, url, `SELECT count(*) FROM item`); n != workers*each {
			t.Errorf("%d items, want %d", n, workers*each)
		}
		if n := p.cluster.Backends(t, url) - before[url]; n > 6 {
			t.Errorf("%d more connections of the server, want at most default_pool_size", n)
		}
	}
	p.states(t, fmt.Sprintf("DONE=%d", workers*each))
}

func (p *pooled) copy() {
	t := p.t
	tx := begin(t, t.Context(), p.open(t))
	exec(t, tx, "store:a "+insert, 1, "one")
	n, err := rhizodat.CopyFrom(t.Context(), tx, "b", "item", []string{"id", "name"},
		rhizodat.CopyRows([][]any{{int32(1), "x"}, {int32(2), "y"}}))
	if err != nil || n != 2 {
		t.Fatalf("copied %d, %v", n, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	p.want(t, "1", "1 2")
}

func (p *pooled) aborted() {
	t := p.t
	p.die(t, "S6.before")
	if left := len(p.cluster.Prepared(t, p.a)) + len(p.cluster.Prepared(t, p.b)); left != 2 {
		t.Fatalf("%d prepared transactions after the crash, want 2", left)
	}
	if report := p.recover(t); report.RolledBack != 1 {
		t.Errorf("rolled back %d units, want 1: %+v", report.RolledBack, report)
	}
	p.want(t, "", "")
	p.states(t, "ABORTED=1")
}

func (p *pooled) forward() {
	t := p.t
	p.die(t, "S7.after")
	if report := p.recover(t); report.RolledForward != 1 {
		t.Errorf("rolled forward %d units, want 1: %+v", report.RolledForward, report)
	}
	p.want(t, "1", "1")
	p.states(t, "DONE=1")
}

// owner: to end what another role prepared, SET ROLE would have to stay
// on one connection. Behind a pooler that is refused; without it, done.
func (p *pooled) owner() {
	t := p.t
	p.die(t, "S7.after")
	role := p.cluster.Role(t, "worker", "IN ROLE pg_read_all_data, pg_write_all_data")
	bouncer, err := pgserver.LaunchBouncer(t.Context(), p.cluster.DSNAs(role, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bouncer.Close() })
	url := func(database string) string {
		return bouncer.DSN(pgtest.Name(database)) + "&default_query_exec_mode=" + p.mode
	}
	report := passOver(t, "a="+url(p.a)+" b="+url(p.b)+" journal="+url(p.journal))
	if text := fmt.Sprintf("%+v", report.Items); report.Pending != 1 || !strings.Contains(text, "pooler") {
		t.Errorf("pass of another role behind a pooler: %+v, want the pooler named", report)
	}
	if n := p.cluster.Int(t, "", `SELECT count(*) FROM pg_prepared_xacts WHERE database = ANY($1)`,
		[]string{pgtest.Name(p.a), pgtest.Name(p.b)}); n != 2 {
		t.Errorf("%d prepared transactions, want both untouched", n)
	}
	if report := p.recover(t); report.RolledForward != 1 {
		t.Errorf("pass of their own role: %+v", report)
	}
	p.want(t, "1", "1")
}

// statements: a statement's name, made on one connection of the server, is
// made or asked for again on another: in pgx's default mode by pgx itself, in
// every mode by db.Prepare.
func (p *pooled) statements() {
	t := p.t
	var errs []error
	for range 2 {
		db, n := openDSN(t, "pg="+p.through(p.a)), 0
		if p.mode == "cache_statement" {
			errs = append(errs, db.QueryRowContext(t.Context(), `SELECT $1::int`, 1).Scan(&n))
			continue
		}
		stmt, err := db.PrepareContext(t.Context(), `SELECT $1::int`)
		errs = append(errs, err)
		if err == nil {
			t.Cleanup(func() { _ = stmt.Close() })
		}
	}
	err := errors.Join(errs...)
	var pg *pgconn.PgError
	switch tracked := p.tracksStatements(t); {
	case tracked && err != nil:
		t.Errorf("%v, though this PgBouncer keeps prepared statements for its clients", err)
	case !tracked && (!errors.As(err, &pg) || pg.Code != "42P05"):
		t.Errorf("%v, want that the prepared statement exists already", err)
	}
}

// tracksStatements reports whether PgBouncer follows prepared statements: from
// 1.21 on, with max_prepared_statements.
func (p *pooled) tracksStatements(t *testing.T) bool {
	t.Helper()
	config, err := pgx.ParseConfig(strings.Split(p.through("pgbouncer"), "&")[0])
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	console, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = console.Close(t.Context()) }()
	results, err := console.PgConn().Exec(t.Context(), "SHOW CONFIG").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range results[0].Rows {
		if string(row[0]) == "max_prepared_statements" {
			return string(row[1]) != "0"
		}
	}
	return false
}

// state: what one session sets, another finds, and its locks lock nobody
// out. What is bound to a transaction stays there.
func (p *pooled) state() {
	t := p.t
	one, other := openDSN(t, "pg="+p.through(p.a)), openDSN(t, "pg="+p.through(p.a))
	exec(t, one, `SET statement_timeout = '77s'`)
	var timeout string
	if err := other.QueryRowContext(t.Context(), `SHOW statement_timeout`).Scan(&timeout); err != nil || timeout != "77s" {
		t.Errorf("timeout of another session: %s, %v", timeout, err)
	}
	exec(t, one, `SELECT pg_advisory_lock(1)`)
	var locked bool
	if err := other.QueryRowContext(t.Context(), `SELECT pg_try_advisory_lock(1)`).Scan(&locked); err != nil || !locked {
		t.Errorf("lock of a session: %t, %v, want it given to two", locked, err)
	}
	tx := begin(t, t.Context(), one)
	exec(t, tx, `SET LOCAL statement_timeout = '88s'`)
	exec(t, tx, `SELECT pg_advisory_xact_lock(2)`)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := other.QueryRowContext(t.Context(), `SHOW statement_timeout`).Scan(&timeout); err != nil || timeout != "77s" {
		t.Errorf("timeout of another session after SET LOCAL: %s, %v", timeout, err)
	}
}

// schema: search_path is no parameter that PgBouncer takes at connect;
// set for the database, it is the server's own.
func (p *pooled) schema() {
	t := p.t
	err := openDSN(t, "pg="+p.through(p.a)+"&schema=orders").PingContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "unsupported startup parameter: search_path") {
		t.Errorf("error %v, want PgBouncer's own", err)
	}
	for _, url := range []string{p.a, p.b} {
		p.cluster.Exec(t, url, `CREATE SCHEMA orders; CREATE TABLE orders.item (LIKE item INCLUDING ALL)`)
		p.cluster.Exec(t, url, `ALTER DATABASE `+pgx.Identifier{pgtest.Name(url)}.Sanitize()+` SET search_path = orders`)
	}
	fresh := p.cluster.Bouncer(t)
	mode := "&default_query_exec_mode=exec"
	dsn := "a=" + fresh(p.a) + mode + " b=" + fresh(p.b) + mode + " journal=" + fresh(p.cluster.Database(t, "j")) + mode
	if err := connector(t, dsn, nil).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx := begin(t, t.Context(), openDSN(t, dsn))
	exec(t, tx, "store:a "+insert, 1, "x")
	exec(t, tx, "store:b "+insert, 1, "x")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{p.a, p.b} {
		if n := p.cluster.Int(t, url, `SELECT (SELECT count(*) FROM orders.item) + (SELECT count(*) FROM orders.dat_applied)`); n != 2 {
			t.Errorf("%d rows in schema orders, want the item and its marker", n)
		}
	}
}

// die commits a unit in another process, which dies at that point.
func (p *pooled) die(t *testing.T, point string) {
	t.Helper()
	dieAt(t, p.dsn, point)
}

// recover makes one pass, through PgBouncer too.
func (p *pooled) recover(t *testing.T) recovery.Report {
	t.Helper()
	return passOver(t, p.dsn)
}
