package chtest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience bounds every single request of this package.
const patience = time.Minute

// Exec runs one statement.
func (c *Cluster) Exec(tb testing.TB, query string) {
	tb.Helper()
	c.Ask(tb, query)
}

// Ask runs one statement and returns its answer as tab-separated text.
func (c *Cluster) Ask(tb testing.TB, query string) string {
	tb.Helper()
	answer, err := c.Try(tb.Context(), query)
	if err != nil {
		tb.Fatalf("ask test server: %v", err)
	}
	return answer
}

// Int answers the one number that a query returns.
func (c *Cluster) Int(tb testing.TB, query string) int {
	tb.Helper()
	n, err := strconv.Atoi(c.Ask(tb, query))
	if err != nil {
		tb.Fatalf("ask test server: %s: %v", query, err)
	}
	return n
}

// Strings answers the first column of a query, in the query's order.
func (c *Cluster) Strings(tb testing.TB, query string) []string {
	tb.Helper()
	answer := c.Ask(tb, query)
	if answer == "" {
		return nil
	}
	return strings.Split(answer, "\n")
}

// Try is Ask for what may fail. Its context is detached: that of a test has
// ended when its cleanups run.
func (c *Cluster) Try(ctx context.Context, query string) (string, error) {
	return c.TryAs(ctx, "", query)
}

// TryAs is Try under a query id.
func (c *Cluster) TryAs(ctx context.Context, id, query string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return c.at.Ask(ctx, id, query)
}
