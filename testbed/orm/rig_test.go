package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// accounts is the table that every tool writes to.
const accounts = `CREATE TABLE accounts (
	id bigserial PRIMARY KEY,
	owner text NOT NULL UNIQUE,
	balance bigint NOT NULL DEFAULT 0 CHECK (balance >= 0))`

// deployment is what a tool runs against: plain, the one store a, or a unit of
// the stores a and b and a journal, a being the default.
type deployment struct {
	cluster *pgtest.Cluster
	unit    bool
	a, b, j string // URLs; b and the journal's are empty when plain
	dsn     string
}

// item is one thing that a tool does.
type item struct {
	name string
	on   kinds
	run  func(*testing.T, *deployment)
}

type kinds int

const (
	both kinds = iota
	onlyPlain
	onlyUnit
)

// bench holds the deployments of a test, each made when an item first needs it.
type bench struct {
	t     *testing.T
	plain *deployment
	unit  *deployment
}

// exercise runs a tool's items against both kinds of deployment.
func exercise(t *testing.T, tool string, items ...item) {
	t.Helper()
	(&bench{t: t}).exercise(t, tool, items...)
}

func (b *bench) exercise(t *testing.T, tool string, items ...item) {
	t.Helper()
	s := pgtest.NewSuite(t, tool)
	for _, i := range items {
		if i.on != onlyUnit {
			s.Run("plain/"+i.name, func(t *testing.T) {
				t.Helper()
				i.run(t, b.onPlain(t))
			})
		}
		if i.on != onlyPlain {
			s.Run("unit/"+i.name, func(t *testing.T) {
				t.Helper()
				i.run(t, b.onUnit(t))
			})
		}
	}
}

func (b *bench) onPlain(t *testing.T) *deployment {
	t.Helper()
	c := pgtest.Server(t) // skips the item, where there is none
	if b.plain == nil {
		d := &deployment{cluster: c, a: c.Database(b.t, "plain")}
		d.dsn = "a=" + d.a
		b.plain = d
	}
	b.plain.clean(t)
	return b.plain
}

func (b *bench) onUnit(t *testing.T) *deployment {
	t.Helper()
	c := pgtest.Server(t)
	if b.unit == nil {
		d := &deployment{cluster: c, unit: true, a: c.Database(b.t, "a"), b: c.Database(b.t, "b"), j: c.Database(b.t, "j")}
		d.dsn = "a=" + d.a + " b=" + d.b + " journal=" + d.j + " default=a"
		if err := d.connector(t).Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.unit = d
	}
	b.unit.clean(t)
	return b.unit
}

// clean leaves nothing of the item before.
func (d *deployment) clean(t *testing.T) {
	t.Helper()
	for _, url := range []string{d.a, d.b} {
		if url != "" {
			d.cluster.Exec(t, url, `DROP TABLE IF EXISTS accounts, items`)
			d.cluster.Exec(t, url, accounts)
		}
	}
}

func (d *deployment) connector(t *testing.T) *rhizodat.Connector {
	t.Helper()
	config, err := rhizodat.ParseDSN(d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := rhizodat.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, connector) })
	return connector
}

func (d *deployment) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("rhizodat", d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, db) })
	return db
}

func closed(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// inB routes to store b, where there is one.
func (d *deployment) inB(ctx context.Context) context.Context {
	if !d.unit {
		return ctx
	}
	return rhizodat.WithStore(ctx, "b")
}

// want checks whose accounts each store holds, as another client sees it, and
// that nothing stayed prepared.
func (d *deployment) want(t *testing.T, a, b string) {
	t.Helper()
	for _, store := range []struct{ name, url, want string }{{"a", d.a, a}, {"b", d.b, b}} {
		if store.url == "" {
			if store.want != "" {
				t.Errorf("there is no store %s", store.name)
			}
			continue
		}
		got := strings.Join(d.cluster.Strings(t, store.url, `SELECT owner FROM accounts ORDER BY owner`), " ")
		if got != store.want {
			t.Errorf("store %s holds the accounts of %q, want %q", store.name, got, store.want)
		}
		if left := d.cluster.Prepared(t, store.url); len(left) > 0 {
			t.Errorf("store %s has prepared transactions: %v", store.name, left)
		}
	}
}

// table reports whether a store has a table, as another client sees it.
func (d *deployment) table(t *testing.T, url, name string) bool {
	t.Helper()
	return d.cluster.Int(t, url, `SELECT count(*) FROM pg_tables WHERE tablename = $1`, name) == 1
}

// deferred makes COMMIT the place where a second account with an odd balance
// of the same size fails.
func (d *deployment) deferred(t *testing.T, url string) {
	t.Helper()
	d.cluster.Exec(t, url, `ALTER TABLE accounts ADD CONSTRAINT one_each UNIQUE (balance) DEFERRABLE INITIALLY DEFERRED`)
}

// isState checks that err is, or wraps, PostgreSQL's own error of that code.
func isState(t *testing.T, err error, code string) {
	t.Helper()
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != code {
		t.Errorf("error is %v, want one of PostgreSQL with SQLSTATE %s", err, code)
	}
}

// isAborted checks that err, of a Commit, is *rhizodat.Aborted by a constraint
// of that store.
func isAborted(t *testing.T, err error, store string) {
	t.Helper()
	var aborted *rhizodat.Aborted
	if !errors.As(err, &aborted) || aborted.Store != store || aborted.Kind != rhizodat.Constraint {
		t.Errorf("commit: %v, want *rhizodat.Aborted by a constraint of store %s", err, store)
	}
	if rhizodat.IsCommitted(err) || rhizodat.IsRetryable(err) {
		t.Errorf("commit: %v is neither committed nor worth a retry", err)
	}
	isState(t, err, "23505")
}

// errUndo is what a test's function returns to have its transaction rolled back.
var errUndo = errors.New("undo")

func undone(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, errUndo) {
		t.Errorf("error %v, want the function's own", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// conflict fails its transaction as a serialization conflict does.
const conflict = `DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$`
