package icesql

import (
	"context"
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// Arithmetic: whole numbers stay whole numbers of 64 bits and overflow is an error;
// a decimal with a whole number or a decimal is exact, but for division, which keeps
// divisionPlaces more places than its sides; with a float everything is a double.
// Division by zero is an error, and whole numbers divide towards zero.
const divisionPlaces = 6

// term is a bound part of an arithmetic expression.
type term interface {
	family() family // famInt, famFloat or famDecimal
	scale() int     // of a decimal
	eval(f *frame, n int) (numbers, error)
}

// columnTerm reads a column of numbers.
type columnTerm struct {
	at  slot
	fam family
	sc  int
}

func (t columnTerm) family() family { return t.fam }
func (t columnTerm) scale() int     { return t.sc }

func (t columnTerm) eval(f *frame, n int) (numbers, error) {
	v := &f.columns[t.at]
	return numbersOf(v.values, t.fam, t.sc, n, v.isNull), nil
}

// constTerm is a number; NULL where null.
type constTerm struct {
	n    icevalue.Number
	f    float64
	fam  family
	null bool
}

func (t constTerm) family() family { return t.fam }
func (t constTerm) scale() int     { return max(0, t.n.Scale) }

func (t constTerm) eval(_ *frame, n int) (numbers, error) {
	out := newNumbers(t.fam, t.scale(), n)
	for i := range n {
		switch {
		case t.null:
			out.null[i] = true
		case t.fam == famInt:
			out.ints[i], _ = t.n.Int64()
		case t.fam == famFloat:
			out.floats[i] = t.f
		default:
			out.decimals[i] = t.n.Round(t.scale())
		}
	}
	return out, nil
}

// term binds an arithmetic expression.
func (b *binder) term(e Expr) (term, error) {
	if c, ok, err := b.constant(e); ok || err != nil {
		if err != nil {
			return nil, err
		}
		return newConstTerm(c)
	}
	switch e := e.(type) {
	case *ColumnRef:
		at, err := b.column(e)
		if err != nil {
			return nil, err
		}
		col := &b.columns[at]
		if !col.family.numeric() {
			return nil, &BindError{Column: col.name(), Type: typeText(col.field.Type), Cause: "arithmetic is for numbers"}
		}
		scale := 0
		if t, ok := col.field.Type.(iceberg.DecimalType); ok {
			scale = t.Scale()
		}
		return columnTerm{at, col.family, scale}, nil
	case *Neg:
		x, err := b.term(e.X)
		return binaryTerm{op: Sub, left: constTerm{fam: famInt}, right: x, text: e.String()}.settled(err)
	case *Binary:
		if e.Op < Add || e.Op > Div {
			break
		}
		l, err := b.term(e.Left)
		if err != nil {
			return nil, err
		}
		r, err := b.term(e.Right)
		return binaryTerm{op: e.Op, left: l, right: r, text: e.String()}.settled(err)
	}
	return nil, &BindError{Value: shorten(e.String()), Cause: "arithmetic is for numbers"}
}

func newConstTerm(c constant) (term, error) {
	if f, ok := c.v.(float64); ok {
		out := constTerm{f: f, fam: famFloat}
		if n, err := icevalue.NumberOf(f); err == nil {
			out.n = n
		}
		return out, nil
	}
	if c.null() {
		return constTerm{fam: famInt, null: true}, nil
	}
	n, err := numberOf(c)
	if err != nil {
		return nil, &BindError{Value: c.shown(), Cause: "arithmetic is for numbers"}
	}
	if _, err := n.Int64(); err == nil && n.Scale <= 0 {
		return constTerm{n: n, fam: famInt}, nil
	}
	if n.Scale > 38 {
		return nil, &BindError{Value: c.shown(), Cause: "it has more than 38 decimal places"}
	}
	return constTerm{n: n, fam: famDecimal}, nil
}

// binaryTerm is left op right.
type binaryTerm struct {
	op          Op
	left, right term
	text        string
	fam         family
	sc          int
}

// settled chooses the family and the scale of the result.
func (t binaryTerm) settled(err error) (term, error) {
	if err != nil {
		return nil, err
	}
	// A float argument beside a decimal column is the decimal of its shortest text:
	// balance - $1 with 0.1 takes ten cents.
	t.left, t.right = asDecimal(t.left, t.right), asDecimal(t.right, t.left)
	switch l, r := t.left.family(), t.right.family(); {
	case l == famFloat || r == famFloat:
		t.fam = famFloat
		return t, nil
	case l == famInt && r == famInt:
		t.fam = famInt
		return t, nil
	}
	t.fam = famDecimal
	l, r := t.left.scale(), t.right.scale()
	t.sc = max(l, r)
	if t.op == Mul {
		t.sc = l + r
	}
	if t.op == Div {
		t.sc = min(38, t.sc+divisionPlaces)
	}
	if t.sc > 38 {
		return nil, &BindError{Value: shorten(t.text), Cause: "the product has more than 38 decimal places"}
	}
	return t, nil
}

func asDecimal(x, beside term) term {
	c, ok := x.(constTerm)
	finite := c.n.Unscaled != nil && c.n.Scale <= 38
	if ok && c.fam == famFloat && finite && beside.family() == famDecimal {
		c.fam = famDecimal
		return c
	}
	return x
}

func (t binaryTerm) family() family { return t.fam }
func (t binaryTerm) scale() int     { return t.sc }

func (t binaryTerm) eval(f *frame, n int) (numbers, error) {
	l, err := t.left.eval(f, n)
	if err != nil {
		return numbers{}, err
	}
	r, err := t.right.eval(f, n)
	if err != nil {
		return numbers{}, err
	}
	l, r = l.to(t.fam, t.left.scale()), r.to(t.fam, t.right.scale())
	out := newNumbers(t.fam, t.sc, n)
	for i := range n {
		if out.null[i] = l.null[i] || r.null[i]; out.null[i] {
			continue
		}
		if cause := t.row(&out, &l, &r, i); cause != "" {
			return numbers{}, &EvalError{Column: shorten(t.text), Cause: cause}
		}
	}
	return out, nil
}

// row computes one row, or says why it cannot be.
func (t binaryTerm) row(out, l, r *numbers, i int) (cause string) {
	if t.fam == famInt {
		out.ints[i], cause = t.ints(l.ints[i], r.ints[i])
		return cause
	}
	if t.fam == famFloat {
		out.floats[i], cause = t.floats(l.floats[i], r.floats[i])
		return cause
	}
	out.decimals[i], cause = t.decimals(l.decimals[i], r.decimals[i])
	return cause
}

const (
	causeOverflow = "the result is out of the range of its type"
	causeZero     = "division by zero"
)

func (t binaryTerm) ints(x, y int64) (int64, string) {
	switch {
	case t.op == Add:
		if s := x + y; (s > x) == (y > 0) {
			return s, ""
		}
	case t.op == Sub:
		if s := x - y; (s < x) == (y > 0) {
			return s, ""
		}
	case t.op == Mul:
		return multiply(x, y)
	case y == 0:
		return 0, causeZero
	case x != math.MinInt64 || y != -1:
		return x / y, ""
	}
	return 0, causeOverflow
}

func multiply(x, y int64) (int64, string) {
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	limit := uint64(math.MaxInt64)
	negative := (x < 0) != (y < 0)
	if negative {
		limit++
	}
	if hi != 0 || lo > limit {
		return 0, causeOverflow
	}
	return x * y, ""
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x) //nolint:gosec // G115: two's complement is wanted
	}
	return uint64(x)
}

