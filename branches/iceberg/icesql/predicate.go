package icesql

import (
	"database/sql/driver"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
)

// Predicate is a WHERE that is bound to a schema and arguments. It is safe for use
// by several goroutines.
type Predicate struct {
	columns []boundColumn
	root    node
	push    iceberg.BooleanExpression // nil: nothing
}

// Bind checks where against the columns of sc and the arguments, and prepares it.
// A nil where is true for every row. The error is a *BindError, which names the
// column, its type and the value.
func Bind(where Expr, sc *iceberg.Schema, args []driver.NamedValue) (*Predicate, error) {
	b := newBinder(sc, args)
	if where == nil {
		return &Predicate{root: always(True)}, nil
	}
	bound, err := b.boolean(where)
	if err != nil {
		return nil, err
	}
	return &Predicate{columns: b.columns, root: bound.node, push: bound.push}, nil
}

// Columns are the names of the table's columns that Eval reads.
func (p *Predicate) Columns() []string { return topColumns(p.columns) }

func topColumns(columns []boundColumn) []string {
	var out []string
	seen := map[string]bool{}
	for _, c := range columns {
		if !seen[c.path[0]] {
			seen[c.path[0]] = true
			out = append(out, c.path[0])
		}
	}
	return out
}

// Eval is the predicate's truth for every row of b, which has its columns by name.
func (p *Predicate) Eval(b arrow.RecordBatch) (Mask, error) {
	f, err := newFrame(p.columns, b)
	if err != nil {
		return nil, err
	}
	out := make(Mask, b.NumRows())
	p.root.eval(f, out)
	return out, nil
}

// node is a part of a bound predicate. eval writes the truth of every row; out
// comes with any content.
type node interface{ eval(f *frame, out Mask) }

// bound is a node and what of it may be given to PlanFiles; push is nil where
// nothing may. INVARIANT: a row for which node is True satisfies push.
type bound struct {
	node node
	push iceberg.BooleanExpression
}

// frame is one batch with the predicate's columns found in it.
type frame struct {
	columns []vector
	spare   []Mask
}

// vector is a column of a batch: the values, and the structs around them whose
// NULL makes them NULL.
type vector struct {
	values arrow.Array
	around []arrow.Array
}

func newFrame(columns []boundColumn, b arrow.RecordBatch) (*frame, error) {
	f := &frame{columns: make([]vector, len(columns))}
	for i, c := range columns {
		at := b.Schema().FieldIndices(c.path[0])
		if len(at) != 1 {
			return nil, fmt.Errorf("rhizodat: evaluate predicate: the batch has %d columns %s", len(at), quoteIdent(c.path[0]))
		}
		v := vector{values: b.Column(at[0])}
		for _, part := range c.path[1:] {
			s, ok := v.values.(*array.Struct)
			if !ok {
				return nil, fmt.Errorf("rhizodat: evaluate predicate: column %s is no struct in the batch", c.name())
			}
			k, ok := s.DataType().(*arrow.StructType).FieldIdx(part)
			if !ok {
				return nil, fmt.Errorf("rhizodat: evaluate predicate: the batch has no column %s", c.name())
			}
			v.around = append(v.around, s)
			v.values = s.Field(k)
		}
		if err := c.fits(v.values); err != nil {
			return nil, err
		}
		f.columns[i] = v
	}
	return f, nil
}

func (f *frame) mask(n int) Mask {
	if last := len(f.spare) - 1; last >= 0 {
		m := f.spare[last]
		f.spare = f.spare[:last]
		return m
	}
	return make(Mask, n)
}

func (f *frame) free(m Mask) { f.spare = append(f.spare, m) }

func (v *vector) isNull(i int) bool {
	for _, s := range v.around {
		if s.IsNull(i) {
			return true
		}
	}
	return v.values.IsNull(i)
}

// hideNulls makes the rows in which v is NULL unknown.
func (v *vector) hideNulls(out Mask) {
	for _, s := range v.around {
		nullsUnknown(s, out)
	}
	nullsUnknown(v.values, out)
}

func nullsUnknown(a arrow.Array, out Mask) {
	if a.NullN() == 0 {
		return
	}
	for i := range out {
		if a.IsNull(i) {
			out[i] = Unknown
		}
	}
}

// always has one truth for every row.
type always Truth

func (a always) eval(_ *frame, out Mask) {
	for i := range out {
		out[i] = Truth(a)
	}
}

type andNode []node

func (a andNode) eval(f *frame, out Mask) {
	a[0].eval(f, out)
	m := f.mask(len(out))
	defer func() { f.free(m) }()
	for _, term := range a[1:] {
		term.eval(f, m)
		for i, t := range m {
			out[i] = min(out[i], t)
		}
	}
}

type orNode []node

func (o orNode) eval(f *frame, out Mask) {
	o[0].eval(f, out)
	m := f.mask(len(out))
	defer func() { f.free(m) }()
	for _, term := range o[1:] {
		term.eval(f, m)
		for i, t := range m {
			out[i] = max(out[i], t)
		}
	}
}

type notNode struct{ x node }

func (n notNode) eval(f *frame, out Mask) {
	n.x.eval(f, out)
	for i, t := range out {
		out[i] = True - t
	}
}

// isNode turns each truth of x into another by a table.
type isNode struct {
	x     node
	table [3]Truth
}

func (n isNode) eval(f *frame, out Mask) {
	n.x.eval(f, out)
	for i, t := range out {
		out[i] = n.table[t]
	}
}

// nullNode is column IS NULL, or IS NOT NULL.
type nullNode struct {
	column slot
	not    bool
}

func (n nullNode) eval(f *frame, out Mask) {
	v := &f.columns[n.column]
	for i := range out {
		out[i] = truthOf(v.isNull(i) != n.not)
	}
}
