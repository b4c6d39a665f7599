package pgtest

import (
	"context"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/pgserver"
)

// Stop stops the test's own cluster: in order, or at once as a crash of the
// server program does (no checkpoint, the next start recovers from WAL).
func (c *Cluster) Stop(tb testing.TB, immediate bool) {
	tb.Helper()
	mode := pgserver.Fast
	if immediate {
		mode = pgserver.Immediate
	}
	c.power(tb, func(ctx context.Context) error { return c.server.Stop(ctx, mode) })
}

// Start starts the test's own cluster again, at its old address.
func (c *Cluster) Start(tb testing.TB) {
	tb.Helper()
	c.power(tb, c.server.Start)
}

// Kill ends all processes of the test's own cluster by SIGKILL at one
// instant. Commits with synchronous_commit=off of the last wal_writer_delay
// are lost; see [pgserver.Server.Kill].
func (c *Cluster) Kill(tb testing.TB) {
	tb.Helper()
	c.power(tb, c.server.Kill)
}

func (c *Cluster) power(tb testing.TB, action func(context.Context) error) {
	tb.Helper()
	if !c.own {
		tb.Fatal("pgtest: only a cluster of pgtest.Own may be stopped, started or killed")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), patience)
	defer cancel()
	if err := action(ctx); err != nil {
		tb.Fatal(err)
	}
}
