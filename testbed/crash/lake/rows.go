package lake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// unit is what the table holds of one.
type unit struct {
	rows, snapshots int
	different       map[int64]bool
	stores          int32
}

// units reads the whole table and all of its snapshots.
func (s *Store) units(ctx context.Context) (map[string]*unit, error) {
	tbl, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	units := map[string]*unit{}
	of := func(txn string) *unit {
		if units[txn] == nil {
			units[txn] = &unit{different: map[int64]bool{}}
		}
		return units[txn]
	}
	for _, snapshot := range tbl.Metadata().Snapshots() {
		if snapshot.Summary != nil && snapshot.Summary.Properties["dat.txn"] != "" {
			of(snapshot.Summary.Properties["dat.txn"]).snapshots++
		}
	}
	if tbl.CurrentSnapshot() == nil {
		return units, nil
	}
	read, err := tbl.Scan().ToArrowTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("scan table: %w", err)
	}
	defer read.Release()
	rows := array.NewTableReader(read, 0)
	defer rows.Release()
	for rows.Next() {
		batch := rows.RecordBatch()
		txns, isText := batch.Column(0).(*array.String)
		stores, isInt := batch.Column(1).(*array.Int32)
		keys, isLong := batch.Column(2).(*array.Int64)
		if !isText || !isInt || !isLong {
			return nil, fmt.Errorf("scan table: columns of other types: %s", batch.Schema())
		}
		for i := range int(batch.NumRows()) {
			u := of(txns.Value(i))
			u.rows++
			u.stores, u.different[keys.Value(i)] = stores.Value(i), true
		}
	}
	return units, nil
}

// Effects are the units that have rows.
func (s *Store) Effects(ctx context.Context) (map[string]string, error) {
	units, err := s.units(ctx)
	effects := map[string]string{}
	for txn, u := range units {
		if u.rows > 0 {
			effects[txn] = strconv.Itoa(int(u.stores))
		}
	}
	return effects, err
}

// Inexact finds units that have other rows than theirs, each once, of one
// snapshot.
func (s *Store) Inexact(ctx context.Context) ([]string, error) {
	units, err := s.units(ctx)
	var wrong []string
	for _, txn := range slices.Sorted(maps.Keys(units)) {
		u := units[txn]
		told := u.snapshots == 1 || u.snapshots == 0 && s.layout.Expires
		if u.rows != s.layout.Rows || len(u.different) != u.rows || !told {
			wrong = append(wrong, fmt.Sprintf("%s has %d rows, %d different ones, and not %d, and %d snapshots", txn, u.rows, len(u.different), s.layout.Rows, u.snapshots))
		}
	}
	return wrong, err
}
