package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/testbed/crash/graph"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// relations is a graph of drevo in which each unit leaves a relationship.
type relations struct{ *graph.Store }

func openRelations(ctx context.Context, s *stack) (rig.Companion, error) {
	server, err := s.graphs(ctx)
	if err != nil {
		return nil, err
	}
	store, err := server.Store(ctx)
	if err != nil {
		return nil, err
	}
	return relations{store}, nil
}

// productTitle stands before the number in a product's title.
const productTitle = "Product "

// Book is what the units have left.
func (r relations) Book(ctx context.Context) (rig.Book, error) {
	rows, err := r.Rows(ctx, `MATCH (:Customer)-[o:ORDERED]->(p:Product) RETURN o.dat_txn, p.title, o.quantity`, nil)
	if err != nil {
		return nil, err
	}
	book := rig.Book{}
	for _, row := range rows {
		quantity, ok := row[2].(int64)
		if !ok {
			return nil, fmt.Errorf("read book of graph: quantity %v", row[2])
		}
		book.Add(rig.Book{{Txn: fmt.Sprint(row[0]), Part: strings.TrimPrefix(fmt.Sprint(row[1]), productTitle)}: {Rows: 1, Total: int(quantity)}})
	}
	return book, nil
}

// Unfinished lists the units that have left nothing.
func (r relations) Unfinished(ctx context.Context, txns []string) ([]string, error) {
	return absent(ctx, r, txns)
}

// absent lists the units that are in no entry of a companion's book.
func absent(ctx context.Context, c rig.Companion, txns []string) ([]string, error) {
	if len(txns) == 0 {
		return nil, nil
	}
	book, err := c.Book(ctx)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for entry := range book {
		there[entry.Txn] = true
	}
	var left []string
	for _, txn := range txns {
		if !there[txn] {
			left = append(left, txn)
		}
	}
	return left, nil
}

// Meddle makes relationships wrong.
func (r relations) Meddle(ctx context.Context, lost, doubled, copied rig.Entry) error {
	const again = `MATCH (c:Customer)-[o:ORDERED {dat_txn: $txn}]->(p:Product) CREATE (c)-[:ORDERED {dat_txn: $to, quantity: o.quantity}]->(p)`
	var errs []error
	for _, do := range []struct {
		statement string
		params    map[string]any
	}{
		{`MATCH (:Customer)-[o:ORDERED {dat_txn: $txn}]->(:Product) DELETE o`, map[string]any{"txn": lost.Txn}},
		{again, map[string]any{"txn": doubled.Txn, "to": doubled.Txn}},
		{again, map[string]any{"txn": copied.Txn, "to": uuid.NewString()}},
	} {
		_, err := r.Rows(ctx, do.statement, do.params)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// drevoJournal is a journal in a graph of its own.
type drevoJournal struct{ *graph.Store }

func openDrevoJournal(ctx context.Context, s *stack) (rig.OtherJournal, error) {
	server, err := s.graphs(ctx)
	if err != nil {
		return nil, err
	}
	store, err := server.Store(ctx)
	if err != nil {
		return nil, err
	}
	return drevoJournal{store}, nil
}

// States are the journal's records.
func (j drevoJournal) States(ctx context.Context) (map[string]string, error) {
	rows, err := j.Rows(ctx, `MATCH (j:DatJournal) RETURN j.dat_txn, j.state`, nil)
	states := make(map[string]string, len(rows))
	for _, row := range rows {
		states[fmt.Sprint(row[0])] = fmt.Sprint(row[1])
	}
	return states, err
}
