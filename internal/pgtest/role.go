package pgtest

import (
	"crypto/rand"
	"net/url"
	"slices"
	"testing"
)

// Role is a login of a [Cluster].
type Role struct {
	Name     string
	Password string
}

// Role creates a login whose name begins with prefix, with attributes such as
// "NOINHERIT" or "BYPASSRLS" (or none), and drops it after the test with what
// it owns.
func (c *Cluster) Role(t testing.TB, prefix, attributes string) Role {
	t.Helper()
	role := Role{Name: unique(prefix), Password: "fixture-" + rand.Text()}
	c.Exec(t, "", "CREATE ROLE "+quote(role.Name)+" LOGIN PASSWORD "+literal(role.Password)+" "+attributes)
	t.Cleanup(func() { c.dropRole(t, role) })
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

func (c *Cluster) dropRole(t testing.TB, role Role) {
	t.Helper()
	if c.server != nil && !c.server.Running() {
		return
	}
	// What it owns or was granted is per database.
	c.mu.Lock()
	databases := slices.Clone(c.databases)
	c.mu.Unlock()
	for _, database := range append(databases, "") {
		c.Exec(t, database, "DROP OWNED BY "+quote(role.Name)+" CASCADE")
	}
	c.Exec(t, "", "DROP ROLE "+quote(role.Name))
}
