package icesql

import (
	"bytes"
	"database/sql/driver"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// aggregate is a bound aggregate function.
//
// count counts what is not NULL. sum of whole numbers is a long, and an error where
// the sum of all rows does not fit one, whatever their order; of floats a double; of
// decimal(p,s) a decimal(38,s). avg of whole numbers and floats is a double, of
// decimal(p,s) a decimal(38,s+4) rounded half away from zero. sum, min, max and avg
// of no value are NULL.
type aggregate struct {
	fn       AggFunc
	distinct bool
	arg      int // of Query.values; -1 for count(*)
	family   family
	scale    int // of a decimal argument
	typ      iceberg.Type
	text     string
}

// averagePlaces are the places that avg of a decimal adds.
const averagePlaces = 4

func newAggregate(e *Aggregate, arg int, t iceberg.Type) (aggregate, error) {
	a := aggregate{fn: e.Func, distinct: e.Distinct, arg: arg, typ: iceberg.PrimitiveTypes.Int64, text: e.String()}
	if arg < 0 {
		return a, nil
	}
	a.family = familyOf(t)
	if d, ok := t.(iceberg.DecimalType); ok {
		a.scale = d.Scale()
	}
	refuse := func(cause string) (aggregate, error) {
		return a, &BindError{Column: e.Arg.String(), Type: typeText(t), Cause: cause}
	}
	switch {
	case e.Func == Count:
		if e.Distinct && a.family == famNested {
			return refuse("values of this type cannot be told apart")
		}
	case e.Func == Min || e.Func == Max:
		if a.family == famNested {
			return refuse("values of this type have no order")
		}
		a.typ = t
	case !a.family.numeric():
		return refuse(e.Func.String() + " is for numbers")
	case a.family == famDecimal:
		scale := a.scale
		if e.Func == Avg {
			scale = min(38, scale+averagePlaces)
		}
		a.typ = iceberg.DecimalTypeOf(38, scale)
	case a.family == famFloat || e.Func == Avg:
		a.typ = iceberg.PrimitiveTypes.Float64
	}
	return a, nil
}

// state gathers one aggregate of one group.
type state interface {
	// add takes row i of the input, which is not NULL.
	add(in *input, i int)
	// result is the value, and its key for ORDER BY; a nil value is NULL.
	result() (driver.Value, []byte, error)
}

// input is an aggregate's argument in one batch.
type input struct {
	values arrow.Array // nil: count(*)
	reader icevalue.Reader
	key    keyFunc
	ints   func(int) int64
	floats func(int) float64
	wide   *array.Decimal128
}

func (a *aggregate) input(e *evaluated) *input {
	if a.arg < 0 {
		return &input{}
	}
	in := &input{values: e.arrays[a.arg], reader: e.readers[a.arg]}
	switch {
	case a.distinct || a.fn == Min || a.fn == Max:
		in.key = keysOf(in.values, a.family)
	case a.fn == Count:
	case a.family == famInt:
		in.ints = intsOf(in.values)
	case a.family == famFloat:
		in.floats = floatsOf(in.values)
	default:
		in.wide, _ = in.values.(*array.Decimal128)
	}
	return in
}

func (a *aggregate) state() state {
	switch {
	case a.fn == Count && a.distinct:
		return &distinctState{seen: map[string]bool{}}
	case a.fn == Count:
		return &countState{}
	case a.fn == Min || a.fn == Max:
		return &extremeState{greatest: a.fn == Max}
	case a.family == famFloat:
		return &floatState{average: a.fn == Avg}
	case a.family == famInt:
		return &intState{average: a.fn == Avg, text: a.text}
	}
	return &decimalState{average: a.fn == Avg, scale: a.scale, text: a.text}
}

type countState struct{ n int64 }

func (s *countState) add(*input, int) { s.n++ }

func (s *countState) result() (driver.Value, []byte, error) { return s.n, appendInt(nil, s.n), nil }

type distinctState struct {
	seen map[string]bool
	key  []byte
}

func (s *distinctState) add(in *input, i int) {
	s.key = in.key(s.key[:0], i)
	if !s.seen[string(s.key)] {
		s.seen[string(s.key)] = true
	}
}

func (s *distinctState) result() (driver.Value, []byte, error) {
	n := int64(len(s.seen))
	return n, appendInt(nil, n), nil
}

// extremeState keeps the least or the greatest value, with its key.
type extremeState struct {
	greatest bool
	key, try []byte
	value    driver.Value
}

func (s *extremeState) add(in *input, i int) {
	s.try = in.key(s.try[:0], i)
	c := bytes.Compare(s.try, s.key)
	if s.value == nil || c < 0 && !s.greatest || c > 0 && s.greatest {
		s.key, s.try = s.try, s.key
		s.value = in.reader.Value(i)
	}
}

func (s *extremeState) result() (driver.Value, []byte, error) { return s.value, s.key, nil }

type floatState struct {
	average bool
	n       int64
	sum     float64
}

func (s *floatState) add(in *input, i int) {
	s.n++
	s.sum += in.floats(i)
}

func (s *floatState) result() (driver.Value, []byte, error) {
	if s.n == 0 {
		return nil, nil, nil
	}
	out := s.sum
	if s.average {
		out /= float64(s.n)
	}
	return out, appendFloat(nil, out), nil
}

// intState sums into a part of 64 bits that is emptied before it could overflow.
type intState struct {
	average bool
	text    string
	n       int64
	low     int64
	rest    big.Int
}

func (s *intState) add(in *input, i int) {
	x := in.ints(i)
	s.n++
	if t := s.low + x; (t > s.low) == (x > 0) {
		s.low = t
		return
	}
	s.flush()
	s.low = x
}

func (s *intState) flush() {
	s.rest.Add(&s.rest, big.NewInt(s.low))
	s.low = 0
}

func (s *intState) result() (driver.Value, []byte, error) {
	if s.n == 0 {
		return nil, nil, nil
	}
	s.flush()
	if s.average {
		f, _ := new(big.Rat).SetFrac(&s.rest, big.NewInt(s.n)).Float64()
		return f, appendFloat(nil, f), nil
	}
	if !s.rest.IsInt64() {
		return nil, nil, &EvalError{Column: s.text, Cause: "the sum " + s.rest.String() + " is out of the range of a long"}
	}
	return s.rest.Int64(), appendInt(nil, s.rest.Int64()), nil
}

type decimalState struct {
	average bool
	scale   int
	text    string
	n       int64
	sum     decimal256.Num // 2^63 values of 38 digits fit it
}

func (s *decimalState) add(in *input, i int) {
	s.n++
	s.sum = s.sum.Add(decimal256.FromDecimal128(in.wide.Value(i)))
}

func (s *decimalState) result() (driver.Value, []byte, error) {
	if s.n == 0 {
		return nil, nil, nil
	}
	sum, scale := s.sum.BigInt(), s.scale
	if s.average {
		scale = min(38, scale+averagePlaces)
		up := icevalue.Number{Unscaled: sum, Scale: s.scale}.Round(scale)
		sum = quotient(up, big.NewInt(s.n))
	}
	d, err := icevalue.DecimalOf(sum, 38)
	if err != nil {
		return nil, nil, &EvalError{Column: s.text, Cause: "the result has more than 38 digits"}
	}
	return d.ToString(int32(scale)), appendDecimal(nil, d), nil //nolint:gosec // G115: at most 38
}
