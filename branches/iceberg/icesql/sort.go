package icesql

import (
	"bytes"
	"container/heap"
	"context"
	"database/sql/driver"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// sortedRow is a result row with its key; seq keeps rows with equal keys in the
// order in which they were read.
type sortedRow struct {
	key    []byte
	seq    int64
	values []driver.Value
}

func (r *sortedRow) compare(o *sortedRow) int {
	if c := bytes.Compare(r.key, o.key); c != 0 {
		return c
	}
	if r.seq < o.seq {
		return -1
	}
	return 1
}

// ranking keeps the first most rows in order, or all where most is negative: with a
// LIMIT the memory is that of LIMIT and OFFSET, not of the table.
type ranking struct {
	most int64
	rows []*sortedRow // a heap with the last row on top once it is full
	seq  int64
}

func (r *ranking) Len() int           { return len(r.rows) }
func (r *ranking) Less(i, j int) bool { return r.rows[i].compare(r.rows[j]) > 0 }
func (r *ranking) Swap(i, j int)      { r.rows[i], r.rows[j] = r.rows[j], r.rows[i] }

// Push is heap.Interface's.
func (r *ranking) Push(x any) {
	row, _ := x.(*sortedRow)
	r.rows = append(r.rows, row)
}

// Pop is heap.Interface's.
func (r *ranking) Pop() any {
	last := r.rows[len(r.rows)-1]
	r.rows = r.rows[:len(r.rows)-1]
	return last
}

// add takes a row by its key; values is called only if the row stays for now.
func (r *ranking) add(key []byte, values func() []driver.Value) {
	row := &sortedRow{key: key, seq: r.seq}
	r.seq++
	switch {
	case r.most < 0:
	case r.most == 0:
		return
	case int64(len(r.rows)) == r.most:
		if row.compare(r.rows[0]) > 0 {
			return
		}
		row.key, row.values = bytes.Clone(key), values()
		r.rows[0] = row
		heap.Fix(r, 0)
		return
	}
	row.key, row.values = bytes.Clone(key), values()
	if r.most < 0 {
		r.rows = append(r.rows, row)
	} else {
		heap.Push(r, row)
	}
}

// result is the rows in order, without the first offset ones.
func (r *ranking) result(offset int64) *rowChunk {
	slices.SortFunc(r.rows, (*sortedRow).compare)
	rest := r.rows[min(offset, int64(len(r.rows))):]
	out := make(rowChunk, len(rest))
	for i, row := range rest {
		out[i] = row.values
	}
	return &out
}

// most is how many rows a ranking must keep.
func (q *Query) most() int64 {
	if q.limit < 0 || q.limit > 1<<62-q.offset {
		return -1
	}
	return q.limit + q.offset
}

func (q *Query) sorted(ctx context.Context, batches iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		r := &ranking{most: q.most()}
		var key []byte
		for b, err := range batches {
			if err != nil {
				yield(nil, err)
				return
			}
			e, err := q.evaluate(ctx, b)
			if err != nil {
				yield(nil, err)
				return
			}
			keys := make([]keyFunc, len(q.orders))
			for k, o := range q.orders {
				keys[k] = keysOf(e.arrays[o.source.at], familyOf(q.values[o.source.at].typ()))
			}
			for i := range e.n {
				key = key[:0]
				for k, o := range q.orders {
					null := e.arrays[o.source.at].IsNull(i)
					key = o.appendKey(key, null, func(b []byte) []byte { return keys[k](b, i) })
				}
				r.add(key, func() []driver.Value { return q.rowOf(e, i) })
			}
			e.release()
		}
		yield(r.result(q.offset), nil)
	}
}

func (q *Query) rowOf(e *evaluated, i int) []driver.Value {
	out := make([]driver.Value, len(q.outputs))
	for c, o := range q.outputs {
		out[c] = e.readers[o.source.at].Value(i)
	}
	return out
}

// rowChunk is rows that are already values.
type rowChunk [][]driver.Value

func (c *rowChunk) rows() int                          { return len(*c) }
func (c *rowChunk) value(row, column int) driver.Value { return (*c)[row][column] }
func (c *rowChunk) release()                           {}
