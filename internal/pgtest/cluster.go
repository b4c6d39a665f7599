// Package pgtest gives tests PostgreSQL databases of their own.
//
// [Server] is the shared cluster of a test run, [Own] a cluster that one test
// may stop, kill and configure. Both are thrown away afterwards; neither is ever
// the system's cluster. With RHIZODAT_TEST_PG set, [Server] is the server that
// it names instead.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/internal/pgserver"
)

// leastPrepared is what the tests of a package need at a time.
const leastPrepared = 20

// patience bounds every single request of this package.
const patience = time.Minute

// Cluster is a PostgreSQL server with as many databases as tests ask for. Its
// methods end the test when something goes wrong, so they have no error. It may be
// used by parallel tests; Stop, Start and Kill belong to the test that owns it.
//
// Where a method takes a database, it takes its name or the DSN that
// [Cluster.Database] returned.
type Cluster struct {
	server *pgserver.Server // nil: somebody's own server
	own    bool             // of one test, which may stop it
	base   *url.URL         // superuser's URL; its path is the maintenance database

	mu        sync.Mutex
	databases []string // made here and not dropped yet
}

var shared = sync.OnceValues(func() (*Cluster, error) {
	if dsn := os.Getenv(pgserver.EnvServer); dsn != "" {
		return external(dsn)
	}
	// Not of any test's context: the cluster is for all of them, and ends with
	// the process (see pgserver). No test of the shared cluster crashes the
	// machine, so it need not sync; that halves the time of a test run.
	server, err := pgserver.Launch(context.Background(), "fsync=off", "full_page_writes=off")
	if err != nil {
		return nil, err
	}
	return launched(server)
})

// Server returns the cluster that all tests of a run share: the one that
// RHIZODAT_TEST_PG names (scripts/test.sh starts one for all packages), else
// one that this process starts at first use. The test is skipped where there
// is neither that variable nor an installed server.
func Server(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := shared()
	return c.usable(tb, err)
}

// Own starts a cluster for this test alone and removes it afterwards. Each
// setting is "name=value" as in postgresql.conf, for example "fsync=off" or
// "max_prepared_transactions=0".
func Own(tb testing.TB, settings ...string) *Cluster {
	tb.Helper()
	server, err := pgserver.Launch(tb.Context(), settings...)
	if err != nil {
		return (*Cluster)(nil).usable(tb, err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Errorf("close own cluster: %v", err)
		}
	})
	c, err := launched(server)
	if err == nil {
		c.own = true
	}
	return c.usable(tb, err)
}

func (c *Cluster) usable(tb testing.TB, err error) *Cluster {
	tb.Helper()
	if errors.Is(err, pgserver.ErrNoServer) {
		Skip(tb, err.Error())
	}
	if err != nil {
		tb.Fatalf("postgres for tests: %v", err)
	}
	return c
}

func launched(server *pgserver.Server) (*Cluster, error) {
	base, err := url.Parse(server.DSN("postgres"))
	if err != nil {
		return nil, fmt.Errorf("rhizodat: read DSN of test server: %w", err)
	}
	return &Cluster{server: server, base: base}, nil
}

func external(dsn string) (*Cluster, error) {
	base, err := url.Parse(dsn)
	if err != nil || base.Scheme != "postgres" && base.Scheme != "postgresql" {
		// Without err: it would print the URL and its password.
		return nil, errors.New("rhizodat: read " + pgserver.EnvServer + ": not a postgres:// URL")
	}
	if strings.Trim(base.Path, "/") == "" {
		base.Path = "/postgres"
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, base.String())
	if err != nil {
		return nil, fmt.Errorf("rhizodat: reach server of "+pgserver.EnvServer+": %w", err)
	}
	var slots int
	err = conn.QueryRow(ctx, "SELECT current_setting('max_prepared_transactions')::int").Scan(&slots)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return nil, fmt.Errorf("rhizodat: ask server of "+pgserver.EnvServer+": %w", err)
	}
	if slots < leastPrepared {
		return nil, fmt.Errorf("rhizodat: check server of "+pgserver.EnvServer+": max_prepared_transactions is %d, tests need %d",
			slots, leastPrepared)
	}
	return &Cluster{base: base}, nil
}

// Database creates an empty database whose name begins with prefix and
// returns the superuser's DSN for it. It is dropped after the test, with its
// sessions and its prepared transactions.
func (c *Cluster) Database(tb testing.TB, prefix string) string {
	tb.Helper()
	name := unique(prefix)
	c.Exec(tb, "", "CREATE DATABASE "+quote(name))
	c.mu.Lock()
	c.databases = append(c.databases, name)
	c.mu.Unlock()
	tb.Cleanup(func() { c.drop(tb, name) })
	return c.DSN(name)
}

// DSN is the superuser's postgres:// URL of a database.
func (c *Cluster) DSN(database string) string {
	dsn := *c.base
	if database != "" {
		dsn.Path = "/" + Name(database)
	}
	return dsn.String()
}

// Addr is the host:port of the server, which survives restarts.
func (c *Cluster) Addr() string { return c.base.Host }

// Password is the superuser's fixture password, for tests that look for it
// where no secret may be.
func (c *Cluster) Password() string {
	password, _ := c.base.User.Password()
	return password
}

// Name is the name of the database that a DSN points to. A name is returned
// as it is.
func Name(database string) string {
	dsn, err := url.Parse(database)
	if err != nil || dsn.Scheme == "" {
		return database
	}
	return strings.TrimPrefix(dsn.Path, "/")
}

func (c *Cluster) drop(tb testing.TB, name string) {
	tb.Helper()
	c.mu.Lock()
	c.databases = slices.DeleteFunc(c.databases, func(other string) bool { return other == name })
	c.mu.Unlock()
	if c.server != nil && !c.server.Running() {
		return // the test stopped its own cluster, and the directory goes next
	}
	// A prepared transaction stands in the way even of WITH (FORCE), and only a session of its own
	// database may end it.
	for _, gid := range c.Prepared(tb, name) {
		c.Exec(tb, name, "ROLLBACK PREPARED "+literal(gid))
	}
	c.Exec(tb, "", "DROP DATABASE "+quote(name)+" WITH (FORCE)")
}

// unique makes a name that no other test, process or run has used.
func unique(prefix string) string {
	return strings.ToLower(prefix + "_" + rand.Text()[:12])
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
