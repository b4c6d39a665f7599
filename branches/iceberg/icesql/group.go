package icesql

import (
	"context"
	"database/sql/driver"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
)

// group is the rows with one key.
type group struct {
	keys   []driver.Value // of Query.groups
	sort   [][]byte       // their keys; nil for NULL
	states []state
}

func (q *Query) newGroup() *group {
	g := &group{states: make([]state, len(q.aggs))}
	for i := range q.aggs {
		g.states[i] = q.aggs[i].state()
	}
	return g
}

// groups holds all groups in the order in which they were met.
type groups struct {
	byKey map[string]*group
	list  []*group
}

// aggregated reads every row before it gives the first group.
func (q *Query) aggregated(ctx context.Context, batches iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		all := &groups{byKey: map[string]*group{}}
		if len(q.groups) == 0 { // one group, also of no rows
			all.list = []*group{q.newGroup()}
		}
		for b, err := range batches {
			if err == nil {
				err = q.gather(ctx, all, b)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
		yield(q.ranked(all))
	}
}

// gather takes b over.
func (q *Query) gather(ctx context.Context, all *groups, b arrow.RecordBatch) error {
	if len(q.groups) == 0 && q.countsOnly() {
		for _, s := range all.list[0].states {
			if c, ok := s.(*countState); ok {
				c.n += b.NumRows()
			}
		}
		b.Release()
		return nil
	}
	e, err := q.evaluate(ctx, b)
	if err != nil {
		return err
	}
	defer e.release()
	inputs := make([]*input, len(q.aggs))
	for k := range q.aggs {
		inputs[k] = q.aggs[k].input(e)
	}
	keys := q.groupKeys(e)
	var key []byte
	for i := range e.n {
		var g *group
		if len(q.groups) == 0 {
			g = all.list[0]
		} else {
			key = q.groupKey(key[:0], e, keys, i)
			g = q.find(all, key, e, keys, i)
		}
		for k, s := range g.states {
			if in := inputs[k]; in.values == nil || !in.values.IsNull(i) {
				s.add(in, i)
			}
		}
	}
	return nil
}

// countsOnly: every aggregate is count(*), for which no row needs to be looked at.
func (q *Query) countsOnly() bool {
	for _, a := range q.aggs {
		if a.arg >= 0 {
			return false
		}
	}
	return true
}

func (q *Query) groupKeys(e *evaluated) []keyFunc {
	out := make([]keyFunc, len(q.groups))
	for k, at := range q.groups {
		out[k] = keysOf(e.arrays[at], familyOf(q.values[at].typ()))
	}
	return out
}

func (q *Query) groupKey(b []byte, e *evaluated, keys []keyFunc, i int) []byte {
	for k, at := range q.groups {
		b = sortOrder{}.appendKey(b, e.arrays[at].IsNull(i), func(b []byte) []byte { return keys[k](b, i) })
	}
	return b
}

func (q *Query) find(all *groups, key []byte, e *evaluated, keys []keyFunc, i int) *group {
	if g := all.byKey[string(key)]; g != nil {
		return g
	}
	g := q.newGroup()
	for k, at := range q.groups {
		g.keys = append(g.keys, e.readers[at].Value(i))
		var sort []byte
		if !e.arrays[at].IsNull(i) {
			sort = keys[k](nil, i)
		}
		g.sort = append(g.sort, sort)
	}
	all.byKey[string(key)] = g
	all.list = append(all.list, g)
	return g
}

// ranked brings the groups in order, and cuts what OFFSET and LIMIT leave out.
func (q *Query) ranked(all *groups) (chunk, error) {
	r := &ranking{most: q.most()}
	for _, g := range all.list {
		results, keys := make([]driver.Value, len(q.aggs)), make([][]byte, len(q.aggs))
		for k, s := range g.states {
			var err error
			if results[k], keys[k], err = s.result(); err != nil {
				return nil, err
			}
		}
		var key []byte
		for _, o := range q.orders {
			null, part := g.keyOf(o.source, results, keys)
			key = o.appendKey(key, null, func(b []byte) []byte { return append(b, part...) })
		}
		r.add(key, func() []driver.Value {
			out := make([]driver.Value, len(q.outputs))
			for c, o := range q.outputs {
				if o.source.kind == fromGroup {
					out[c] = g.keys[o.source.at]
				} else {
					out[c] = results[o.source.at]
				}
			}
			return out
		})
	}
	return r.result(q.offset), nil
}

func (g *group) keyOf(s source, results []driver.Value, keys [][]byte) (null bool, key []byte) {
	if s.kind == fromGroup {
		return g.keys[s.at] == nil, g.sort[s.at]
	}
	return results[s.at] == nil, keys[s.at]
}
