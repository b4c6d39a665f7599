package clickhouse

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"

	client "github.com/ClickHouse/clickhouse-go/v2"
	chdriver "github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// rows are the client's, with the values that its own database/sql form has
// (TestRowsAreTheClients compares all types): a UUID is a string, a Decimal too,
// a Nullable is its value or nil.
type rows struct {
	rows   chdriver.Rows
	types  []chdriver.ColumnType
	values []reflect.Value // pointers to what Scan fills
	totals []driver.Value  // of WITH TOTALS, once the rows are read; nil for none
	ended  bool
}

var (
	_ driver.RowsNextResultSet              = (*rows)(nil)
	_ driver.RowsColumnTypeScanType         = (*rows)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*rows)(nil)
	_ driver.RowsColumnTypeLength           = (*rows)(nil)
	_ driver.RowsColumnTypeNullable         = (*rows)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*rows)(nil)
)

func newRows(found chdriver.Rows) *rows {
	r := &rows{rows: found, types: found.ColumnTypes()}
	r.values = make([]reflect.Value, len(r.types))
	return r
}

// Columns names the columns.
func (r *rows) Columns() []string { return r.rows.Columns() }

// Close ends the query.
func (r *rows) Close() error { return r.rows.Close() }

// Next reads a row.
func (r *rows) Next(dest []driver.Value) error {
	if r.ended {
		if r.totals == nil {
			return io.EOF
		}
		copy(dest, r.totals)
		r.totals = nil
		return nil
	}
	return r.next(dest)
}

func (r *rows) next(dest []driver.Value) error {
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	return r.scan(r.rows.Scan, dest)
}

// scan reads the current row. What it fills is made anew for each, since the
// application may keep a slice or a map of it.
func (r *rows) scan(scan func(...any) error, dest []driver.Value) error {
	into := make([]any, len(r.types))
	for i, t := range r.types {
		r.values[i] = reflect.New(t.ScanType())
		into[i] = r.values[i].Interface()
	}
	if err := scan(into...); err != nil {
		return err
	}
	for i := range r.types {
		value, err := driverValue(r.values[i].Elem())
		if err != nil {
			return err
		}
		dest[i] = value
	}
	return nil
}

// driverValue is the form of a value in database/sql.
func driverValue(v reflect.Value) (driver.Value, error) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, nil //nolint:nilnil // NULL is a value
		}
		v = v.Elem()
	}
	if v.Type() == reflect.TypeFor[client.JSON]() {
		// Its methods are its pointer's.
		made := reflect.New(v.Type())
		made.Elem().Set(v)
		return made.Interface(), nil
	}
	if valuer, ok := reflect.TypeAssert[driver.Valuer](v); ok {
		return valuer.Value()
	}
	return v.Interface(), nil
}

// HasNextResultSet reports whether totals follow.
func (r *rows) HasNextResultSet() bool {
	if r.ended {
		return false
	}
	values := make([]driver.Value, len(r.types))
	err := r.scan(r.rows.Totals, values)
	return !errors.Is(err, sql.ErrNoRows) && err == nil
}

// NextResultSet goes on to the totals.
func (r *rows) NextResultSet() error {
	if r.ended {
		return io.EOF
	}
	values := make([]driver.Value, len(r.types))
	switch err := r.scan(r.rows.Totals, values); {
	case errors.Is(err, sql.ErrNoRows):
		return io.EOF
	case err != nil:
		return err
	}
	r.ended, r.totals = true, values
	return nil
}

// ColumnTypeScanType is a Go type that holds the column's values.
func (r *rows) ColumnTypeScanType(i int) reflect.Type { return r.types[i].ScanType() }

// ColumnTypeDatabaseTypeName is the type as ClickHouse writes it.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string { return r.types[i].DatabaseTypeName() }

// ColumnTypeNullable reports whether the column may be NULL.
func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) { return r.types[i].Nullable(), true }

// ColumnTypeLength is the bound of a FixedString; a String has none.
func (r *rows) ColumnTypeLength(i int) (length int64, ok bool) {
	outer, params := r.unwrapped(i)
	if outer != "FixedString" || len(params) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(params[0], 10, 64)
	return n, err == nil
}

// ColumnTypePrecisionScale is that of a Decimal, and the precision of a
// DateTime64.
func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	outer, params := r.unwrapped(i)
	if len(params) == 0 || outer != "Decimal" && outer != "DateTime64" {
		return 0, 0, false
	}
	precision, err := strconv.ParseInt(params[0], 10, 64)
	if err != nil || outer == "DateTime64" {
		return precision, 0, err == nil
	}
	if len(params) == 2 {
		scale, err = strconv.ParseInt(params[1], 10, 64)
	}
	return precision, scale, err == nil
}

// unwrapped is a column's type without Nullable and LowCardinality.
func (r *rows) unwrapped(i int) (outer string, params []string) {
	name := r.types[i].DatabaseTypeName()
	for {
		outer, params, _ = parameters(strings.TrimSpace(name))
		if (outer != "Nullable" && outer != "LowCardinality") || len(params) != 1 {
			return outer, params
		}
		name = params[0]
	}
}
