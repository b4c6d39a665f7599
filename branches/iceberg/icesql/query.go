package icesql

import (
	"context"
	"database/sql/driver"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

// Query is a SELECT that is bound to a schema and arguments. It can run many times.
type Query struct {
	where   *Predicate
	columns []boundColumn // that the values read
	all     []iceberg.NestedField
	values  []value // every expression that is evaluated for a row
	outputs []output
	orders  []ordering
	groups  []int // of values; with aggregates or GROUP BY only
	aggs    []aggregate
	grouped bool
	limit   int64 // -1: all
	offset  int64
}

// output is a column of the result.
type output struct {
	name     string
	typ      iceberg.Type
	nullable bool
	source   source
}

// source is where an output or a sort key comes from: a value of the row, a key of
// the group, or an aggregate of it.
type source struct {
	kind sourceKind
	at   int
}

type sourceKind uint8

const (
	fromValue sourceKind = iota
	fromGroup
	fromAggregate
)

type ordering struct {
	source source
	sortOrder
}

// Columns are the names of the table's columns that Rows needs in its batches, in
// the table's order; at least one, so that rows can be counted.
func (q *Query) Columns() []string {
	want := map[string]bool{}
	for _, name := range append(q.where.Columns(), topColumns(q.columns)...) {
		want[name] = true
	}
	var out []string
	for _, f := range q.all {
		if want[f.Name] {
			out = append(out, f.Name)
		}
	}
	if len(out) == 0 && len(q.all) > 0 {
		return []string{q.narrowest()}
	}
	return out
}

// narrowest is a column that costs little to read.
func (q *Query) narrowest() string {
	rank := func(f iceberg.NestedField) int {
		switch familyOf(f.Type) {
		case famBool, famInt, famFloat, famDate, famTime, famTimestamp, famTimestamptz:
			return 0
		case famDecimal, famUUID:
			return 1
		case famString, famBytes:
			return 2
		case famNested:
		}
		return 3
	}
	best := q.all[0]
	for _, f := range q.all {
		if rank(f) < rank(best) {
			best = f
		}
	}
	return best.Name
}

// Predicate is the query's WHERE.
func (q *Query) Predicate() *Predicate { return q.where }

// Rows runs the query over the batches of a scan that read Columns, and releases
// each of them. Without ORDER BY and aggregates the rows come as they are read, and
// LIMIT or Close stops the scan; else nothing comes before the last batch. Errors
// of the scan, and an *EvalError, come from Next.
func (q *Query) Rows(ctx context.Context, batches iter.Seq2[arrow.RecordBatch, error]) (driver.Rows, error) {
	chosen := q.chosen(ctx, batches)
	var chunks iter.Seq2[chunk, error]
	switch {
	case q.grouped:
		chunks = q.aggregated(ctx, chosen)
	case len(q.orders) > 0:
		chunks = q.sorted(ctx, chosen)
	default:
		chunks = q.streamed(ctx, chosen)
	}
	return newResult(q.outputs, chunks), nil
}

// chosen are the rows of the batches for which WHERE is true.
func (q *Query) chosen(ctx context.Context, batches iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		if q.limit == 0 && !q.grouped {
			return
		}
		for b, err := range batches {
			if err == nil {
				b, err = q.choose(ctx, b)
			}
			if err == nil && b.NumRows() == 0 {
				b.Release()
				continue
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// choose takes b over.
func (q *Query) choose(ctx context.Context, b arrow.RecordBatch) (arrow.RecordBatch, error) {
	if every, ok := q.where.root.(always); ok && Truth(every) == True {
		return b, nil
	}
	defer b.Release()
	mask, err := q.where.Eval(b)
	if err != nil {
		return nil, err
	}
	narrow := q.project(b)
	defer narrow.Release()
	return mask.Filter(ctx, narrow)
}

// project leaves out the columns that only WHERE reads.
func (q *Query) project(b arrow.RecordBatch) arrow.RecordBatch {
	names := topColumns(q.columns)
	if len(names) >= int(b.NumCols()) {
		b.Retain()
		return b
	}
	var fields []arrow.Field
	var columns []arrow.Array
	for _, name := range names {
		for _, i := range b.Schema().FieldIndices(name) {
			fields = append(fields, b.Schema().Field(i))
			columns = append(columns, b.Column(i))
		}
	}
	if len(fields) == 0 { // the rows are still to be counted
		fields, columns = []arrow.Field{b.Schema().Field(0)}, []arrow.Array{b.Column(0)}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
}

// evaluated are the values of a batch's rows.
type evaluated struct {
	arrays  []arrow.Array
	readers []icevalue.Reader
	n       int
}

// evaluate takes b over.
func (q *Query) evaluate(ctx context.Context, b arrow.RecordBatch) (*evaluated, error) {
	defer b.Release()
	f, err := newFrame(q.columns, b)
	if err != nil {
		return nil, err
	}
	out := &evaluated{n: int(b.NumRows())}
	for _, v := range q.values {
		a, err := v.eval(ctx, f, out.n)
		if err != nil {
			out.release()
			return nil, err
		}
		out.arrays = append(out.arrays, a)
		r, err := icevalue.NewReader(iceberg.NestedField{Name: "column", Type: v.typ()}, a)
		if err != nil {
			out.release()
			return nil, err
		}
		out.readers = append(out.readers, r)
	}
	return out, nil
}

func (e *evaluated) release() {
	for _, a := range e.arrays {
		a.Release()
	}
}

// chunk is a run of result rows.
type chunk interface {
	rows() int
	value(row, column int) driver.Value
	release()
}

// streamed hands the rows on as they come, without the first offset ones and no
// more than limit.
func (q *Query) streamed(ctx context.Context, batches iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		skip, left := q.offset, q.limit
		for b, err := range batches {
			if err != nil {
				yield(nil, err)
				return
			}
			b, skip, left = cutBatch(b, skip, left)
			if b.NumRows() == 0 {
				b.Release()
				continue
			}
			e, err := q.evaluate(ctx, b)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&streamChunk{e, q.outputs}, nil) || left == 0 {
				return
			}
		}
	}
}

// cutBatch takes b over, and gives the part of it that OFFSET and LIMIT leave.
func cutBatch(b arrow.RecordBatch, skip, left int64) (out arrow.RecordBatch, skipNext, leftNext int64) {
	from := min(skip, b.NumRows())
	to := b.NumRows()
	if left >= 0 {
		to = min(to, from+left)
		left -= to - from
	}
	if from == 0 && to == b.NumRows() {
		return b, 0, left
	}
	defer b.Release()
	return b.NewSlice(from, to), skip - from, left
}

type streamChunk struct {
	*evaluated
	outputs []output
}

func (c *streamChunk) rows() int { return c.n }

func (c *streamChunk) value(row, column int) driver.Value {
	return c.readers[c.outputs[column].source.at].Value(row)
}
