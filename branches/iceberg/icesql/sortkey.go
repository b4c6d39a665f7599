package icesql

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// A key is a row's values as bytes whose order is the order of the values, so that
// sorting, grouping and MIN compare bytes only. Values that are equal have one key:
// -0 has that of 0, and every NaN has one, above all other floats.

// keyFunc appends the key of a row that is not NULL.
type keyFunc func(b []byte, i int) []byte

// keysOf makes the keys of a column; nil for a type without an order.
func keysOf(a arrow.Array, f family) keyFunc {
	switch f {
	case famBool:
		v, _ := a.(*array.Boolean)
		return func(b []byte, i int) []byte { return append(b, byte(truthOf(v.Value(i)))) }
	case famInt, famDate, famTime, famTimestamp, famTimestamptz:
		at := intsOf(a)
		return func(b []byte, i int) []byte { return appendInt(b, at(i)) }
	case famFloat:
		at := floatsOf(a)
		return func(b []byte, i int) []byte { return appendFloat(b, at(i)) }
	case famDecimal:
		v, _ := a.(*array.Decimal128)
		return func(b []byte, i int) []byte { return appendDecimal(b, v.Value(i)) }
	case famString:
		at := stringsOf(a)
		return func(b []byte, i int) []byte { return appendText(b, at(i)) }
	case famBytes, famUUID:
		at := bytesOf(a)
		return func(b []byte, i int) []byte { return appendText(b, at(i)) }
	case famNested:
	}
	return nil
}

const signBit = 1 << 63

func appendInt(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)^signBit) //nolint:gosec // G115: two's complement is wanted
}

func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return binary.BigEndian.AppendUint64(b, math.MaxUint64)
	case f == 0:
		f = 0 // -0 too
	}
	n := math.Float64bits(f)
	if n&signBit != 0 {
		n = ^n
	} else {
		n |= signBit
	}
	return binary.BigEndian.AppendUint64(b, n)
}

func appendDecimal(b []byte, d decimal128.Num) []byte {
	return binary.BigEndian.AppendUint64(appendInt(b, d.HighBits()), d.LowBits())
}

// appendText ends with 0 1 and writes a 0 inside as 0 255, so that no text's key is
// the front of another's and shorter texts come first.
func appendText[S string | []byte](b []byte, s S) []byte {
	for i := range len(s) {
		b = append(b, s[i])
		if s[i] == 0 {
			b = append(b, 255)
		}
	}
	return append(b, 0, 1)
}

// The first byte of a component: NULL before or after everything that is not.
const (
	keyNullFirst = 0
	keyValue     = 1
	keyNullLast  = 2
)

// appendKey appends one component of a sort key.
func (o sortOrder) appendKey(b []byte, null bool, key func([]byte) []byte) []byte {
	if null {
		if o.nullsFirst {
			return append(b, keyNullFirst)
		}
		return append(b, keyNullLast)
	}
	b = append(b, keyValue)
	from := len(b)
	b = key(b)
	if o.desc {
		for i := from; i < len(b); i++ {
			b[i] = ^b[i]
		}
	}
	return b
}

// sortOrder is how one key of ORDER BY sorts.
type sortOrder struct{ desc, nullsFirst bool }

func (o Order) sort() sortOrder {
	out := sortOrder{desc: o.Desc, nullsFirst: o.Desc} // NULL counts as the greatest
	switch o.Nulls {
	case NullsFirst:
		out.nullsFirst = true
	case NullsLast:
		out.nullsFirst = false
	case NullsDefault:
	}
	return out
}
