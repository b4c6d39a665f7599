package icesql

import (
	"github.com/apache/iceberg-go"
)

// boolean binds an expression that is true, false or unknown for a row.
func (b *binder) boolean(e Expr) (bound, error) {
	switch e := e.(type) {
	case *And:
		return b.and(e)
	case *Or:
		nodes, err := b.booleans(e.Terms)
		return bound{node: orNode(nodes)}, err
	case *Not:
		x, err := b.boolean(e.X)
		return bound{node: notNode{x.node}}, err
	case *Binary:
		if e.Op.Compares() {
			return b.comparison(e.Op, e.Left, e.Right)
		}
	case *IsNull:
		return b.isNull(e)
	case *IsTruth:
		return b.isTruth(e)
	case *Between:
		return b.between(e)
	case *In:
		return b.in(e)
	case *Like:
		return b.like(e)
	case *ColumnRef:
		return b.boolColumn(e)
	case *Literal, *Param:
		return b.boolConstant(e)
	case *Neg, *Aggregate:
	}
	return bound{}, &BindError{Value: shorten(e.String()), Cause: "it is not a condition: arithmetic can stand in SET and in a select list"}
}

func (b *binder) booleans(terms []Expr) ([]node, error) {
	out := make([]node, len(terms))
	for i, e := range terms {
		x, err := b.boolean(e)
		if err != nil {
			return nil, err
		}
		out[i] = x.node
	}
	return out, nil
}

// and gives to PlanFiles what each term may give: for a conjunction to be true,
// every term must be.
func (b *binder) and(e *And) (bound, error) {
	var out andNode
	var push iceberg.BooleanExpression
	for _, term := range e.Terms {
		x, err := b.boolean(term)
		if err != nil {
			return bound{}, err
		}
		out = append(out, x.node)
		push = both(push, x.push)
	}
	return bound{node: out, push: push}, nil
}

func both(x, y iceberg.BooleanExpression) iceberg.BooleanExpression {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return iceberg.NewAnd(x, y)
}

// between is low <= x AND x <= high, in three-valued logic too.
func (b *binder) between(e *Between) (bound, error) {
	low, err := b.comparison(Ge, e.X, e.Low)
	if err != nil {
		return bound{}, err
	}
	high, err := b.comparison(Le, e.X, e.High)
	if err != nil {
		return bound{}, err
	}
	inside := andNode{low.node, high.node}
	if e.Not {
		return bound{node: notNode{inside}}, nil
	}
	return bound{node: inside, push: both(low.push, high.push)}, nil
}

func (b *binder) isNull(e *IsNull) (bound, error) {
	if c, ok, err := b.constant(e.X); ok || err != nil {
		return bound{node: always(truthOf(c.null() != e.Not))}, err
	}
	if c, ok := e.X.(*ColumnRef); ok {
		at, err := b.column(c)
		if err != nil {
			return bound{}, err
		}
		return bound{node: nullNode{at, e.Not}, push: pushNull(&b.columns[at], e.Not)}, nil
	}
	x, err := b.boolean(e.X)
	if err != nil {
		return bound{}, err
	}
	table := [3]Truth{False, True, False}
	if e.Not {
		table = [3]Truth{True, False, True}
	}
	return bound{node: isNode{x.node, table}}, nil
}

func (b *binder) isTruth(e *IsTruth) (bound, error) {
	x, err := b.boolean(e.X)
	if err != nil {
		return bound{}, err
	}
	var table [3]Truth
	for t := range table {
		is := Truth(t) == truthOf(e.Want)
		table[t] = truthOf(is != e.Not)
	}
	return bound{node: isNode{x.node, table}}, nil
}

// boolColumn is a column that is a condition by itself.
func (b *binder) boolColumn(e *ColumnRef) (bound, error) {
	at, err := b.column(e)
	if err != nil {
		return bound{}, err
	}
	if c := &b.columns[at]; c.family != famBool {
		return bound{}, &BindError{Column: c.name(), Type: typeText(c.field.Type), Cause: "it is not a condition"}
	}
	return b.comparison(Eq, e, &Literal{Kind: BoolLiteral, Text: "true"})
}

func (b *binder) boolConstant(e Expr) (bound, error) {
	c, _, err := b.constant(e)
	if err != nil {
		return bound{}, err
	}
	switch v := c.v.(type) {
	case nil:
		return bound{node: always(Unknown)}, nil
	case bool:
		return bound{node: always(truthOf(v))}, nil
	}
	return bound{}, &BindError{Value: c.shown(), Cause: "it is not a condition"}
}
