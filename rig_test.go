package rhizodat_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// rig is a deployment of two stores, a and b, and a journal, each in a database
// of its own on one server.
type rig struct {
	cluster *pgtest.Cluster
	a, b    string // URLs
	journal string
	dsn     string
}

func newRig(t *testing.T, options ...string) *rig {
	t.Helper()
	cluster := pgtest.Server(t)
	r := &rig{cluster: cluster, a: cluster.Database(t, "a"), b: cluster.Database(t, "b"), journal: cluster.Database(t, "j")}
	r.dsn = strings.Join(append([]string{"a=" + r.a, "b=" + r.b, "journal=" + r.journal, "default=a"}, options...), " ")
	for _, url := range []string{r.a, r.b} {
		cluster.Exec(t, pgtest.Name(url), `CREATE TABLE item (id int PRIMARY KEY, name text, at timestamptz DEFAULT now())`)
	}
	c := connector(t, r.dsn, nil)
	if err := c.Install(t.Context()); err != nil {
		t.Fatalf("install: %v", err)
	}
	return r
}

func connector(t *testing.T, dsn string, observer rhizodat.Observer) *rhizodat.Connector {
	t.Helper()
	cfg, err := rhizodat.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Observer = observer
	c, err := rhizodat.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (r *rig) open(t *testing.T) *sql.DB {
	t.Helper()
	return openDSN(t, r.dsn)
}

func openDSN(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("rhizodat", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// ids lists the items of one database, as another client sees them.
func (r *rig) ids(t *testing.T, url string) string {
	t.Helper()
	return strings.Join(r.cluster.Strings(t, pgtest.Name(url), `SELECT id::text FROM item ORDER BY id`), " ")
}

// want checks the items of both databases and that nothing stayed prepared.
func (r *rig) want(t *testing.T, a, b string) {
	t.Helper()
	if got := r.ids(t, r.a); got != a {
		t.Errorf("store a holds items %q, want %q", got, a)
	}
	if got := r.ids(t, r.b); got != b {
		t.Errorf("store b holds items %q, want %q", got, b)
	}
	for _, url := range []string{r.a, r.b} {
		if left := r.cluster.Prepared(t, pgtest.Name(url)); len(left) > 0 {
			t.Errorf("prepared transactions left: %v", left)
		}
	}
}

// states counts the journal's records by state, once they have settled: DONE is
// written after Commit has returned.
func (r *rig) states(t *testing.T, want string) {
	t.Helper()
	var got string
	await.UntilSaid(t, func() bool {
		got = strings.Join(r.cluster.Strings(t, pgtest.Name(r.journal),
			`SELECT state || '=' || count(*) FROM dat_journal GROUP BY state ORDER BY state`), " ")
		return got == want
	}, func() string { return fmt.Sprintf("journal holds %q, want %q", got, want) })
}

func begin(t *testing.T, ctx context.Context, db *sql.DB) *sql.Tx { //nolint:revive // t first
	t.Helper()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func exec(t *testing.T, tx interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, query string, args ...any,
) {
	t.Helper()
	if _, err := tx.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
