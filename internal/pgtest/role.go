package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Role is a login of a [Cluster].
type Role struct {
	Name     string
	Password string
}

// Role creates a login whose name begins with prefix, with attributes such as
// "NOINHERIT" or "BYPASSRLS" (or none), and drops it after the test with what
// it owns.
func (c *Cluster) Role(tb testing.TB, prefix, attributes string) Role {
	tb.Helper()
	role := Role{Name: unique(prefix), Password: "fixture-" + rand.Text()}
	c.Exec(tb, "", "CREATE ROLE "+quote(role.Name)+" LOGIN PASSWORD "+literal(role.Password)+" "+attributes)
	tb.Cleanup(func() { c.dropRole(tb, role) })
	return role
}

// DSNAs is the postgres:// URL of a database for a role.
func (c *Cluster) DSNAs(role Role, database string) string {
	dsn, err := url.Parse(c.DSN(database))
	if err != nil {
		panic("pgtest: own DSN does not parse") // made by url.URL.String
	}
	dsn.User = url.UserPassword(role.Name, role.Password)
	return dsn.String()
}

func (c *Cluster) dropRole(tb testing.TB, role Role) {
	tb.Helper()
	if c.server != nil && !c.server.Running() {
		return
	}
	// What it owns or was granted is per database. A parallel test may have
	// dropped its own since they were listed.
	c.mu.Lock()
	databases := slices.Clone(c.databases)
	c.mu.Unlock()
	for _, database := range append(databases, "") {
		err := c.dropOwned(tb, database, role)
		if state(err) == "57P01" { // it was being dropped just then
			err = c.dropOwned(tb, database, role)
		}
		if err != nil && state(err) != "3D000" {
			tb.Fatalf("drop role of a test: %v", err)
		}
	}
	c.Exec(tb, "", "DROP ROLE "+quote(role.Name))
}

func (c *Cluster) dropOwned(tb testing.TB, database string, role Role) error {
	tb.Helper()
	return c.trySession(tb, database, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DROP OWNED BY "+quote(role.Name)+" CASCADE")
		return err
	})
}

// state is the SQLSTATE of err, empty where the server did not answer.
func state(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}
