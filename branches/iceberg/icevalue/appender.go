package icevalue

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// Appender writes one column. It is not safe for use by several goroutines, as an
// Arrow builder is not.
type Appender interface {
	// Append converts v and adds it to the column. On an error, a *ValueError,
	// the column is as before.
	Append(v any) error
}

// cell is an Appender in two steps: a nested value must be known to fit as a whole
// before the first of its parts is written, as a builder cannot take back.
type cell interface {
	Appender
	// check converts v; nil is NULL.
	check(v any) (any, error)
	// put adds what check gave.
	put(x any)
}

// NewAppender makes the Appender of field, which writes to b: the builder that
// arrow-go makes for the field's type in table.SchemaToArrowSchema.
func NewAppender(field iceberg.NestedField, b array.Builder) (Appender, error) {
	return newCell(column{name: field.Name, typ: field.Type, required: field.Required}, b)
}

// column is what an error says about where a value was to go.
type column struct {
	name     string
	typ      iceberg.Type
	required bool
	nested   bool // inside a struct, list or map
}

func (c *column) refuse(v any, err error) error {
	if inner, ok := err.(*ValueError); ok { //nolint:errorlint // made here and never wrapped
		return inner // a part of a nested value names itself
	}
	return &ValueError{Column: c.name, Type: c.typ.String(), Value: Shown(v), Err: err}
}

func (c *column) inner(name string, typ iceberg.Type, required bool) column {
	return column{name: c.name + "." + name, typ: typ, required: required, nested: true}
}

// builder is what the scalar builders of arrow-go have in common.
type builder[T any] interface {
	Append(v T)
	AppendNull()
}

// scalar writes a column of a primitive type. fast takes a value that is already
// of the Go type that the column is mostly given; everything else goes through
// Plain and slow.
type scalar[T any] struct {
	column
	b    builder[T]
	fast func(v any) (T, bool)
	slow func(v any) (T, error)
}

func (s *scalar[T]) Append(v any) error {
	if x, ok := s.fast(v); ok {
		s.b.Append(x)
		return nil
	}
	x, null, err := s.convert(v)
	switch {
	case err != nil:
		return err
	case null:
		s.b.AppendNull()
	default:
		s.b.Append(x)
	}
	return nil
}

func (s *scalar[T]) convert(v any) (x T, null bool, err error) {
	p, err := Plain(v)
	if err != nil {
		return x, false, s.refuse(v, err)
	}
	if p == nil {
		if s.required {
			return x, true, s.refuse(nil, ErrRequired)
		}
		return x, true, nil
	}
	if x, err = s.slow(p); err != nil {
		return x, false, s.refuse(p, err)
	}
	return x, false, nil
}

func (s *scalar[T]) check(v any) (any, error) {
	if x, ok := s.fast(v); ok {
		return x, nil
	}
	x, null, err := s.convert(v)
	if err != nil || null {
		return nil, err
	}
	return x, nil
}

func (s *scalar[T]) put(x any) {
	if x == nil {
		s.b.AppendNull()
		return
	}
	s.b.Append(x.(T))
}

// as is the fast of a column whose Go type is the usual argument's.
func as[T any](v any) (T, bool) {
	x, ok := v.(T)
	return x, ok
}

func never[T any](any) (x T, ok bool) { return x, false }

func newCell(c column, b array.Builder) (cell, error) {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return &scalar[bool]{c, b, as[bool], toBool}, nil
	case *array.Int32Builder:
		return &scalar[int32]{c, b, fastInt32, toInt32}, nil
	case *array.Int64Builder:
		return &scalar[int64]{c, b, fastInt64, toInt64}, nil
	case *array.Float32Builder:
		return &scalar[float32]{c, b, fastFloat32, toFloat32}, nil
	case *array.Float64Builder:
		return &scalar[float64]{c, b, fastFloat64, toFloat64}, nil
	case *array.Decimal128Builder:
		if t, ok := c.typ.(iceberg.DecimalType); ok {
			return &scalar[decimal128.Num]{c, b, never[decimal128.Num], toDecimal(t.Precision(), t.Scale())}, nil
		}
	case *array.Date32Builder:
		return &scalar[arrow.Date32]{c, b, never[arrow.Date32], toDate}, nil
	case *array.Time64Builder:
		return &scalar[arrow.Time64]{c, b, never[arrow.Time64], toTime}, nil
	case *array.TimestampBuilder:
		if zoned, nanos, ok := timestampKind(c.typ); ok {
			return &scalar[arrow.Timestamp]{c, b, never[arrow.Timestamp], toTimestamp(zoned, nanos)}, nil
		}
	case *array.StringBuilder:
		return &scalar[string]{c, b, never[string], toString}, nil
	case *array.LargeStringBuilder:
		return &scalar[string]{c, b, never[string], toString}, nil
	case *array.BinaryBuilder:
		return &scalar[[]byte]{c, b, never[[]byte], bytesFunc(c)}, nil
	case *array.FixedSizeBinaryBuilder:
		if t, ok := c.typ.(iceberg.FixedType); ok {
			return &scalar[[]byte]{c, b, never[[]byte], toFixed(t.Len(), bytesFunc(c))}, nil
		}
	case *extensions.UUIDBuilder:
		return &scalar[uuid.UUID]{c, b, as[uuid.UUID], toUUID}, nil
	case *array.ListBuilder, *array.LargeListBuilder, *array.MapBuilder, *array.StructBuilder:
		return newNested(c, b)
	}
	return nil, fmt.Errorf("rhizodat: write column %s of type %s: no way to write it as Arrow %s", c.name, c.typ, b.Type())
}

func bytesFunc(c column) func(any) ([]byte, error) {
	if c.nested {
		return toHexBytes
	}
	return toBytes
}

// fastFloat64 also reads a number of JSON, whose -0 an exact number would lose.
func fastFloat64(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case json.Number:
		f, err := x.Float64()
		return f, err == nil
	}
	return 0, false
}

// fastFloat32 leaves what may overflow to toFloat32.
func fastFloat32(v any) (float32, bool) {
	if x, ok := v.(float32); ok {
		return x, true
	}
	f, ok := fastFloat64(v)
	return float32(f), ok && f >= -math.MaxFloat32 && f <= math.MaxFloat32
}

func fastInt64(v any) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, true
	case int:
		return int64(x), true
	case int32:
		return int64(x), true
	}
	return 0, false
}

func fastInt32(v any) (int32, bool) {
	n, ok := fastInt64(v)
	return int32(n), ok && n == int64(int32(n)) //nolint:gosec // G115: that is what is checked
}

// timestampKind takes the four timestamp types apart.
func timestampKind(t iceberg.Type) (zoned, nanos, ok bool) {
	switch t.(type) {
	case iceberg.TimestampType:
		return false, false, true
	case iceberg.TimestampTzType:
		return true, false, true
	case iceberg.TimestampNsType:
		return false, true, true
	case iceberg.TimestampTzNsType:
		return true, true, true
	}
	return false, false, false
}
