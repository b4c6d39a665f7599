package icesql

import (
	"maps"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// in binds x IN (list). With constants only it is one look-up a row; else it is the
// OR of comparisons that it stands for.
func (b *binder) in(e *In) (bound, error) {
	var out bound
	set, err := b.inSet(e)
	switch {
	case err != nil:
		return bound{}, err
	case set != nil:
		out = bound{node: *set, push: pushIn(&b.columns[set.column], set.values)}
	default:
		var terms orNode
		for _, item := range e.List {
			x, err := b.comparison(Eq, e.X, item)
			if err != nil {
				return bound{}, err
			}
			terms = append(terms, x.node)
		}
		out = bound{node: terms}
	}
	if e.Not {
		return bound{node: notNode{out.node}}, nil
	}
	return out, nil
}

// inSet is nil where the list or x is not of the simple kind.
func (b *binder) inSet(e *In) (*inNode, error) {
	if _, ok := e.X.(*ColumnRef); !ok {
		return nil, nil
	}
	items := make([]constant, len(e.List))
	for i, item := range e.List {
		c, ok, err := b.constant(item)
		if err != nil || !ok {
			return nil, err
		}
		items[i] = c
	}
	at, err := b.operand(e.X)
	if err != nil {
		return nil, err
	}
	col := &b.columns[at]
	if col.family == famBool { // at most two values
		return nil, nil
	}
	n := &inNode{column: at, miss: False}
	for _, item := range items {
		if item.null() {
			n.miss = Unknown
			continue
		}
		v, err := col.convert(item)
		if err != nil {
			return nil, col.refuse(item, err)
		}
		n.add(v)
	}
	return n, nil
}

// inNode looks a column's value up among constants.
type inNode struct {
	column   slot
	miss     Truth // of a value that is not in the list: unknown where the list has a NULL
	ints     map[int64]bool
	floats   map[float64]bool
	nan      bool
	decimals map[decimal128.Num]bool
	texts    map[string]bool
	values   []any // as pushIn takes them
}

// add takes what convert gives. A number that no value of the column can equal is
// left out.
func (n *inNode) add(v any) {
	switch v := v.(type) {
	case mark:
		if v.side != 0 || !v.exact {
			return
		}
		put(&n.ints, v.floor)
		n.values = append(n.values, v.floor)
	case decimalMark:
		if v.side != 0 || !v.exact {
			return
		}
		put(&n.decimals, v.floor)
		n.values = append(n.values, v.floor)
	case float64:
		if math.IsNaN(v) {
			n.nan = true
		} else {
			put(&n.floats, v)
		}
		n.values = append(n.values, v)
	case string:
		put(&n.texts, v)
		n.values = append(n.values, v)
	case []byte:
		put(&n.texts, string(v))
		n.values = append(n.values, v)
	}
}

func put[K comparable](m *map[K]bool, k K) {
	if *m == nil {
		*m = map[K]bool{}
	}
	(*m)[k] = true
}

func (n inNode) eval(f *frame, out Mask) {
	v := &f.columns[n.column]
	found := n.finder(v)
	for i := range out {
		out[i] = n.miss
		if found(i) {
			out[i] = True
		}
	}
	v.hideNulls(out)
}

// finder looks row i up.
func (n *inNode) finder(v *vector) func(i int) bool {
	switch a := v.values.(type) {
	case *array.Float32, *array.Float64:
		at := floatsOf(a)
		return func(i int) bool {
			x := at(i)
			return n.floats[x] || n.nan && math.IsNaN(x)
		}
	case *array.Decimal128:
		return func(i int) bool { return n.decimals[a.Value(i)] }
	}
	if at := stringsOf(v.values); at != nil {
		return func(i int) bool { return n.texts[at(i)] }
	}
	if at := bytesOf(v.values); at != nil {
		return func(i int) bool { return n.texts[string(at(i))] }
	}
	at := intsOf(v.values)
	if len(n.ints) > fewInts {
		return func(i int) bool { return n.ints[at(i)] }
	}
	few := slices.Collect(maps.Keys(n.ints))
	return func(i int) bool { return slices.Contains(few, at(i)) }
}

// fewInts is up to where looking at each is quicker than a map.
const fewInts = 8
