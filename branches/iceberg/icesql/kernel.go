package icesql

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
)

// fits checks once for a batch that the kernels of the column's family can read a,
// so that they need no check for each row.
func (c *boundColumn) fits(a arrow.Array) error {
	ok := true
	switch c.family {
	case famBool:
		_, ok = a.(*array.Boolean)
	case famInt:
		switch a.(type) {
		case *array.Int32, *array.Int64:
		default:
			ok = false
		}
	case famFloat:
		switch a.(type) {
		case *array.Float32, *array.Float64:
		default:
			ok = false
		}
	case famDecimal:
		t, isDecimal := a.DataType().(*arrow.Decimal128Type)
		want, _ := c.field.Type.(iceberg.DecimalType)
		ok = isDecimal && int(t.Scale) == want.Scale()
	case famString:
		ok = stringsOf(a) != nil
	case famBytes, famUUID:
		ok = bytesOf(a) != nil
	case famDate:
		_, ok = a.(*array.Date32)
	case famTime:
		_, ok = a.(*array.Time64)
		ok = ok && unitOf(a) == arrow.Microsecond
	case famTimestamp, famTimestamptz:
		_, ok = a.(*array.Timestamp)
		ok = ok && int64(unitOf(a).Multiplier()) == tick(c.field.Type)
	case famNested:
	}
	if !ok {
		return fmt.Errorf("rhizodat: evaluate predicate: column %s of type %s is Arrow %s in the batch", c.name(), c.field.Type, a.DataType())
	}
	return nil
}

func unitOf(a arrow.Array) arrow.TimeUnit {
	if t, ok := a.DataType().(arrow.TemporalWithUnit); ok {
		return t.TimeUnit()
	}
	return arrow.Second
}

// fixedNode has one truth wherever the column is not NULL.
type fixedNode struct {
	column slot
	truth  Truth
}

func (n fixedNode) eval(f *frame, out Mask) {
	always(n.truth).eval(f, out)
	f.columns[n.column].hideNulls(out)
}

// intNode compares a column that is stored as whole numbers with one.
type intNode struct {
	column slot
	op     Op
	c      int64
}

func (n intNode) eval(f *frame, out Mask) {
	v := &f.columns[n.column]
	switch a := v.values.(type) {
	case *array.Int32:
		compareInts(a.Int32Values(), n.op, n.c, out)
	case *array.Int64:
		compareInts(a.Int64Values(), n.op, n.c, out)
	case *array.Date32:
		compareInts(a.Date32Values(), n.op, n.c, out)
	case *array.Time64:
		compareInts(a.Time64Values(), n.op, n.c, out)
	case *array.Timestamp:
		compareInts(a.TimestampValues(), n.op, n.c, out)
	}
	v.hideNulls(out)
}

// compareInts has a loop for each operator, so that the operator is asked once for
// a batch.
func compareInts[T ~int32 | ~int64](values []T, op Op, c int64, out Mask) {
	switch op {
	case Eq:
		for i, x := range values {
			out[i] = truthOf(int64(x) == c)
		}
	case Ne:
		for i, x := range values {
			out[i] = truthOf(int64(x) != c)
		}
	case Lt:
		for i, x := range values {
			out[i] = truthOf(int64(x) < c)
		}
	case Le:
		for i, x := range values {
			out[i] = truthOf(int64(x) <= c)
		}
	case Gt:
		for i, x := range values {
			out[i] = truthOf(int64(x) > c)
		}
	case Ge:
		for i, x := range values {
			out[i] = truthOf(int64(x) >= c)
		}
	case Add, Sub, Mul, Div, Concat:
	}
}

// floatNode compares in the order of this package: NaN equals itself and is greater
// than everything else, and -0 equals 0.
type floatNode struct {
	column slot
	op     Op
	c      float64
}

func (n floatNode) eval(f *frame, out Mask) {
	v := &f.columns[n.column]
	switch a := v.values.(type) {
	case *array.Float32:
		compareFloats(a.Float32Values(), n.op, n.c, out)
	case *array.Float64:
		compareFloats(a.Float64Values(), n.op, n.c, out)
	}
	v.hideNulls(out)
}

func compareFloats[T float32 | float64](values []T, op Op, c float64, out Mask) {
	if math.IsNaN(c) {
		for i, x := range values {
			out[i] = truthOf(op.holds(floatOrder(float64(x), c)))
		}
		return
	}
	switch op { // of a NaN among the values every == and < is false
	case Eq:
		for i, x := range values {
			out[i] = truthOf(float64(x) == c)
		}
	case Ne:
		for i, x := range values {
			out[i] = truthOf(float64(x) != c)
		}
	case Lt:
		for i, x := range values {
			out[i] = truthOf(float64(x) < c)
		}
	case Le:
		for i, x := range values {
			out[i] = truthOf(float64(x) <= c)
		}
	case Gt:
		for i, x := range values {
			out[i] = truthOf(!(float64(x) <= c))
		}
	case Ge:
		for i, x := range values {
			out[i] = truthOf(!(float64(x) < c))
		}
	case Add, Sub, Mul, Div, Concat:
	}
}

