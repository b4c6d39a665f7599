package main

import (
	"context"
	"errors"
	"strings"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// events is a table of ClickHouse in which each unit leaves rows.
type events struct {
	*rig.ClickHouseDatabase

	book string
	part string // the column that tells the rows of one unit apart
}

// openEvents opens a database whose table events has such a column for each part of
// a unit, and for the number that is summed up.
func openEvents(part, number string) func(context.Context, *stack) (rig.Companion, error) {
	return func(ctx context.Context, s *stack) (rig.Companion, error) {
		server, err := s.clickHouse(ctx)
		if err != nil {
			return nil, err
		}
		database, err := server.Database(ctx, "events")
		if err != nil {
			return nil, err
		}
		return &events{
			ClickHouseDatabase: database, part: part,
			book: `SELECT toString(dat_txn), toString(` + part + `), count(), sum(` + number + `) FROM {db}.events GROUP BY 1, 2`,
		}, nil
	}
}

// Way leads to the database.
func (e *events) Way() string { return e.DSN() }

// Book is what the units have left.
func (e *events) Book(ctx context.Context) (rig.Book, error) {
	return e.ClickHouseDatabase.Book(ctx, e.book)
}

// Unfinished lists the units that have no marker.
func (e *events) Unfinished(ctx context.Context, txns []string) ([]string, error) {
	if len(txns) == 0 {
		return nil, nil
	}
	applied, err := e.Pairs(ctx, `SELECT toString(dat_txn), '' FROM {db}.dat_applied WHERE dat_txn IN ('`+strings.Join(txns, `','`)+`')`)
	var left []string
	for _, txn := range txns {
		if _, ok := applied[txn]; !ok {
			left = append(left, txn)
		}
	}
	return left, err
}

// Busy reports whether a statement of a unit runs.
func (e *events) Busy(ctx context.Context) (bool, error) {
	running, err := e.Ask(ctx, `SELECT query_id FROM system.processes WHERE startsWith(query_id, 'dat:')`)
	return len(running) > 0, err
}

// Meddle makes rows wrong.
func (e *events) Meddle(ctx context.Context, lost, doubled, copied rig.Entry) error {
	of := func(entry rig.Entry) string {
		return ` FROM {db}.events WHERE dat_txn = '` + entry.Txn + `' AND ` + e.part + ` = '` + entry.Part + `'`
	}
	return errors.Join(
		e.Exec(ctx, `DELETE`+of(lost)),
		e.Exec(ctx, `INSERT INTO {db}.events SELECT *`+of(doubled)),
		e.Exec(ctx, `INSERT INTO {db}.events SELECT * REPLACE(generateUUIDv4() AS dat_txn) FROM (SELECT *`+of(copied)+`)`),
	)
}
