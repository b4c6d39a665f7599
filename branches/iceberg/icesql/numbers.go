package icesql

import (
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// numbers is a column of one of the three families; where null says so there is none.
type numbers struct {
	family   family
	ints     []int64
	floats   []float64
	decimals []*big.Int // unscaled
	scale    int
	null     []bool
}

func newNumbers(f family, scale, n int) numbers {
	out := numbers{family: f, scale: scale, null: make([]bool, n)}
	if f == famInt {
		out.ints = make([]int64, n)
	}
	if f == famFloat {
		out.floats = make([]float64, n)
	}
	if f == famDecimal {
		out.decimals = make([]*big.Int, n)
	}
	return out
}

// to brings numbers to a wider family.
func (x numbers) to(f family, scale int) numbers {
	if x.family == f && (f != famDecimal || x.scale == scale) {
		return x
	}
	out := newNumbers(f, scale, len(x.null))
	out.null = x.null
	for i, null := range x.null {
		switch {
		case null:
		case f == famFloat:
			out.floats[i] = x.number(i).Float64()
		default:
			out.decimals[i] = x.number(i).Round(scale)
		}
	}
	return out
}

// number is row i of whole numbers or decimals.
func (x numbers) number(i int) icevalue.Number {
	if x.family == famInt {
		return icevalue.Number{Unscaled: big.NewInt(x.ints[i])}
	}
	return icevalue.Number{Unscaled: x.decimals[i], Scale: x.scale}
}

func numbersOf(a arrow.Array, fam family, scale, n int, isNull func(int) bool) numbers {
	out := newNumbers(fam, scale, n)
	var ints func(int) int64
	var floats func(int) float64
	if fam == famInt {
		ints = intsOf(a)
	}
	if fam == famFloat {
		floats = floatsOf(a)
	}
	d, _ := a.(*array.Decimal128)
	for i := range n {
		switch {
		case isNull(i):
			out.null[i] = true
		case ints != nil:
			out.ints[i] = ints(i)
		case floats != nil:
			out.floats[i] = floats(i)
		default:
			out.decimals[i] = d.Value(i).BigInt()
		}
	}
	return out
}
