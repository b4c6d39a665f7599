package icesql

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// flip is the operator with its sides exchanged.
func (o Op) flip() Op {
	switch o {
	case Lt:
		return Gt
	case Le:
		return Ge
	case Gt:
		return Lt
	case Ge:
		return Le
	case Eq, Ne, Add, Sub, Mul, Div, Concat:
	}
	return o
}

// holds is whether "x op y" holds where order is the sign of x - y.
func (o Op) holds(order int) bool {
	switch o {
	case Eq:
		return order == 0
	case Ne:
		return order != 0
	case Lt:
		return order < 0
	case Le:
		return order <= 0
	case Gt:
		return order > 0
	case Ge:
		return order >= 0
	case Add, Sub, Mul, Div, Concat:
	}
	return false
}

// comparison binds left op right, each a column, a literal or a parameter.
func (b *binder) comparison(op Op, left, right Expr) (bound, error) {
	l, leftConst, err := b.constant(left)
	if err != nil {
		return bound{}, err
	}
	r, rightConst, err := b.constant(right)
	if err != nil {
		return bound{}, err
	}
	if leftConst && rightConst {
		return compareConstants(op, l, r)
	}
	if leftConst {
		left, op, r, rightConst = right, op.flip(), l, true
	}
	at, err := b.operand(left)
	if err != nil {
		return bound{}, err
	}
	if rightConst {
		return b.compareTo(at, op, r)
	}
	other, err := b.operand(right)
	if err != nil {
		return bound{}, err
	}
	return b.compareColumns(at, op, other)
}

// operand is a column that can be compared.
func (b *binder) operand(e Expr) (slot, error) {
	c, ok := e.(*ColumnRef)
	if !ok {
		return 0, &BindError{Value: shorten(e.String()), Cause: "a condition compares columns, literals and parameters; arithmetic can stand in SET and in a select list"}
	}
	at, err := b.column(c)
	if err != nil {
		return 0, err
	}
	if col := &b.columns[at]; col.family == famNested {
		return 0, &BindError{Column: col.name(), Type: typeText(col.field.Type), Cause: "only IS NULL and IS NOT NULL can ask of this type"}
	}
	return at, nil
}

func compareConstants(op Op, l, r constant) (bound, error) {
	if l.null() || r.null() {
		return bound{node: always(Unknown)}, nil
	}
	if x, ok := l.v.(bool); ok {
		if y, ok := r.v.(bool); ok {
			return bound{node: always(truthOf(op.holds(int(truthOf(x)) - int(truthOf(y)))))}, nil
		}
	}
	x, okX := l.v.(string)
	y, okY := r.v.(string)
	if okX && okY && l.kind == StringLiteral && r.kind == StringLiteral {
		return bound{node: always(truthOf(op.holds(strings.Compare(x, y))))}, nil
	}
	n, errX := numberOf(l)
	m, errY := numberOf(r)
	if errX != nil || errY != nil || okX && okY {
		return bound{}, &BindError{Value: l.shown() + " and " + r.shown(), Cause: "these two constants cannot be compared"}
	}
	d := new(big.Int).Sub(n.Round(max(n.Scale, m.Scale)), m.Round(max(n.Scale, m.Scale)))
	return bound{node: always(truthOf(op.holds(d.Sign())))}, nil
}

var errNotANumber = errors.New("it is not a number")

// numberOf is a constant as a number, where its type allows: a string literal or
// argument is one where a number is wanted.
func numberOf(c constant) (icevalue.Number, error) {
	switch c.v.(type) {
	case icevalue.Number, int64, uint64, float64:
		return icevalue.NumberOf(c.v)
	case string, []byte:
		if c.kind == StringLiteral {
			return icevalue.NumberOf(c.v)
		}
	}
	return icevalue.Number{}, errNotANumber
}

func (c *boundColumn) refuse(k constant, err error) error {
	return &BindError{Column: c.name(), Type: typeText(c.field.Type), Value: k.shown(), Err: err}
}

var errOtherType = errors.New("it is of another type than the column")

// compareTo binds column op constant.
func (b *binder) compareTo(at slot, op Op, k constant) (bound, error) {
	if k.null() {
		return bound{node: always(Unknown)}, nil
	}
	c := &b.columns[at]
	v, err := c.convert(k)
	if err != nil {
		return bound{}, c.refuse(k, err)
	}
	var n node
	switch v := v.(type) {
	case mark:
		n, op = v.node(at, op)
		if n != nil {
			return bound{node: n}, nil // one truth for every value
		}
		return bound{node: intNode{at, op, v.floor}, push: pushCompare(c, op, v.floor)}, nil
	case decimalMark:
		n, op = v.node(at, op)
		if n != nil {
			return bound{node: n}, nil
		}
		return bound{node: decimalNode{at, op, v.floor}, push: pushCompare(c, op, v.floor)}, nil
	case float64:
		n = floatNode{at, op, v}
	case bool:
		n = orderNode{at, op, func(x *vector) func(int) int { return boolOrder(x, v) }}
	case string:
		n = stringNode{at, op, v}
	case []byte:
		n = orderNode{at, op, func(x *vector) func(int) int { return bytesOrder(x, v) }}
	}
	return bound{node: n, push: pushCompare(c, op, v)}, nil
}

// convert brings a constant to what the column's kernel takes: a mark for whole
// numbers and times, a decimalMark, a float64, a bool, a string, or []byte.
func (c *boundColumn) convert(k constant) (any, error) {
	switch c.family {
	case famBool, famString, famBytes, famUUID:
		return c.convertPlain(k)
	case famInt:
		return c.convertInt(k)
	case famFloat:
		return c.convertFloat(k)
	case famDecimal:
		return c.convertDecimal(k)
	case famDate, famTime, famTimestamp, famTimestamptz:
		return c.convertTime(k)
	case famNested:
	}
	return nil, errOtherType
}

