package rhizodat

import (
	"database/sql/driver"
	"io"
	"reflect"
)

// rows adds to a store's rows the column interfaces that the store lacks.
type rows struct{ driver.Rows }

var (
	_ driver.RowsNextResultSet              = rows{}
	_ driver.RowsColumnTypeScanType         = rows{}
	_ driver.RowsColumnTypeDatabaseTypeName = rows{}
	_ driver.RowsColumnTypeLength           = rows{}
	_ driver.RowsColumnTypeNullable         = rows{}
	_ driver.RowsColumnTypePrecisionScale   = rows{}
)

func columned(r driver.Rows) driver.Rows { return rows{r} }

func (r rows) HasNextResultSet() bool {
	n, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && n.HasNextResultSet()
}

func (r rows) NextResultSet() error {
	if n, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return n.NextResultSet()
	}
	return io.EOF
}

func (r rows) ColumnTypeScanType(i int) reflect.Type {
	if t, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return t.ColumnTypeScanType(i)
	}
	return reflect.TypeFor[any]()
}

func (r rows) ColumnTypeDatabaseTypeName(i int) string {
	if t, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return t.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

func (r rows) ColumnTypeLength(i int) (int64, bool) {
	if t, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return t.ColumnTypeLength(i)
	}
	return 0, false
}

func (r rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	if t, has := r.Rows.(driver.RowsColumnTypeNullable); has {
		return t.ColumnTypeNullable(i)
	}
	return false, false
}

func (r rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if t, has := r.Rows.(driver.RowsColumnTypePrecisionScale); has {
		return t.ColumnTypePrecisionScale(i)
	}
	return 0, 0, false
}

// noRows is the answer to a savepoint that was sent as a query.
type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }
