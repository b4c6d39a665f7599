package icesql

import (
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// Prune is what PlanFiles may use to leave out files: every row for which the
// predicate is true satisfies it. It is AlwaysTrue where nothing may be pushed.
//
// Only conjuncts with = < <= > >= IN, IS NULL and IS NOT NULL on the columns of the
// table itself are pushed; never NOT, <>, LIKE, OR, a field of a struct, and never a
// uuid: Java writes the bounds of uuids in another order, and iceberg-go then finds
// no file. Of floats is pushed what NaN and -0 cannot satisfy beside the bounds,
// which say nothing of NaN. A table partitioned by the identity or a truncation of
// a string that holds an empty one must be planned without any filter, which is the caller's to
// know.
func (p *Predicate) Prune() iceberg.BooleanExpression {
	if p.push == nil {
		return iceberg.AlwaysTrue{}
	}
	return p.push
}

// maxPushed bounds an IN that is pushed; iceberg-go itself looks at no more values.
const maxPushed = 200

// pushable is the reference to c where its comparisons may be pushed.
func (c *boundColumn) pushable() (iceberg.Reference, bool) {
	// A name with a point reads as a path.
	ok := !c.nested() && c.family != famUUID && c.family != famNested && !strings.Contains(c.path[0], ".")
	return iceberg.Reference(c.path[0]), ok
}

func pushNull(c *boundColumn, not bool) iceberg.BooleanExpression {
	ref, ok := c.pushable()
	switch {
	case !ok:
		return nil
	case not:
		return iceberg.NotNull(ref)
	}
	return iceberg.IsNull(ref)
}

func pushCompare(c *boundColumn, op Op, v any) iceberg.BooleanExpression {
	ref, ok := c.pushable()
	if !ok {
		return nil
	}
	var to iceberg.Operation
	switch op {
	case Eq:
		to = iceberg.OpEQ
	case Lt:
		to = iceberg.OpLT
	case Le:
		to = iceberg.OpLTEQ
	case Gt:
		to = iceberg.OpGT
	case Ge:
		to = iceberg.OpGTEQ
	case Ne, Add, Sub, Mul, Div, Concat:
		return nil
	}
	if c.family == famBool && op != Eq {
		return nil
	}
	if f, isFloat := v.(float64); isFloat && !pushableFloat(op, f) {
		return nil
	}
	lit := c.literal(v)
	if lit == nil {
		return nil
	}
	return iceberg.LiteralPredicate(to, ref, lit)
}

// pushableFloat: NaN is greater than everything, and lies outside the bounds of its
// file; -0 equals 0, and lies below it in the bounds of other engines.
func pushableFloat(op Op, f float64) bool {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return false
	}
	return op == Lt || op == Le || op == Eq && f != 0
}

func pushIn(c *boundColumn, values []any) iceberg.BooleanExpression {
	ref, ok := c.pushable()
	if !ok || len(values) == 0 || len(values) > maxPushed {
		return nil
	}
	lits := make([]iceberg.Literal, len(values))
	for i, v := range values {
		if f, isFloat := v.(float64); isFloat && !pushableFloat(Eq, f) {
			return nil
		}
		if lits[i] = c.literal(v); lits[i] == nil {
			return nil
		}
	}
	return iceberg.SetPredicate(iceberg.OpIn, ref, lits)
}

// literal is v, as convert gives it, in Iceberg's literal of the column's type; nil
// where the type cannot hold it.
func (c *boundColumn) literal(v any) iceberg.Literal {
	switch v := v.(type) {
	case int64:
		return c.wholeLiteral(v)
	case float64:
		if _, small := c.field.Type.(iceberg.Float32Type); !small {
			return iceberg.NewLiteral(v)
		}
		if float64(float32(v)) == v {
			return iceberg.NewLiteral(float32(v))
		}
	case decimal128.Num:
		t, ok := c.field.Type.(iceberg.DecimalType)
		if ok && v.FitsInPrecision(int32(t.Precision())) { //nolint:gosec // G115: at most 38
			return iceberg.NewLiteral(iceberg.Decimal{Val: v, Scale: t.Scale()})
		}
	case bool:
		return iceberg.NewLiteral(v)
	case string:
		return iceberg.NewLiteral(v)
	case []byte:
		// A literal of another length is an error of PlanFiles.
		if t, ok := c.field.Type.(iceberg.FixedType); !ok || t.Len() == len(v) {
			return iceberg.NewLiteral(v)
		}
	}
	return nil
}

func (c *boundColumn) wholeLiteral(v int64) iceberg.Literal {
	switch c.field.Type.(type) {
	case iceberg.Int64Type:
		return iceberg.NewLiteral(v)
	case iceberg.TimeType:
		return iceberg.NewLiteral(iceberg.Time(v))
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.NewLiteral(iceberg.Timestamp(v))
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.NewLiteral(iceberg.TimestampNano(v))
	}
	if v < math.MinInt32 || v > math.MaxInt32 {
		return nil
	}
	switch c.field.Type.(type) {
	case iceberg.Int32Type:
		return iceberg.NewLiteral(int32(v))
	case iceberg.DateType:
		return iceberg.NewLiteral(iceberg.Date(v))
	}
	return nil
}
