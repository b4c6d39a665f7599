package icesql

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// UpdatePlan is an UPDATE that is bound to a schema and arguments.
type UpdatePlan struct {
	where   *Predicate
	columns []boundColumn // that the values read
	sets    []assignment
}

// assignment is a column and its new value.
type assignment struct {
	field iceberg.NestedField
	value value
}

// BindUpdate checks an UPDATE against the columns of sc and the arguments. A literal
// or an argument that its column cannot hold is refused here.
func BindUpdate(u *Update, sc *iceberg.Schema, args []driver.NamedValue) (*UpdatePlan, error) {
	where, err := Bind(u.Where, sc, args)
	if err != nil {
		return nil, err
	}
	b := newBinder(sc, args)
	out := &UpdatePlan{where: where}
	seen := map[string]bool{}
	for _, s := range u.Set {
		if seen[s.Column] {
			return nil, &BindError{Column: quoteIdent(s.Column), Cause: "it is set twice"}
		}
		seen[s.Column] = true
		a, err := b.assignment(s)
		if err != nil {
			return nil, err
		}
		out.sets = append(out.sets, a)
	}
	out.columns = b.columns
	return out, nil
}

func (b *binder) assignment(s Assignment) (assignment, error) {
	field, err := b.top(s.Column)
	if err != nil {
		return assignment{}, err
	}
	if c, ok, err := b.constant(s.Value); ok || err != nil {
		if err != nil {
			return assignment{}, err
		}
		v, err := constFor(field, c)
		return assignment{field, v}, err
	}
	v, err := b.value(s.Value)
	if err != nil {
		return assignment{}, err
	}
	if !casts(v.typ(), field.Type) {
		return assignment{}, &BindError{Column: quoteIdent(field.Name), Type: typeText(field.Type), Cause: "it cannot be set to a value of type " + typeText(v.typ())}
	}
	return assignment{field, v}, nil
}

// top is a column of the table itself.
func (b *binder) top(name string) (iceberg.NestedField, error) {
	for _, f := range b.fields {
		if f.Name == name {
			return f, nil
		}
	}
	return iceberg.NestedField{}, noColumn([]string{name}, b.fields)
}

// constFor is a constant that goes into a column, by the rules of INSERT.
func constFor(field iceberg.NestedField, c constant) (value, error) {
	v, err := forColumn(field, c)
	if err != nil {
		return nil, err
	}
	out := constValue{constant: constant{kind: c.kind, v: v}, field: field}
	_, err = out.array(nil)
	return out, err
}

// forColumn is what an Appender of field takes for c. A typed literal must be of
// the column's own type, or of one that goes into it without loss.
func forColumn(field iceberg.NestedField, c constant) (any, error) {
	fam, fits := familyOf(field.Type), true
	switch c.kind {
	case NullLiteral, StringLiteral:
	case BoolLiteral:
		fits = fam == famBool
	case NumberLiteral, DecimalLiteral:
		fits = fam.numeric()
	case BytesLiteral:
		fits = fam == famBytes
	case DateLiteral:
		fits = timeless(fam)
	case TimeLiteral:
		fits = fam == famTime
	case TimestampLiteral:
		fits = fam == famTimestamp
	case TimestamptzLiteral:
		fits = fam == famTimestamptz
	case UUIDLiteral:
		fits = fam == famUUID
	}
	if !fits {
		return nil, &BindError{Column: quoteIdent(field.Name), Type: typeText(field.Type), Value: c.shown(), Err: errOtherType}
	}
	return c.v, nil
}

// Predicate is the UPDATE's WHERE.
func (p *UpdatePlan) Predicate() *Predicate { return p.where }

// Apply is b, which has every column of the table, with the new values in the rows
// for which mask is true; rows and their order stay. Expressions are evaluated in
// those rows only, so that WHERE can keep a divisor from being zero. The caller
// releases the result; b stays the caller's. An *EvalError is a value that cannot be.
func (p *UpdatePlan) Apply(ctx context.Context, b arrow.RecordBatch, mask Mask) (arrow.RecordBatch, error) {
	chosen, err := mask.Filter(ctx, b)
	if err != nil {
		return nil, err
	}
	defer chosen.Release()
	f, err := newFrame(p.columns, chosen)
	if err != nil {
		return nil, err
	}
	index := scatter(mask)
	defer index.Release()
	columns := make([]arrow.Array, b.NumCols())
	copy(columns, b.Columns())
	for _, s := range p.sets {
		at := b.Schema().FieldIndices(s.field.Name)
		if len(at) != 1 {
			return nil, fmt.Errorf("rhizodat: update rows: the batch has %d columns %s", len(at), quoteIdent(s.field.Name))
		}
		fresh, err := s.array(ctx, f, int(chosen.NumRows()), b.Column(at[0]).DataType())
		if err != nil {
			return nil, err
		}
		merged, err := merge(ctx, b.Column(at[0]), fresh, index)
		fresh.Release()
		if err != nil {
			return nil, err
		}
		defer merged.Release()
		columns[at[0]] = merged
	}
	return array.NewRecordBatch(b.Schema(), columns, b.NumRows()), nil
}

// array is the new values of the chosen rows, in the Arrow type of the column.
func (s *assignment) array(ctx context.Context, f *frame, n int, dt arrow.DataType) (arrow.Array, error) {
	if c, ok := s.value.(constValue); ok {
		return c.repeat(ctx, dt, n)
	}
	a, err := s.value.eval(ctx, f, n)
	if err != nil {
		return nil, err
	}
	what := "SET " + quoteIdent(s.field.Name)
	if a, err = cast(ctx, what, a, s.value.typ(), s.field.Type); err != nil {
		return nil, err
	}
	if s.field.Required && a.NullN() > 0 {
		a.Release()
		return nil, &EvalError{Column: what, Cause: icevalue.ErrRequired.Error()}
	}
	return a, nil
}

// scatter is where each row comes from in the old column followed by the new values.
func scatter(mask Mask) *array.Int64 {
	index := array.NewInt64Builder(memory.DefaultAllocator)
	defer index.Release()
	index.Reserve(len(mask))
	next := int64(len(mask))
	for i, t := range mask {
		if t == True {
			index.UnsafeAppend(next)
			next++
		} else {
			index.UnsafeAppend(int64(i))
		}
	}
	return index.NewInt64Array()
}

func merge(ctx context.Context, old, fresh arrow.Array, index *array.Int64) (arrow.Array, error) {
	both, err := array.Concatenate([]arrow.Array{old, fresh}, memory.DefaultAllocator)
	if err != nil {
		return nil, fmt.Errorf("rhizodat: update rows: %w", err)
	}
	defer both.Release()
	return take(ctx, both, index)
}
