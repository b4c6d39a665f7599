package drevo

import (
	"context"
	"database/sql/driver"
	"io"
	"reflect"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// rows are records, all read. A scalar is itself; a node, a relationship, a path, a
// list and a map are JSON.
type rows struct {
	columns []string
	types   []columnType
	values  [][]driver.Value
	next    int
}

var (
	_ driver.Rows                           = (*rows)(nil)
	_ driver.RowsColumnTypeScanType         = (*rows)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*rows)(nil)
)

// collect takes the whole result. drevo has it ready before it answers.
func collect(ctx context.Context, result neo4j.ResultWithContext) (*rows, error) {
	columns, err := result.Keys()
	if err != nil {
		return nil, err
	}
	r := &rows{columns: columns, types: make([]columnType, len(columns))}
	for result.Next(ctx) {
		record := result.Record().Values
		row := make([]driver.Value, len(record))
		for i, v := range record {
			value, kind, err := rowValue(v)
			if err != nil {
				return nil, err
			}
			row[i] = value
			r.types[i].saw(kind)
		}
		r.values = append(r.values, row)
	}
	return r, result.Err()
}

// Columns names the columns as the statement does.
func (r *rows) Columns() []string { return r.columns }

// Next reads a row.
func (r *rows) Next(dest []driver.Value) error {
	if r.next == len(r.values) {
		return io.EOF
	}
	copy(dest, r.values[r.next])
	r.next++
	return nil
}

// Close ends the reading.
func (r *rows) Close() error {
	r.next = len(r.values)
	return nil
}

// ColumnTypeDatabaseTypeName is Cypher's word for what the column holds: ANY where
// its rows differ, NULL where none holds a value.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string { return r.types[i].name() }

// ColumnTypeScanType is a Go type that holds the column's values.
func (r *rows) ColumnTypeScanType(i int) reflect.Type { return r.types[i].scan() }

// columnType is what the rows of a column have in common.
type columnType struct {
	kind  valueKind
	mixed bool
}

func (c *columnType) saw(kind valueKind) {
	switch {
	case kind == kindNull || kind == c.kind:
	case c.kind == kindNull:
		c.kind = kind
	default:
		c.mixed = true
	}
}

func (c columnType) name() string {
	if c.mixed {
		return "ANY"
	}
	return string(c.kind)
}

func (c columnType) scan() reflect.Type {
	switch {
	case c.mixed || c.kind == kindNull:
		return reflect.TypeFor[any]()
	case c.kind == kindBoolean:
		return reflect.TypeFor[bool]()
	case c.kind == kindInteger:
		return reflect.TypeFor[int64]()
	case c.kind == kindFloat:
		return reflect.TypeFor[float64]()
	case c.kind == kindString:
		return reflect.TypeFor[string]()
	}
	return reflect.TypeFor[[]byte]()
}
