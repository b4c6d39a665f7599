package drevotest

import (
	"context"
	"fmt"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// Graph is one graph of a server, asked by the official driver and never
// through the packages under test. Every statement is autocommit, in a session
// of its own.
type Graph struct {
	cluster *Cluster
	name    string
	driver  neo4j.DriverWithContext
}

// Name is the graph's name.
func (g *Graph) Name() string { return g.name }

// URL is the graph's URL, in the words of rhizodat's own DSN.
func (g *Graph) URL() string { return g.cluster.URL(g.name) }

// Cluster is the graph's server.
func (g *Graph) Cluster() *Cluster { return g.cluster }

// Driver is the driver that asks, with a pool of its own.
func (g *Graph) Driver() neo4j.DriverWithContext { return g.driver }

// Session opens a session in the graph, which ends with the test.
func (g *Graph) Session(tb testing.TB) neo4j.SessionWithContext {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	s := g.driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: g.name, FetchSize: neo4j.FetchAll})
	tb.Cleanup(func() { _ = s.Close(ctx) })
	return s
}

// Try runs one statement and returns its rows. Its context is detached: that of
// a test has ended when its cleanups run.
func (g *Graph) Try(ctx context.Context, cypher string, params map[string]any) ([][]any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	s := g.driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: g.name, FetchSize: neo4j.FetchAll})
	defer func() { _ = s.Close(ctx) }() // its only statement has ended
	result, err := s.Run(ctx, cypher, params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cypher, err)
	}
	records, err := result.Collect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cypher, err)
	}
	rows := [][]any{}
	for _, r := range records {
		rows = append(rows, r.Values)
	}
	return rows, nil
}

// Rows runs one statement and returns its rows.
func (g *Graph) Rows(tb testing.TB, cypher string, params map[string]any) [][]any {
	tb.Helper()
	rows, err := g.Try(tb.Context(), cypher, params)
	if err != nil {
		tb.Fatalf("ask test server: %v", err)
	}
	return rows
}

// Exec runs one statement.
func (g *Graph) Exec(tb testing.TB, cypher string) {
	tb.Helper()
	g.Rows(tb, cypher, nil)
}

// Int answers the one number that a statement returns.
func (g *Graph) Int(tb testing.TB, cypher string, params map[string]any) int {
	tb.Helper()
	rows := g.Rows(tb, cypher, params)
	if len(rows) != 1 || len(rows[0]) != 1 {
		tb.Fatalf("ask test server: %s: %v, want one number", cypher, rows)
	}
	n, ok := rows[0][0].(int64)
	if !ok {
		tb.Fatalf("ask test server: %s: %v, want a number", cypher, rows)
	}
	return int(n)
}

// Count counts the nodes of a label.
func (g *Graph) Count(tb testing.TB, label string) int {
	tb.Helper()
	return g.Int(tb, "MATCH (n:"+label+") RETURN count(n) AS n", nil)
}

// Prepared lists the gids of the transactions that are prepared in the graph.
func (g *Graph) Prepared(tb testing.TB) []string {
	tb.Helper()
	gids := []string{}
	for _, row := range g.Rows(tb, "CALL drevo.tx.listPrepared() YIELD gid RETURN gid", nil) {
		gid, ok := row[0].(string)
		if !ok {
			tb.Fatalf("ask test server: listPrepared: %v", row)
		}
		gids = append(gids, gid)
	}
	return gids
}

// Resolve runs one of drevo's procedures on a prepared transaction:
// commitPrepared, rollbackPrepared, heuristicRollback.
func (g *Graph) Resolve(ctx context.Context, procedure, gid string) error {
	_, err := g.Try(ctx, "CALL drevo.tx."+procedure+"($gid)", map[string]any{"gid": gid})
	return err
}