func (c *boundColumn) convertPlain(k constant) (any, error) {
	fits := k.kind == StringLiteral ||
		k.kind == BoolLiteral && c.family == famBool ||
		k.kind == BytesLiteral && c.family == famBytes ||
		k.kind == UUIDLiteral && c.family == famUUID
	if !fits {
		return nil, errOtherType
	}
	v, err := icevalue.Convert(c.field.Type, k.v)
	if u, ok := v.(uuid.UUID); ok {
		return u[:], err
	}
	return v, err
}

// convertInt keeps the fraction of a number that a whole column cannot hold:
// i < 3.5 is not i < 3.
func (c *boundColumn) convertInt(k constant) (any, error) {
	if f, ok := k.v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return mark{side: sideOf(f)}, nil
	}
	n, err := numberOf(k)
	if err != nil {
		return nil, err
	}
	whole, exact := n.Floor(0)
	if !whole.IsInt64() {
		return mark{side: whole.Sign()}, nil
	}
	return mark{floor: whole.Int64(), exact: exact}, nil
}

// sideOf tells on which side of every number NaN or an infinity lies.
func sideOf(f float64) int {
	if math.IsInf(f, -1) {
		return -1
	}
	return 1
}

// convertFloat rounds a number to the column's own precision, so that f = 0.1
// finds what INSERT made of 0.1; a number beyond that precision's range stays a
// double, above or below every finite value.
func (c *boundColumn) convertFloat(k constant) (any, error) {
	var f float64
	switch v := k.v.(type) {
	case float64:
		f = v
	case icevalue.Number:
		f = v.Float64()
	default:
		if k.kind != StringLiteral {
			return nil, errOtherType
		}
		x, err := icevalue.Convert(iceberg.PrimitiveTypes.Float64, k.v)
		if err != nil {
			return nil, err
		}
		f, _ = x.(float64)
	}
	if _, small := c.field.Type.(iceberg.Float32Type); small {
		if g := float64(float32(f)); !math.IsInf(g, 0) {
			f = g
		}
	}
	return f, nil
}

func (c *boundColumn) convertDecimal(k constant) (any, error) {
	if f, ok := k.v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return decimalMark{side: sideOf(f)}, nil
	}
	n, err := numberOf(k)
	if err != nil {
		return nil, err
	}
	t, _ := c.field.Type.(iceberg.DecimalType)
	whole, exact := n.Floor(t.Scale())
	if d, err := icevalue.DecimalOf(whole, 38); err == nil {
		return decimalMark{floor: d, exact: exact}, nil
	}
	return decimalMark{side: whole.Sign()}, nil // beyond 38 digits
}

// convertTime takes text and time.Time by the column's type, and a typed literal by
// its own: a date meets a timestamp at its midnight.
func (c *boundColumn) convertTime(k constant) (any, error) {
	text, _ := k.v.(string)
	var t time.Time
	var err error
	switch k.kind {
	case StringLiteral:
		n, err := icevalue.Ticks(c.field.Type, k.v)
		return mark{floor: n, exact: true}, err
	case TimeLiteral:
		if c.family == famTime {
			n, err := icevalue.Ticks(c.field.Type, k.v)
			return mark{floor: n, exact: true}, err
		}
		return nil, errOtherType
	case DateLiteral:
		if !timeless(c.family) {
			return nil, errOtherType
		}
		t, err = icevalue.ParseDate(text)
	case TimestampLiteral:
		if !timeless(c.family) {
			return nil, errOtherType
		}
		t, err = icevalue.ParseTimestamp(text, false)
	case TimestamptzLiteral:
		if c.family != famTimestamptz {
			return nil, errOtherType
		}
		t, err = icevalue.ParseTimestamp(text, true)
	case NullLiteral, BoolLiteral, NumberLiteral, BytesLiteral, UUIDLiteral, DecimalLiteral:
		return nil, errOtherType
	}
	return markOf(t, tick(c.field.Type)), err
}

// markOf is an instant among ticks of a unit in nanoseconds since 1970.
func markOf(t time.Time, unit int64) mark {
	ns := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1_000_000_000))
	ns.Add(ns, big.NewInt(int64(t.Nanosecond())))
	q, m := new(big.Int).DivMod(ns, big.NewInt(unit), new(big.Int))
	if !q.IsInt64() {
		return mark{side: q.Sign()}
	}
	return mark{floor: q.Int64(), exact: m.Sign() == 0}
}

// mark is a constant among the whole numbers of 64 bits: floor itself where exact,
// else between floor and the next; or below (side -1) or above (1) all of them.
type mark struct {
	floor int64
	exact bool
	side  int
}

func (m mark) node(at slot, op Op) (node, Op) { return settle(at, op, m.exact, m.side) }

// decimalMark is a mark among the unscaled values of a decimal column.
type decimalMark struct {
	floor decimal128.Num
	exact bool
	side  int
}

func (m decimalMark) node(at slot, op Op) (node, Op) { return settle(at, op, m.exact, m.side) }

// settle turns a comparison with a mark into one with its floor, or, where it has
// one truth for every value, into a node.
func settle(at slot, op Op, exact bool, side int) (node, Op) {
	switch {
	case side != 0: // every value is less than a mark above, greater than one below
		return fixedNode{at, truthOf(op.holds(-side))}, op
	case exact:
		return nil, op
	case op == Eq, op == Ne:
		return fixedNode{at, truthOf(op == Ne)}, op
	case op == Lt, op == Le:
		return nil, Le
	}
	return nil, Gt
}
