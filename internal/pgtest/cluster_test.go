package pgtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

func TestDatabasesAreSeparateAndDropped(t *testing.T) {
	c := pgtest.Server(t)
	var names []string
	t.Run("inner", func(t *testing.T) {
		a, b := c.Database(t, "pgtest_a"), c.Database(t, "pgtest_b")
		names = []string{pgtest.Name(a), pgtest.Name(b)}
		c.Exec(t, a, "CREATE TABLE only_here (n int); INSERT INTO only_here VALUES (1)")
		if n := c.Int(t, a, "SELECT count(*) FROM only_here"); n != 1 {
			t.Errorf("rows in a: %d, want 1", n)
		}
		if n := c.Int(t, b, "SELECT count(*) FROM pg_class WHERE relname = 'only_here'"); n != 0 {
			t.Errorf("table of a is visible in b")
		}
		// Stands in the way of DROP DATABASE, if cleanup forgot it.
		c.Exec(t, a, "BEGIN; INSERT INTO only_here VALUES (2); PREPARE TRANSACTION 'pgtest-left'")
		if diff := cmp.Diff([]string{"pgtest-left"}, c.Prepared(t, a)); diff != "" {
			t.Errorf("prepared in a: %s", diff)
		}
		if got := c.Prepared(t, b); len(got) != 0 {
			t.Errorf("prepared in b: %v", got)
		}
		if n := c.Backends(t, a); n != 0 {
			t.Errorf("backends of a: %d, pgtest must hold none", n)
		}
	})
	for _, name := range c.Strings(t, "", "SELECT datname FROM pg_database") {
		if slices.Contains(names, name) {
			t.Errorf("database %s was not dropped", name)
		}
	}
}

func TestRoleLogsInAndIsDropped(t *testing.T) {
	c := pgtest.Server(t)
	var role pgtest.Role
	t.Run("inner", func(t *testing.T) {
		database := c.Database(t, "pgtest")
		role = c.Role(t, "clerk", "NOINHERIT")
		c.Exec(t, database, "CREATE TABLE owned (n int); ALTER TABLE owned OWNER TO "+role.Name)
		if got := pgtest.Name(c.DSNAs(role, database)); got != pgtest.Name(database) {
			t.Errorf("DSNAs names database %s", got)
		}
		if !strings.Contains(c.DSNAs(role, database), role.Password) {
			t.Error("DSNAs has not the role's password")
		}
	})
	if n := c.Int(t, "", "SELECT count(*) FROM pg_roles WHERE rolname = $1", role.Name); n != 0 {
		t.Errorf("role %s was not dropped", role.Name)
	}
}

func TestOwnClusterIsRestarted(t *testing.T) {
	c := pgtest.Own(t, "max_prepared_transactions=7", "application_name=it''s quoted")
	addr := c.Addr()
	database := c.Database(t, "pgtest")
	if n := c.Int(t, database, "SELECT current_setting('max_prepared_transactions')::int"); n != 7 {
		t.Errorf("max_prepared_transactions %d, want 7", n)
	}
	c.Exec(t, database, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	for _, down := range []struct {
		name string
		stop func()
	}{
		{"stop", func() { c.Stop(t, false) }},
		{"stop immediately", func() { c.Stop(t, true) }},
		{"kill", func() { c.Kill(t) }},
	} {
		down.stop()
		c.Start(t)
		if c.Addr() != addr {
			t.Errorf("%s: address is %s, was %s", down.name, c.Addr(), addr)
		}
		if n := c.Int(t, database, "SELECT count(*) FROM kept"); n != 1 {
			t.Errorf("%s: forced row lost", down.name)
		}
	}
}

// A killed server loses what it had not forced, or crash tests that build on
// it prove nothing.
func TestKillLosesUnforcedCommit(t *testing.T) {
	c := pgtest.Own(t, "wal_writer_delay=10s")
	database := c.Database(t, "pgtest")
	c.Exec(t, database, "CREATE TABLE t (n int)")
	lost := false
	for range 10 { // the WAL writer may wake just then
		c.Exec(t, database, "SET synchronous_commit = off; INSERT INTO t VALUES (1)")
		c.Kill(t)
		c.Start(t)
		if lost = c.Int(t, database, "SELECT count(*) FROM t") == 0; lost {
			break
		}
		c.Exec(t, database, "TRUNCATE t")
	}
	if !lost {
		t.Error("ten kills lost no unforced commit")
	}
}
