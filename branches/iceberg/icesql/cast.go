package icesql

import (
	"context"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// array brings computed numbers to a column's type. A decimal is rounded to the
// column's places, halves away from zero; a whole column takes whole numbers only.
func (x numbers) array(what string, to iceberg.Type) (arrow.Array, error) {
	dt, put := x.putter(to)
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	b.Reserve(len(x.null))
	for i, null := range x.null {
		if null {
			b.AppendNull()
			continue
		}
		if cause := put(b, i); cause != "" {
			return nil, &EvalError{Column: what, Cause: cause}
		}
	}
	return b.NewArray(), nil
}

// putter appends row i to a builder of the type, or says why it cannot be.
func (x numbers) putter(to iceberg.Type) (arrow.DataType, func(b array.Builder, i int) string) {
	switch t := to.(type) {
	case iceberg.Int32Type:
		return arrow.PrimitiveTypes.Int32, func(b array.Builder, i int) string {
			n, cause := x.whole(i)
			if cause == "" && (n < math.MinInt32 || n > math.MaxInt32) {
				return causeOverflow
			}
			b.(*array.Int32Builder).Append(int32(n)) //nolint:gosec // G115: checked above
			return cause
		}
	case iceberg.Float32Type:
		return arrow.PrimitiveTypes.Float32, func(b array.Builder, i int) string {
			f := x.float(i)
			if math.IsInf(float64(float32(f)), 0) && !math.IsInf(f, 0) {
				return causeOverflow
			}
			b.(*array.Float32Builder).Append(float32(f))
			return ""
		}
	case iceberg.Float64Type:
		return arrow.PrimitiveTypes.Float64, func(b array.Builder, i int) string {
			b.(*array.Float64Builder).Append(x.float(i))
			return ""
		}
	case iceberg.DecimalType:
		dt := &arrow.Decimal128Type{Precision: int32(t.Precision()), Scale: int32(t.Scale())} //nolint:gosec // G115: at most 38
		return dt, func(b array.Builder, i int) string {
			n, cause := x.exact(i)
			if cause != "" {
				return cause
			}
			d, err := icevalue.DecimalOf(n.Round(t.Scale()), t.Precision())
			if err != nil {
				return causeOverflow
			}
			b.(*array.Decimal128Builder).Append(d)
			return ""
		}
	}
	return arrow.PrimitiveTypes.Int64, func(b array.Builder, i int) string {
		n, cause := x.whole(i)
		b.(*array.Int64Builder).Append(n)
		return cause
	}
}

// exact is row i as an exact number; a float by its shortest text.
func (x numbers) exact(i int) (icevalue.Number, string) {
	if x.family != famFloat {
		return x.number(i), ""
	}
	n, err := icevalue.NumberOf(x.floats[i])
	if err != nil {
		return n, strconv.FormatFloat(x.floats[i], 'g', -1, 64) + " is no number of the column's type"
	}
	return n, ""
}

func (x numbers) float(i int) float64 {
	if x.family == famFloat {
		return x.floats[i]
	}
	return x.number(i).Float64()
}

func (x numbers) whole(i int) (int64, string) {
	if x.family == famInt {
		return x.ints[i], ""
	}
	n, cause := x.exact(i)
	if cause != "" {
		return 0, cause
	}
	switch w, exact := n.Floor(0); {
	case !exact:
		return 0, "the result is not a whole number, and the column is of whole numbers"
	case !w.IsInt64():
		return 0, causeOverflow
	default:
		return w.Int64(), ""
	}
}

// casts reports whether cast can bring the one type to the other.
func casts(from, to iceberg.Type) bool {
	if sameType(from, to) {
		return true
	}
	f, t := familyOf(from), familyOf(to)
	return f.numeric() && t.numeric() || f == famDate && t == famTimestamp || f == t && (f == famTimestamp || f == famTimestamptz)
}

// sameType compares types without the ids of their fields.
func sameType(a, b iceberg.Type) bool { return typeText(a) == typeText(b) }

// cast brings an array of one type to the type of a column; it takes a over.
func cast(_ context.Context, what string, a arrow.Array, from, to iceberg.Type) (arrow.Array, error) {
	if sameType(from, to) {
		return a, nil
	}
	defer a.Release()
	if f := familyOf(from); f.numeric() {
		scale := 0
		if t, ok := from.(iceberg.DecimalType); ok {
			scale = t.Scale()
		}
		return numbersOf(a, f, scale, a.Len(), a.IsNull).array(what, to)
	}
	return castTicks(what, a, tick(from), tick(to), to)
}

// castTicks changes the unit of a time; a finer one is rounded down.
func castTicks(what string, a arrow.Array, from, to int64, typ iceberg.Type) (arrow.Array, error) {
	dt := &arrow.TimestampType{Unit: arrow.Microsecond}
	if to == 1 {
		dt.Unit = arrow.Nanosecond
	}
	if familyOf(typ) == famTimestamptz {
		dt.TimeZone = "UTC"
	}
	b := array.NewTimestampBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	at := intsOf(a)
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
			continue
		}
		n, cause := at(i), ""
		if from >= to {
			n, cause = multiply(n, from/to)
		} else if n = at(i) / (to / from); at(i)%(to/from) < 0 {
			n--
		}
		if cause != "" {
			return nil, &EvalError{Column: what, Cause: cause}
		}
		b.Append(arrow.Timestamp(n))
	}
	return b.NewArray(), nil
}
