package pgtest

import (
	"errors"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/pgserver"
)

// Bouncer starts a PgBouncer in transaction mode in front of the cluster for
// this test, and returns the DSN of a database through it, made from the name
// or the DSN of the database. Each setting is "name=value", for example
// "default_pool_size=2". The test is skipped where PgBouncer is not installed.
func (c *Cluster) Bouncer(tb testing.TB, settings ...string) func(database string) string {
	tb.Helper()
	bouncer, err := pgserver.LaunchBouncer(tb.Context(), c.base.String(), settings...)
	if errors.Is(err, pgserver.ErrNoBouncer) {
		Skip(tb, err.Error())
	}
	if err != nil {
		tb.Fatalf("pgbouncer for tests: %v", err)
	}
	tb.Cleanup(func() {
		if err := bouncer.Close(); err != nil {
			tb.Errorf("close pgbouncer: %v", err)
		}
	})
	return func(database string) string { return bouncer.DSN(Name(database)) }
}