// floatOrder is the order of this package.
func floatOrder(x, y float64) int {
	nx, ny := math.IsNaN(x), math.IsNaN(y)
	switch {
	case nx && ny:
		return 0
	case nx:
		return 1
	case ny:
		return -1
	}
	return cmp.Compare(x, y)
}

type decimalNode struct {
	column slot
	op     Op
	c      decimal128.Num
}

func (n decimalNode) eval(f *frame, out Mask) {
	v := &f.columns[n.column]
	if a, ok := v.values.(*array.Decimal128); ok {
		for i, x := range a.Values() {
			out[i] = truthOf(n.op.holds(x.Cmp(n.c)))
		}
	}
	v.hideNulls(out)
}

// orderNode compares a column with a constant by a function of the row.
type orderNode struct {
	column slot
	op     Op
	order  func(v *vector) func(i int) int
}

func (n orderNode) eval(f *frame, out Mask) {
	v := &f.columns[n.column]
	order := n.order(v)
	for i := range out {
		out[i] = truthOf(n.op.holds(order(i)))
	}
	v.hideNulls(out)
}

// stringNode compares strings; equality, the usual question, without an order.
type stringNode struct {
	column slot
	op     Op
	c      string
}

func (n stringNode) eval(f *frame, out Mask) {
	v := &f.columns[n.column]
	a, ok := v.values.(*array.String)
	if !ok || n.op != Eq && n.op != Ne {
		orderNode{n.column, n.op, func(x *vector) func(int) int { return stringOrder(x, n.c) }}.eval(f, out)
		return
	}
	equal := truthOf(n.op == Eq)
	for i := range out {
		out[i] = True - equal
		if a.Value(i) == n.c {
			out[i] = equal
		}
	}
	v.hideNulls(out)
}

func boolOrder(v *vector, c bool) func(int) int {
	a, _ := v.values.(*array.Boolean)
	return func(i int) int { return int(truthOf(a.Value(i))) - int(truthOf(c)) }
}

func stringOrder(v *vector, c string) func(int) int {
	at := stringsOf(v.values)
	return func(i int) int { return strings.Compare(at(i), c) }
}

func bytesOrder(v *vector, c []byte) func(int) int {
	at := bytesOf(v.values)
	return func(i int) int { return bytes.Compare(at(i), c) }
}

// stringsOf reads strings without copying them; nil where a has none.
func stringsOf(a arrow.Array) func(int) string {
	switch a := a.(type) {
	case *array.String:
		return a.Value
	case *array.LargeString:
		return a.Value
	}
	return nil
}

// bytesOf reads binary, fixed and uuid values without copying them.
func bytesOf(a arrow.Array) func(int) []byte {
	switch a := a.(type) {
	case *array.Binary:
		return a.Value
	case *array.LargeBinary:
		return a.Value
	case *array.FixedSizeBinary:
		return a.Value
	case *extensions.UUIDArray:
		if s, ok := a.Storage().(*array.FixedSizeBinary); ok {
			return s.Value
		}
	}
	return nil
}

// intsOf reads what is stored as whole numbers.
func intsOf(a arrow.Array) func(int) int64 {
	switch a := a.(type) {
	case *array.Int32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Int64:
		return a.Value
	case *array.Date32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Time64:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Timestamp:
		return func(i int) int64 { return int64(a.Value(i)) }
	}
	return nil
}

func floatsOf(a arrow.Array) func(int) float64 {
	switch a := a.(type) {
	case *array.Float32:
		return func(i int) float64 { return float64(a.Value(i)) }
	case *array.Float64:
		return a.Value
	case *array.Decimal128:
		scale := decimalScale(a)
		return func(i int) float64 { return a.Value(i).ToFloat64(scale) }
	}
	ints := intsOf(a)
	return func(i int) float64 { return float64(ints(i)) }
}

func decimalScale(a *array.Decimal128) int32 {
	t, _ := a.DataType().(*arrow.Decimal128Type)
	return t.Scale
}

// wideOf reads whole numbers and decimals at a common scale, which 76 digits hold.
func wideOf(a arrow.Array, scale int32) func(int) decimal256.Num {
	if d, ok := a.(*array.Decimal128); ok {
		up := scale - decimalScale(d)
		return func(i int) decimal256.Num { return decimal256.FromDecimal128(d.Value(i)).IncreaseScaleBy(up) }
	}
	ints := intsOf(a)
	return func(i int) decimal256.Num { return decimal256.FromI64(ints(i)).IncreaseScaleBy(scale) }
}
