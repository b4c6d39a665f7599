package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// With one server session and transaction mode, two clients share a backend.
func TestBouncerSharesBackends(t *testing.T) {
	c := pgtest.Server(t)
	database := c.Database(t, "pgtest")
	through := c.Bouncer(t, "default_pool_size=1")
	pids := map[int]bool{}
	for range 2 {
		config, err := pgx.ParseConfig(through(database))
		if err != nil {
			t.Fatal(err)
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := conn.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		var pid int
		if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		pids[pid] = true
	}
	if len(pids) != 1 {
		t.Errorf("two clients had %d backends, want one", len(pids))
	}
}
