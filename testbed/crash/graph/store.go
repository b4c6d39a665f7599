package graph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// Texts by which a proxy knows the requests of a branch.
const (
	TextPrepare  = "drevo.tx.prepare"
	TextCommit   = "drevo.tx.commitPrepared"
	TextRollback = "drevo.tx.rollbackPrepared"
)

// Store is one graph.
type Store struct {
	server *Server
	name   string
}

var _ rig.Other = (*Store)(nil)

// Server that the graph lies on.
func (s *Store) Server() *Server { return s.server }

// Way is the store's URL in a DSN.
func (s *Store) Way() string { return "bolt://" + s.Addr() + "/" + s.name }

// Addr is the host:port that Way leads to.
func (s *Store) Addr() string { return s.server.server.Bolt() }

// Via is Way through a proxy that listens at addr.
func (s *Store) Via(addr string) string { return strings.Replace(s.Way(), s.Addr(), addr, 1) }

// Rows returns the rows of a statement, which is autocommit.
func (s *Store) Rows(ctx context.Context, cypher string, params map[string]any) ([][]any, error) {
	session := s.server.driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: s.name, FetchSize: neo4j.FetchAll})
	defer func() { _ = session.Close(ctx) }() // its only statement has ended
	result, err := session.Run(ctx, cypher, params)
	if err != nil {
		return nil, fmt.Errorf("ask graph: %w", err)
	}
	records, err := result.Collect(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask graph: %w", err)
	}
	rows := make([][]any, len(records))
	for i, r := range records {
		rows[i] = r.Values
	}
	return rows, nil
}

// Effects are the units that have a node.
func (s *Store) Effects(ctx context.Context) (map[string]string, error) {
	rows, err := s.Rows(ctx, "MATCH (n:Ledger) RETURN n.txn, n.stores", nil)
	effects := map[string]string{}
	for _, row := range rows {
		effects[fmt.Sprint(row[0])] = fmt.Sprint(row[1])
	}
	return effects, err
}

// Inexact finds units that have another number of nodes than one, or not one
// marker beside it.
func (s *Store) Inexact(ctx context.Context) ([]string, error) {
	nodes, err := s.count(ctx, "MATCH (n:Ledger) RETURN n.txn, count(n)")
	if err != nil {
		return nil, err
	}
	markers, err := s.count(ctx, "MATCH (m:DatApplied) WHERE m.dat_tx_time > 0 RETURN m.dat_txn, count(m)")
	if err != nil {
		return nil, err
	}
	for txn := range markers {
		nodes[txn] += 0 // a marker without a node is wrong too
	}
	var wrong []string
	for _, txn := range slices.Sorted(maps.Keys(nodes)) {
		if nodes[txn] != 1 || markers[txn] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s has %d nodes and %d markers", txn, nodes[txn], markers[txn]))
		}
	}
	return wrong, nil
}

func (s *Store) count(ctx context.Context, cypher string) (map[string]int64, error) {
	rows, err := s.Rows(ctx, cypher, nil)
	counts := map[string]int64{}
	for _, row := range rows {
		n, _ := row[1].(int64)
		counts[fmt.Sprint(row[0])] = n
	}
	return counts, err
}

// Prepared lists the gids prepared in the graph.
func (s *Store) Prepared(ctx context.Context) ([]string, error) {
	rows, err := s.Rows(ctx, "CALL drevo.tx.listPrepared()", nil)
	var gids []string
	for _, row := range rows {
		gids = append(gids, fmt.Sprint(row[0]))
	}
	return gids, err
}

// RollBack ends a prepared transaction, as a well-meaning person would.
func (s *Store) RollBack(ctx context.Context, gid string) error {
	_, err := s.Rows(ctx, "CALL drevo.tx.rollbackPrepared($gid)", map[string]any{"gid": gid})
	return err
}

// Busy is false: drevo carries a statement out before it reads the next byte of
// its connection, and tells nobody which ones are open.
func (s *Store) Busy(context.Context) (bool, error) { return false, nil }
