package icevalue

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
)

// Reader reads one column of one batch.
type Reader interface {
	// Value is the cell of row i; nil is NULL. It shares no memory with the
	// batch, which may be released.
	Value(i int) driver.Value
}

// NewReader makes the Reader of field over a.
func NewReader(field iceberg.NestedField, a arrow.Array) (Reader, error) {
	if value := scalarFunc(field.Type, a); value != nil {
		return &reader{a, value}, nil
	}
	text, err := jsonFunc(field.Name, field.Type, a)
	if err != nil {
		return nil, err
	}
	return &reader{a, func(i int) driver.Value { return string(text(nil, i)) }}, nil
}

// reader knows NULL; value is asked for rows that are not.
type reader struct {
	a     arrow.Array
	value func(i int) driver.Value
}

func (r *reader) Value(i int) driver.Value {
	if r.a.IsNull(i) {
		return nil
	}
	return r.value(i)
}

// scalarFunc reads a column of a primitive type; nil where a is none that can be.
func scalarFunc(t iceberg.Type, a arrow.Array) func(i int) driver.Value {
	switch a := a.(type) {
	case *array.Boolean:
		return func(i int) driver.Value { return a.Value(i) }
	case *array.Int32:
		return func(i int) driver.Value { return int64(a.Value(i)) }
	case *array.Int64:
		return func(i int) driver.Value { return a.Value(i) }
	case *array.Float32:
		return func(i int) driver.Value { return float64(a.Value(i)) }
	case *array.Float64:
		return func(i int) driver.Value { return a.Value(i) }
	case *array.Decimal128:
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) driver.Value { return a.Value(i).ToString(scale) }
	case *array.Date32:
		return func(i int) driver.Value { return dateTime(a.Value(i)) }
	case *array.Time64:
		if unitOf(a) == arrow.Microsecond {
			return func(i int) driver.Value { return string(appendClock(nil, int64(a.Value(i)))) }
		}
	case *array.Timestamp:
		if clock := timestampTime(t, a); clock != nil {
			return func(i int) driver.Value { return clock(i) }
		}
	case *array.String: // its Value is a window on the batch's memory
		return func(i int) driver.Value { return strings.Clone(a.Value(i)) }
	case *array.LargeString:
		return func(i int) driver.Value { return strings.Clone(a.Value(i)) }
	case *array.Binary:
		return func(i int) driver.Value { return cloneBytes(a.Value(i)) }
	case *array.LargeBinary:
		return func(i int) driver.Value { return cloneBytes(a.Value(i)) }
	case *array.FixedSizeBinary:
		return func(i int) driver.Value { return cloneBytes(a.Value(i)) }
	case *extensions.UUIDArray:
		return func(i int) driver.Value { return a.Value(i).String() }
	}
	return nil
}

// cloneBytes never gives nil: an empty value is not NULL.
func cloneBytes(b []byte) []byte {
	if len(b) == 0 {
		return []byte{}
	}
	return bytes.Clone(b)
}

func dateTime(d arrow.Date32) time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

func unitOf(a arrow.Array) arrow.TimeUnit {
	if t, ok := a.DataType().(arrow.TemporalWithUnit); ok {
		return t.TimeUnit()
	}
	return arrow.Second
}

// timestampTime reads a timestamp of the unit that its type has.
func timestampTime(t iceberg.Type, a *array.Timestamp) func(i int) time.Time {
	_, nanos, ok := timestampKind(t)
	switch unit := unitOf(a); {
	case ok && nanos && unit == arrow.Nanosecond:
		return func(i int) time.Time { return time.Unix(0, int64(a.Value(i))).UTC() }
	case ok && !nanos && unit == arrow.Microsecond:
		return func(i int) time.Time { return time.UnixMicro(int64(a.Value(i))).UTC() }
	}
	return nil
}

func noReader(name string, t iceberg.Type, a arrow.Array) error {
	return fmt.Errorf("rhizodat: read column %s of type %s: no way to read it from Arrow %s", name, t, a.DataType())
}
