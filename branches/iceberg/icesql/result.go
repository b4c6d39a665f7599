package icesql

import (
	"database/sql/driver"
	"io"
	"iter"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
)

// result is driver.Rows over chunks.
type result struct {
	outputs []output
	next    func() (chunk, error, bool)
	stop    func()
	at      chunk
	row     int
	err     error // ends the rows
}

var (
	_ driver.Rows                           = (*result)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*result)(nil)
	_ driver.RowsColumnTypeLength           = (*result)(nil)
	_ driver.RowsColumnTypeNullable         = (*result)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*result)(nil)
	_ driver.RowsColumnTypeScanType         = (*result)(nil)
)

func newResult(outputs []output, chunks iter.Seq2[chunk, error]) *result {
	next, stop := iter.Pull2(chunks)
	return &result{outputs: outputs, next: next, stop: stop}
}

// Columns are the names of the result's columns.
func (r *result) Columns() []string {
	out := make([]string, len(r.outputs))
	for i, o := range r.outputs {
		out[i] = o.name
	}
	return out
}

// Next fills dest with one row; io.EOF after the last.
func (r *result) Next(dest []driver.Value) error {
	for r.at == nil || r.row == r.at.rows() {
		if err := r.advance(); err != nil {
			return err
		}
	}
	for i := range dest {
		dest[i] = r.at.value(r.row, i)
	}
	r.row++
	return nil
}

func (r *result) advance() error {
	if r.err != nil {
		return r.err
	}
	r.drop()
	c, err, ok := r.next()
	switch {
	case !ok:
		r.err = io.EOF
	case err != nil:
		r.err = err
		r.stop()
	default:
		r.at, r.row = c, 0
	}
	return r.err
}

func (r *result) drop() {
	if r.at != nil {
		r.at.release()
		r.at = nil
	}
}

// Close stops the scan.
func (r *result) Close() error {
	r.drop()
	r.stop()
	if r.err == nil {
		r.err = io.EOF
	}
	return nil
}

// ColumnTypeDatabaseTypeName is Iceberg's name of the type in upper case, without
// its parameters.
func (r *result) ColumnTypeDatabaseTypeName(i int) string {
	name, _, _ := strings.Cut(typeText(r.outputs[i].typ), "(")
	name, _, _ = strings.Cut(name, "<")
	return strings.ToUpper(name)
}

// ColumnTypeNullable is false for a required column and for count.
func (r *result) ColumnTypeNullable(i int) (nullable, ok bool) { return r.outputs[i].nullable, true }

// ColumnTypePrecisionScale is known of a decimal.
func (r *result) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	t, ok := r.outputs[i].typ.(iceberg.DecimalType)
	if !ok {
		return 0, 0, false
	}
	return int64(t.Precision()), int64(t.Scale()), true
}

// ColumnTypeLength is n of fixed(n), and no bound of a string or a binary.
func (r *result) ColumnTypeLength(i int) (length int64, ok bool) {
	switch t := r.outputs[i].typ.(type) {
	case iceberg.FixedType:
		return int64(t.Len()), true
	case iceberg.StringType, iceberg.BinaryType:
		return math.MaxInt64, true
	}
	return 0, false
}

// ColumnTypeScanType is the Go type of the values that are not NULL.
func (r *result) ColumnTypeScanType(i int) reflect.Type {
	switch familyOf(r.outputs[i].typ) {
	case famBool:
		return reflect.TypeFor[bool]()
	case famInt:
		return reflect.TypeFor[int64]()
	case famFloat:
		return reflect.TypeFor[float64]()
	case famBytes:
		return reflect.TypeFor[[]byte]()
	case famDate, famTimestamp, famTimestamptz:
		return reflect.TypeFor[time.Time]()
	case famDecimal, famString, famUUID, famTime, famNested:
	}
	return reflect.TypeFor[string]()
}
