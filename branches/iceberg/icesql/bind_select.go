package icesql

import (
	"database/sql/driver"
	"fmt"
	"strconv"

	"github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// selectBinder gathers a Query.
type selectBinder struct {
	*binder
	sel    *Select
	q      *Query
	places map[string]int // of Query.values, by the expression's text
}

// BindSelect checks a SELECT against the columns of sc and the arguments: for a
// query of the past, the schema of that snapshot.
func BindSelect(sel *Select, sc *iceberg.Schema, args []driver.NamedValue) (*Query, error) {
	where, err := Bind(sel.Where, sc, args)
	if err != nil {
		return nil, err
	}
	b := &selectBinder{binder: newBinder(sc, args), sel: sel, q: &Query{where: where}, places: map[string]int{}}
	b.q.all = b.fields
	for _, step := range []func() error{b.bindGroups, b.bindItems, b.bindOrders, b.bindBounds} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	b.q.columns = b.columns
	return b.q, nil
}

const (
	groupBy = "GROUP BY"
	orderBy = "ORDER BY"
)

// place finds or adds an expression that is evaluated for every row.
func (b *selectBinder) place(e Expr) (int, error) {
	text := e.String()
	if at, ok := b.places[text]; ok {
		return at, nil
	}
	v, err := b.value(e)
	if err != nil {
		return 0, err
	}
	b.q.values = append(b.q.values, v)
	b.places[text] = len(b.q.values) - 1
	return b.places[text], nil
}

// item is the select item that e names by its position or its alias. In GROUP BY a
// column of the table goes before an alias of the same name, in ORDER BY after it,
// as in PostgreSQL.
func (b *selectBinder) item(e Expr, clause string) (Expr, error) {
	switch e := e.(type) {
	case *Literal:
		n, err := strconv.Atoi(e.Text)
		if e.Kind != NumberLiteral || err != nil {
			return nil, &BindError{Value: e.String(), Cause: clause + " takes columns, expressions and positions"}
		}
		if n < 1 || n > len(b.sel.Items) || b.sel.Items[n-1].Star {
			return nil, &BindError{Value: e.String(), Cause: clause + " names a position that the select list does not have"}
		}
		return b.sel.Items[n-1].Expr, nil
	case *ColumnRef:
		if _, err := b.top(e.Path[0]); len(e.Path) > 1 || err == nil && clause == groupBy {
			return e, nil
		}
		for _, it := range b.sel.Items {
			if it.Alias == e.Path[0] && it.Expr != nil {
				return it.Expr, nil
			}
		}
	}
	return e, nil
}

func (b *selectBinder) bindGroups() error {
	for _, e := range b.sel.GroupBy {
		e, err := b.item(e, groupBy)
		if err != nil {
			return err
		}
		if _, ok := e.(*Aggregate); ok {
			return &BindError{Value: e.String(), Cause: "GROUP BY cannot name an aggregate"}
		}
		at, err := b.place(e)
		if err != nil {
			return err
		}
		if t := b.q.values[at].typ(); familyOf(t) == famNested {
			return &BindError{Column: e.String(), Type: typeText(t), Cause: "values of this type cannot be grouped"}
		}
		b.q.groups = append(b.q.groups, at)
	}
	b.q.grouped = len(b.sel.GroupBy) > 0
	for _, it := range b.sel.Items {
		if _, ok := it.Expr.(*Aggregate); ok {
			b.q.grouped = true
		}
	}
	for _, o := range b.sel.OrderBy {
		if _, ok := o.Expr.(*Aggregate); ok {
			b.q.grouped = true
		}
	}
	return nil
}

func (b *selectBinder) bindItems() error {
	for _, it := range b.sel.Items {
		if !it.Star {
			if err := b.output(it); err != nil {
				return err
			}
			continue
		}
		if b.q.grouped {
			return &BindError{Value: "*", Cause: "it cannot stand beside aggregates or GROUP BY"}
		}
		for _, f := range b.fields {
			if err := b.output(Item{Expr: &ColumnRef{Path: []string{f.Name}}}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *selectBinder) output(it Item) error {
	s, err := b.source(it.Expr)
	if err != nil {
		return err
	}
	o := output{name: it.Alias, source: s, nullable: true}
	switch s.kind {
	case fromAggregate:
		o.typ, o.nullable = b.q.aggs[s.at].typ, b.q.aggs[s.at].fn != Count
	case fromGroup:
		o.typ = b.q.values[b.q.groups[s.at]].typ()
	case fromValue:
		o.typ = b.q.values[s.at].typ()
	}
	switch e := it.Expr.(type) {
	case *ColumnRef:
		if o.name == "" {
			o.name = e.Path[len(e.Path)-1]
		}
		if f, err := b.top(e.Path[0]); err == nil && len(e.Path) == 1 {
			o.nullable = !f.Required
		}
	case *Aggregate:
		if o.name == "" {
			o.name = e.Func.String()
		}
	}
	if o.name == "" {
		o.name = "?column?"
	}
	b.q.outputs = append(b.q.outputs, o)
	return nil
}

// source binds an expression of the select list or of ORDER BY.
func (b *selectBinder) source(e Expr) (source, error) {
	a, isAggregate := e.(*Aggregate)
	switch {
	case isAggregate:
		return b.aggregate(a)
	case !b.q.grouped:
		at, err := b.place(e)
		return source{fromValue, at}, err
	}
	for k, at := range b.q.groups {
		if known, ok := b.places[e.String()]; ok && known == at {
			return source{fromGroup, k}, nil
		}
	}
	return source{}, &BindError{Value: shorten(e.String()), Cause: "it must be an aggregate or stand in GROUP BY"}
}

func (b *selectBinder) aggregate(e *Aggregate) (source, error) {
	for k, known := range b.q.aggs {
		if known.text == e.String() {
			return source{fromAggregate, k}, nil
		}
	}
	arg, typ := -1, iceberg.Type(iceberg.PrimitiveTypes.Int64)
	if e.Arg != nil {
		var err error
		if arg, err = b.place(e.Arg); err != nil {
			return source{}, err
		}
		typ = b.q.values[arg].typ()
	}
	a, err := newAggregate(e, arg, typ)
	if err != nil {
		return source{}, err
	}
	b.q.aggs = append(b.q.aggs, a)
	return source{fromAggregate, len(b.q.aggs) - 1}, nil
}

func (b *selectBinder) bindOrders() error {
	for _, o := range b.sel.OrderBy {
		e, err := b.item(o.Expr, orderBy)
		if err != nil {
			return err
		}
		s, err := b.source(e)
		if err != nil {
			return err
		}
		if s.kind == fromValue {
			if t := b.q.values[s.at].typ(); familyOf(t) == famNested {
				return &BindError{Column: e.String(), Type: typeText(t), Cause: "values of this type have no order"}
			}
		}
		b.q.orders = append(b.q.orders, ordering{s, o.sort()})
	}
	return nil
}

func (b *selectBinder) bindBounds() error {
	var err error
	if b.q.limit, err = b.bound(b.sel.Limit, -1, "LIMIT"); err != nil {
		return err
	}
	b.q.offset, err = b.bound(b.sel.Offset, 0, "OFFSET")
	return err
}

// bound reads a number of rows; none where e is nil or NULL.
func (b *selectBinder) bound(e Expr, none int64, clause string) (int64, error) {
	if e == nil {
		return none, nil
	}
	c, _, err := b.constant(e)
	if err != nil {
		return 0, err
	}
	if c.null() {
		return none, nil
	}
	n, err := icevalue.NumberOf(c.v)
	if err == nil {
		var rows int64
		if rows, err = n.Int64(); err == nil && rows >= 0 {
			return rows, nil
		}
	}
	return 0, &BindError{Value: c.shown(), Cause: fmt.Sprintf("%s takes a whole number of rows that is not negative", clause)}
}
