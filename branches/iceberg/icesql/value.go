package icesql

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// value is a bound expression of a select list or of SET.
type value interface {
	// typ is the type of what eval gives.
	typ() iceberg.Type
	// eval is the value in every row of f's batch, n of them; the caller releases it.
	eval(ctx context.Context, f *frame, n int) (arrow.Array, error)
}

// value binds an expression that is not an aggregate.
func (b *binder) value(e Expr) (value, error) {
	if c, ok, err := b.constant(e); ok || err != nil {
		if err != nil {
			return nil, err
		}
		return newConstValue(e, c)
	}
	switch e := e.(type) {
	case *ColumnRef:
		at, err := b.column(e)
		if err != nil {
			return nil, err
		}
		return columnValue{at, b.columns[at].field.Type}, nil
	case *Binary:
		if e.Op == Concat {
			return b.concat(e)
		}
		if !e.Op.Compares() {
			return b.computed(e)
		}
	case *Neg:
		return b.computed(e)
	case *Aggregate:
		return nil, &BindError{Value: e.String(), Cause: "an aggregate cannot stand here"}
	}
	x, err := b.boolean(e)
	if err != nil {
		return nil, err
	}
	return boolValue{x.node}, nil
}

// columnValue is a column as it is.
type columnValue struct {
	at slot
	t  iceberg.Type
}

func (c columnValue) typ() iceberg.Type { return c.t }

func (c columnValue) eval(ctx context.Context, f *frame, n int) (arrow.Array, error) {
	v := &f.columns[c.at]
	if len(v.around) == 0 {
		v.values.Retain()
		return v.values, nil
	}
	// Where a struct around the field is NULL, so is the field.
	index := array.NewInt64Builder(memory.DefaultAllocator)
	defer index.Release()
	for i := range n {
		if v.isNull(i) {
			index.AppendNull()
		} else {
			index.Append(int64(i))
		}
	}
	rows := index.NewInt64Array()
	defer rows.Release()
	return take(ctx, v.values, rows)
}

// take is the rows of a that index names; NULL where index is.
func take(ctx context.Context, a arrow.Array, index *array.Int64) (arrow.Array, error) {
	out, err := compute.TakeArray(ctx, a, index)
	if err != nil {
		return nil, fmt.Errorf("rhizodat: take rows: %w", err)
	}
	return out, nil
}

// constValue is one value in every row.
type constValue struct {
	constant
	field iceberg.NestedField
}

// newConstValue gives a constant the type that its spelling, or its Go type, has.
func newConstValue(e Expr, c constant) (value, error) {
	v := c.v
	if n, ok := v.(icevalue.Number); ok { // as text: Append reads a number's own digits
		v = n.String()
	}
	out := constValue{constant: constant{kind: c.kind, v: v}, field: iceberg.NestedField{Name: shorten(e.String()), Type: constantType(c)}}
	_, err := out.array(nil)
	return out, err
}

func constantType(c constant) iceberg.Type {
	switch c.kind {
	case DateLiteral:
		return iceberg.PrimitiveTypes.Date
	case TimeLiteral:
		return iceberg.PrimitiveTypes.Time
	case TimestampLiteral:
		return iceberg.PrimitiveTypes.Timestamp
	case TimestamptzLiteral:
		return iceberg.PrimitiveTypes.TimestampTz
	case UUIDLiteral:
		return iceberg.PrimitiveTypes.UUID
	case NullLiteral, BoolLiteral, NumberLiteral, StringLiteral, BytesLiteral, DecimalLiteral:
	}
	switch v := c.v.(type) {
	case bool:
		return iceberg.PrimitiveTypes.Bool
	case int64:
		return iceberg.PrimitiveTypes.Int64
	case float64:
		return iceberg.PrimitiveTypes.Float64
	case icevalue.Number:
		if _, err := v.Int64(); err == nil && v.Scale <= 0 {
			return iceberg.PrimitiveTypes.Int64
		}
		if v.Scale < 0 || v.Scale > 38 {
			return iceberg.PrimitiveTypes.Float64
		}
		return iceberg.DecimalTypeOf(38, v.Scale)
	case []byte:
		return iceberg.PrimitiveTypes.Binary
	case time.Time:
		return iceberg.PrimitiveTypes.TimestampTz
	case time.Duration:
		return iceberg.PrimitiveTypes.Time
	case uuid.UUID:
		return iceberg.PrimitiveTypes.UUID
	}
	return iceberg.PrimitiveTypes.String
}

func (c constValue) typ() iceberg.Type { return c.field.Type }

func (c constValue) eval(ctx context.Context, _ *frame, n int) (arrow.Array, error) {
	return c.repeat(ctx, nil, n)
}

func (c constValue) repeat(ctx context.Context, dt arrow.DataType, n int) (arrow.Array, error) {
	one, err := c.array(dt)
	if err != nil {
		return nil, err
	}
	defer one.Release()
	index := array.NewInt64Builder(memory.DefaultAllocator)
	defer index.Release()
	index.AppendValues(make([]int64, n), nil)
	rows := index.NewInt64Array()
	defer rows.Release()
	return take(ctx, one, rows)
}

// array is the constant in an array of one row of type dt, or of the Arrow type
// that iceberg-go gives the constant's type where dt is nil.
func (c constValue) array(dt arrow.DataType) (arrow.Array, error) {
	if dt == nil {
		var err error
		if dt, err = table.TypeToArrowType(c.field.Type, true, false); err != nil {
			return nil, &BindError{Column: c.field.Name, Type: c.field.Type.String(), Err: err}
		}
	}
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	a, err := icevalue.NewAppender(c.field, b)
	if err != nil {
		return nil, err
	}
	if err := a.Append(c.v); err != nil {
		return nil, err
	}
	return b.NewArray(), nil
}

// boolValue is a condition as a value.
type boolValue struct{ x node }

func (boolValue) typ() iceberg.Type { return iceberg.PrimitiveTypes.Bool }

func (v boolValue) eval(_ context.Context, f *frame, n int) (arrow.Array, error) {
	m := make(Mask, n)
	v.x.eval(f, m)
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer b.Release()
	for _, t := range m {
		if t == Unknown {
			b.AppendNull()
		} else {
			b.Append(t == True)
		}
	}
	return b.NewArray(), nil
}

// concatValue is a || b || …
type concatValue []value

func (b *binder) concat(e *Binary) (value, error) {
	var out concatValue
	for _, side := range []Expr{e.Left, e.Right} {
		x, err := b.value(side)
		if err != nil {
			return nil, err
		}
		if familyOf(x.typ()) != famString {
			return nil, &BindError{Value: shorten(side.String()), Type: typeText(x.typ()), Cause: "|| joins strings"}
		}
		if inner, ok := x.(concatValue); ok {
			out = append(out, inner...)
		} else {
			out = append(out, x)
		}
	}
	return out, nil
}

func (concatValue) typ() iceberg.Type { return iceberg.PrimitiveTypes.String }

func (c concatValue) eval(ctx context.Context, f *frame, n int) (arrow.Array, error) {
	parts := make([]arrow.Array, 0, len(c))
	defer func() {
		for _, a := range parts {
			a.Release()
		}
	}()
	for _, x := range c {
		a, err := x.eval(ctx, f, n)
		if err != nil {
			return nil, err
		}
		parts = append(parts, a)
	}
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	var text strings.Builder
rows:
	for i := range n {
		text.Reset()
		for _, a := range parts {
			if a.IsNull(i) {
				b.AppendNull()
				continue rows
			}
			text.WriteString(stringsOf(a)(i))
		}
		b.Append(text.String())
	}
	return b.NewArray(), nil
}
