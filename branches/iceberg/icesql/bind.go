package icesql

import (
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// binder ties the names and parameters of one statement to a schema and arguments.
type binder struct {
	fields  []iceberg.NestedField
	args    []driver.NamedValue
	columns []boundColumn // every column that the statement reads, once
}

// boundColumn is a column, or a field inside a struct column.
type boundColumn struct {
	path   []string
	field  iceberg.NestedField // of the last part
	family family
}

func (c *boundColumn) name() string { return quotePath(c.path) }
func (c *boundColumn) nested() bool { return len(c.path) > 1 }

// slot is a column's place in binder.columns, and so in a frame.
type slot int

func newBinder(sc *iceberg.Schema, args []driver.NamedValue) *binder {
	return &binder{fields: sc.Fields(), args: args}
}

// column finds or adds the column that c names.
func (b *binder) column(c *ColumnRef) (slot, error) {
	for i := range b.columns {
		if slices.Equal(b.columns[i].path, c.Path) {
			return slot(i), nil
		}
	}
	fields := b.fields
	var field iceberg.NestedField
	for depth, part := range c.Path {
		i := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.Name == part })
		if i < 0 {
			return 0, noColumn(c.Path[:depth+1], fields)
		}
		field = fields[i]
		fields = nil
		if s, ok := field.Type.(*iceberg.StructType); ok {
			fields = s.FieldList
		}
	}
	b.columns = append(b.columns, boundColumn{path: c.Path, field: field, family: familyOf(field.Type)})
	return slot(len(b.columns) - 1), nil
}

// noColumn is the error of a name that is not there, with what was meant where
// only the case differs: unquoted names are folded to lower case.
func noColumn(path []string, fields []iceberg.NestedField) error {
	cause := "there is no such column"
	last := path[len(path)-1]
	i := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return strings.EqualFold(f.Name, last) })
	if i >= 0 {
		cause += "; there is " + quoteIdent(fields[i].Name)
		if quoteIdent(fields[i].Name) != fields[i].Name {
			cause += ", which must be quoted"
		}
	}
	return &BindError{Column: quotePath(path), Cause: cause}
}

// argument is the value of a parameter, as icevalue.Plain gives it.
func (b *binder) argument(p *Param) (any, error) {
	v, ok := lookUp(b.args, p)
	if !ok {
		return nil, missing(p, len(b.args))
	}
	v, err := icevalue.Plain(v)
	if err != nil {
		return nil, &BindError{Cause: "argument " + p.String(), Err: err}
	}
	return v, nil
}

// family groups the types that share kernels and compare with each other.
type family uint8

const (
	famNested family = iota // only IS [NOT] NULL
	famBool
	famInt
	famFloat
	famDecimal
	famString
	famBytes
	famUUID
	famDate
	famTime
	famTimestamp   // without zone
	famTimestamptz // with zone
)

func familyOf(t iceberg.Type) family {
	switch t.(type) {
	case iceberg.BooleanType:
		return famBool
	case iceberg.Int32Type, iceberg.Int64Type:
		return famInt
	case iceberg.Float32Type, iceberg.Float64Type:
		return famFloat
	case iceberg.DecimalType:
		return famDecimal
	case iceberg.StringType:
		return famString
	case iceberg.BinaryType, iceberg.FixedType:
		return famBytes
	case iceberg.UUIDType:
		return famUUID
	case iceberg.DateType:
		return famDate
	case iceberg.TimeType:
		return famTime
	case iceberg.TimestampType, iceberg.TimestampNsType:
		return famTimestamp
	case iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		return famTimestamptz
	}
	return famNested
}

// numeric reports whether f is a family of numbers.
func (f family) numeric() bool { return f == famInt || f == famFloat || f == famDecimal }

// tick is the unit of a family that is stored as whole ticks since 1970, in nanoseconds.
func tick(t iceberg.Type) int64 {
	switch t.(type) {
	case iceberg.DateType:
		return 24 * 60 * 60 * 1_000_000_000
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return 1
	}
	return 1000
}

// constant is a literal or an argument.
type constant struct {
	kind LiteralKind // of a literal; of an argument StringLiteral, which takes the column's type
	v    any         // as icevalue.Plain gives it; nil is NULL; text of a typed literal
}

func (c constant) null() bool { return c.v == nil }

func (c constant) shown() string {
	switch c.kind {
	case DateLiteral, TimeLiteral, TimestampLiteral, TimestamptzLiteral, UUIDLiteral, DecimalLiteral:
		text, _ := c.v.(string)
		return (&Literal{Kind: c.kind, Text: shorten(text)}).String()
	case NullLiteral, BoolLiteral, NumberLiteral, StringLiteral, BytesLiteral:
	}
	return icevalue.Shown(c.v)
}

// constant reads e where it is a literal or a parameter.
func (b *binder) constant(e Expr) (constant, bool, error) {
	switch e := e.(type) {
	case *Param:
		v, err := b.argument(e)
		return constant{kind: StringLiteral, v: v}, true, err
	case *Literal:
		c, err := literal(e)
		return c, true, err
	}
	return constant{}, false, nil
}

func literal(l *Literal) (constant, error) {
	switch l.Kind {
	case NullLiteral:
		return constant{kind: NullLiteral}, nil
	case BoolLiteral:
		return constant{kind: BoolLiteral, v: l.Text == "true"}, nil
	case NumberLiteral:
		n, err := icevalue.ParseNumber(l.Text)
		if err != nil {
			return constant{}, &BindError{Value: shorten(l.Text), Err: err}
		}
		return constant{kind: NumberLiteral, v: n}, nil
	case BytesLiteral:
		return constant{kind: BytesLiteral, v: []byte(l.Text)}, nil
	case DecimalLiteral:
		n, err := icevalue.ParseNumber(l.Text)
		if err != nil {
			return constant{}, &BindError{Value: shorten(l.Text), Err: err}
		}
		return constant{kind: NumberLiteral, v: n}, nil
	case StringLiteral, DateLiteral, TimeLiteral, TimestampLiteral, TimestamptzLiteral, UUIDLiteral:
	}
	return constant{kind: l.Kind, v: l.Text}, nil
}
