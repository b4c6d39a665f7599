package icevalue

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// Rows gathers rows of one table for its data files. A row goes in as a whole or
// not at all. It is not safe for use by several goroutines.
type Rows struct {
	schema  *iceberg.Schema
	arrow   *arrow.Schema
	b       *array.RecordBuilder
	columns []Appender
	done    []arrow.RecordBatch // rows before those in b
	settled int                 // rows in done
	open    int                 // rows in b
	bytes   int64
}

// NewRows makes an empty Rows for sc; as is table.SchemaToArrowSchema of it.
func NewRows(mem memory.Allocator, sc *iceberg.Schema, as *arrow.Schema) (*Rows, error) {
	fields := sc.Fields()
	if len(fields) != as.NumFields() {
		return nil, fmt.Errorf("rhizodat: write rows: the Arrow schema has %d columns and the table %d", as.NumFields(), len(fields))
	}
	r := &Rows{schema: sc, arrow: as, b: array.NewRecordBuilder(mem, as), columns: make([]Appender, len(fields))}
	for i, f := range fields {
		var err error
		if r.columns[i], err = NewAppender(f, r.b.Field(i)); err != nil {
			r.b.Release()
			return nil, err
		}
	}
	return r, nil
}

// Schema is the table's schema that the rows are for.
func (r *Rows) Schema() *iceberg.Schema { return r.schema }

// Append adds one row, a value for every column in the schema's order. On an error
// none of it stays.
func (r *Rows) Append(row []any) error {
	if len(row) != len(r.columns) {
		return fmt.Errorf("rhizodat: write rows: %d values for %d columns", len(row), len(r.columns))
	}
	for i, v := range row {
		if err := r.columns[i].Append(v); err != nil {
			if i > 0 {
				r.cut(r.open)
			}
			return err
		}
	}
	r.open++
	for _, v := range row {
		r.bytes += size(v)
	}
	return nil
}

// size is a guess of a value's bytes in memory, for the decision to flush.
func size(v any) int64 {
	switch x := v.(type) {
	case nil:
		return 1
	case string:
		return int64(len(x)) + 4
	case []byte:
		return int64(len(x)) + 4
	case map[string]any:
		n := int64(8)
		for _, e := range x {
			n += size(e)
		}
		return n
	case []any:
		n := int64(8)
		for _, e := range x {
			n += size(e)
		}
		return n
	}
	return 8
}

// Len is the number of rows.
func (r *Rows) Len() int { return r.settled + r.open }

// Bytes is about how much memory the rows take. A Rollback does not lower it.
func (r *Rows) Bytes() int64 { return r.bytes }

// Rollback forgets all rows after the first n.
func (r *Rows) Rollback(n int) {
	if n >= r.Len() {
		return
	}
	if n >= r.settled {
		r.cut(n - r.settled)
		return
	}
	r.cut(0)
	for r.settled > n {
		last := len(r.done) - 1
		batch := r.done[last]
		r.done = r.done[:last]
		r.settled -= int(batch.NumRows())
		if r.settled < n {
			r.keep(batch.NewSlice(0, int64(n-r.settled)))
		}
		batch.Release()
	}
}

// cut closes the open batch after its first n rows. A builder cannot take back a
// row, so the columns are filled to one length and the batch is sliced: the cost
// falls on the statement that failed.
func (r *Rows) cut(n int) {
	longest := 0
	for i := range r.columns {
		longest = max(longest, r.b.Field(i).Len())
	}
	for i := range r.columns {
		f := r.b.Field(i)
		f.AppendEmptyValues(longest - f.Len())
	}
	batch := r.b.NewRecordBatch()
	defer batch.Release()
	r.open = 0
	if n > 0 {
		r.keep(batch.NewSlice(0, int64(n)))
	}
}

func (r *Rows) keep(batch arrow.RecordBatch) {
	r.done = append(r.done, batch)
	r.settled += int(batch.NumRows())
}

// Take hands over all rows, in order; the caller releases the batches. Afterwards
// Rows is empty and can be used again.
func (r *Rows) Take() []arrow.RecordBatch {
	if r.open > 0 {
		r.keep(r.b.NewRecordBatch())
	}
	out := r.done
	r.done, r.settled, r.open, r.bytes = nil, 0, 0, 0
	return out
}

// Snapshot is the rows so far as batches that the caller releases; they also stay
// in Rows, for a reader of the unit's own writes.
func (r *Rows) Snapshot() []arrow.RecordBatch {
	if r.open > 0 {
		r.keep(r.b.NewRecordBatch())
		r.open = 0
	}
	out := make([]arrow.RecordBatch, len(r.done))
	for i, batch := range r.done {
		batch.Retain()
		out[i] = batch
	}
	return out
}

// Release frees what was not taken.
func (r *Rows) Release() {
	for _, batch := range r.done {
		batch.Release()
	}
	r.done, r.settled, r.open = nil, 0, 0
	r.b.Release()
}