func (t binaryTerm) floats(x, y float64) (float64, string) {
	switch {
	case t.op == Add:
		return x + y, ""
	case t.op == Sub:
		return x - y, ""
	case t.op == Mul:
		return x * y, ""
	case y == 0:
		return 0, causeZero
	}
	return x / y, ""
}

func (t binaryTerm) decimals(x, y *big.Int) (*big.Int, string) {
	l := icevalue.Number{Unscaled: x, Scale: t.left.scale()}
	r := icevalue.Number{Unscaled: y, Scale: t.right.scale()}
	out := new(big.Int)
	switch {
	case t.op == Add:
		out.Add(l.Round(t.sc), r.Round(t.sc))
	case t.op == Sub:
		out.Sub(l.Round(t.sc), r.Round(t.sc))
	case t.op == Mul:
		out.Mul(x, y)
	case y.Sign() == 0:
		return nil, causeZero
	default:
		out = quotient(l.Round(t.sc+r.Scale), y)
	}
	if _, err := icevalue.DecimalOf(out, 38); err != nil {
		return nil, causeOverflow
	}
	return out, ""
}

// quotient rounds halves away from zero.
func quotient(x, y *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(x, y, new(big.Int))
	if r.Abs(r).Lsh(r, 1).CmpAbs(y) >= 0 {
		if x.Sign() == y.Sign() {
			return q.Add(q, big.NewInt(1))
		}
		return q.Sub(q, big.NewInt(1))
	}
	return q
}

// computed is arithmetic as a value: a long, a double or a decimal(38, scale).
type computed struct {
	term
	text string
}

func (b *binder) computed(e Expr) (value, error) {
	t, err := b.term(e)
	if err != nil {
		return nil, err
	}
	return computed{t, shorten(e.String())}, nil
}

func (c computed) typ() iceberg.Type {
	if c.family() == famInt {
		return iceberg.PrimitiveTypes.Int64
	}
	if c.family() == famFloat {
		return iceberg.PrimitiveTypes.Float64
	}
	return iceberg.DecimalTypeOf(38, c.scale())
}

func (c computed) eval(_ context.Context, f *frame, n int) (arrow.Array, error) {
	x, err := c.term.eval(f, n)
	if err != nil {
		return nil, err
	}
	return x.array(c.text, c.typ())
}
