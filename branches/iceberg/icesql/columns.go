package icesql

import (
	"bytes"
	"cmp"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// pairNode compares two columns.
type pairNode struct {
	left, right slot
	op          Op
	order       func(l, r arrow.Array) func(i int) int
}

func (n pairNode) eval(f *frame, out Mask) {
	l, r := &f.columns[n.left], &f.columns[n.right]
	order := n.order(l.values, r.values)
	for i := range out {
		out[i] = truthOf(n.op.holds(order(i)))
	}
	l.hideNulls(out)
	r.hideNulls(out)
}

func (b *binder) compareColumns(left slot, op Op, right slot) (bound, error) {
	l, r := &b.columns[left], &b.columns[right]
	order := pairOrder(l, r)
	if order == nil {
		return bound{}, &BindError{Column: l.name(), Type: typeText(l.field.Type), Cause: "it cannot be compared with column " + r.name() + " of type " + typeText(r.field.Type)}
	}
	return bound{node: pairNode{left, right, op, order}}, nil
}

// pairOrder chooses how two columns are compared; nil where they cannot be.
func pairOrder(l, r *boundColumn) func(l, r arrow.Array) func(int) int {
	switch {
	case l.family.numeric() && r.family.numeric():
		return numericOrder(l.family, r.family)
	case timeless(l.family) && timeless(r.family), l.family == famTimestamptz && r.family == famTimestamptz:
		return tickOrder(tick(l.field.Type), tick(r.field.Type))
	case l.family != r.family:
		return nil
	}
	switch l.family {
	case famBool:
		return func(l, r arrow.Array) func(int) int {
			x, _ := l.(*array.Boolean)
			y, _ := r.(*array.Boolean)
			return func(i int) int { return int(truthOf(x.Value(i))) - int(truthOf(y.Value(i))) }
		}
	case famString:
		return func(l, r arrow.Array) func(int) int {
			x, y := stringsOf(l), stringsOf(r)
			return func(i int) int { return strings.Compare(x(i), y(i)) }
		}
	case famBytes, famUUID:
		return func(l, r arrow.Array) func(int) int {
			x, y := bytesOf(l), bytesOf(r)
			return func(i int) int { return bytes.Compare(x(i), y(i)) }
		}
	case famTime:
		return tickOrder(1, 1)
	case famNested, famInt, famFloat, famDecimal, famDate, famTimestamp, famTimestamptz:
	}
	return nil
}

// timeless are the families that name a point of the calendar without a zone.
func timeless(f family) bool { return f == famDate || f == famTimestamp }

func numericOrder(l, r family) func(l, r arrow.Array) func(int) int {
	switch {
	case l == famInt && r == famInt:
		return tickOrder(1, 1)
	case l == famInt && r == famFloat:
		return func(l, r arrow.Array) func(int) int {
			x, y := intsOf(l), floatsOf(r)
			return func(i int) int { return intFloatOrder(x(i), y(i)) }
		}
	case l == famFloat && r == famInt:
		return func(l, r arrow.Array) func(int) int {
			x, y := floatsOf(l), intsOf(r)
			return func(i int) int { return -intFloatOrder(y(i), x(i)) }
		}
	case l == famFloat || r == famFloat: // a decimal is brought to the nearest double
		return func(l, r arrow.Array) func(int) int {
			x, y := floatsOf(l), floatsOf(r)
			return func(i int) int { return floatOrder(x(i), y(i)) }
		}
	}
	return func(l, r arrow.Array) func(int) int {
		scale := max(scaleOf(l), scaleOf(r))
		x, y := wideOf(l, scale), wideOf(r, scale)
		return func(i int) int { return x(i).Cmp(y(i)) }
	}
}

func scaleOf(a arrow.Array) int32 {
	if d, ok := a.(*array.Decimal128); ok {
		return decimalScale(d)
	}
	return 0
}

// intFloatOrder is exact: a double cannot hold every whole number of 64 bits.
func intFloatOrder(x int64, y float64) int {
	switch {
	case math.IsNaN(y) || y >= 1<<63:
		return -1
	case y < -1<<63:
		return 1
	}
	whole := math.Floor(y)
	if c := cmp.Compare(x, int64(whole)); c != 0 || whole == y {
		return c
	}
	return -1 // x is the floor of a fraction
}

// tickOrder compares whole numbers of two units, of which one divides the other;
// the coarser is never multiplied, which could overflow.
func tickOrder(unitL, unitR int64) func(l, r arrow.Array) func(int) int {
	return func(l, r arrow.Array) func(int) int {
		x, y := intsOf(l), intsOf(r)
		switch {
		case unitL == unitR:
			return func(i int) int { return cmp.Compare(x(i), y(i)) }
		case unitL > unitR:
			return func(i int) int { return coarseOrder(x(i), y(i), unitL/unitR) }
		}
		return func(i int) int { return -coarseOrder(y(i), x(i), unitR/unitL) }
	}
}

func coarseOrder(coarse, fine, ratio int64) int {
	whole, rest := fine/ratio, fine%ratio
	if rest < 0 {
		whole, rest = whole-1, rest+ratio
	}
	if c := cmp.Compare(coarse, whole); c != 0 || rest == 0 {
		return c
	}
	return -1
}
