package iceberg

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	lib "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
)

// work is what a unit has done to one table. The unit sees the table as it was
// when it first met it, and its own work on top.
type work struct {
	store  *Store
	tbl    *table.Table
	writer change.Writer
	rows   *icevalue.Rows // inserted, and nothing else has happened since
	checks bool           // inserted values have to be checked one statement at a time
	now    progress
}

// progress is what a savepoint remembers. Its slices are never changed in place.
type progress struct {
	pending []arrow.RecordBatch // inserted, in no file yet
	bytes   int64               // of pending, about
	add     []staged
	remove  []lib.DataFile
	filter  lib.BooleanExpression // what DELETE and UPDATE have looked at; nil: nothing
	redo    []redoStatement
}

// staged is a data file of the unit.
type staged struct {
	file      lib.DataFile
	rewritten bool // it holds rows of removed files
}

// redoStatement is a statement as a payload holds it. It is format.
type redoStatement struct {
	SQL  string `json:"sql"`
	Args []byte `json:"args,omitempty"` // of icesql.EncodeArgs
}

func (s *Store) newWork(txn branches.TxnID, tbl *table.Table) (*work, error) {
	schema, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
	if err != nil {
		return nil, err
	}
	rows, err := icevalue.NewRows(memory.DefaultAllocator, tbl.Schema(), schema)
	if err != nil {
		return nil, err
	}
	return &work{
		store: s, tbl: tbl, rows: rows, checks: change.HasTextPartitions(tbl),
		writer: change.Writer{Txn: txn, Table: tbl, Schema: schema, Objects: s.onObjects()},
	}, nil
}

// empty reports whether the unit leaves the table as it is.
func (w *work) empty() bool {
	return w.rows.Len() == 0 && len(w.now.pending) == 0 && len(w.now.add) == 0 && len(w.now.remove) == 0
}

// insert keeps the rows of one statement, all or none.
func (w *work) insert(plan *icesql.InsertPlan, args []driver.NamedValue) (int64, error) {
	before := w.beforeRows()
	n, err := plan.AppendTo(w.rows, args)
	if err == nil {
		err = w.check()
	}
	if err != nil {
		w.rows.Rollback(before)
		return 0, err
	}
	return n, nil
}

// beforeRows is the number of rows to go back to where what follows is refused.
func (w *work) beforeRows() int {
	if w.checks {
		w.seal()
	}
	return w.rows.Len()
}

// check looks at the rows that were appended since beforeRows, where the table's
// partitions cannot hold every value.
func (w *work) check() error {
	if !w.checks {
		return nil
	}
	bytes, batches := w.rows.Bytes(), w.rows.Take()
	for _, b := range batches {
		if err := change.CheckPartitions(w.tbl, b, w.store.onObjects()); err != nil {
			return w.refused(err)
		}
	}
	w.keep(batches, bytes)
	return nil
}

// keep moves rows to where a savepoint can remember them.
func (w *work) keep(batches []arrow.RecordBatch, bytes int64) {
	w.now.pending = append(slices.Clip(w.now.pending), batches...)
	w.now.bytes += bytes
}

// full reports whether there is enough in memory for a file.
func (w *work) full() bool {
	opts := w.store.opts
	return w.rows.Len()+pendingRows(w.now.pending) >= opts.FlushRows || w.rows.Bytes()+w.now.bytes >= opts.FlushBytes
}

func pendingRows(batches []arrow.RecordBatch) int {
	rows := 0
	for _, b := range batches {
		rows += int(b.NumRows())
	}
	return rows
}

// seal keeps the rows so far.
func (w *work) seal() {
	if w.rows.Len() > 0 {
		bytes := w.rows.Bytes()
		w.keep(w.rows.Take(), bytes)
	}
}

// flush writes what is in memory to data files. What it could not write stays in
// memory.
func (w *work) flush(ctx context.Context) error {
	w.seal()
	if len(w.now.pending) == 0 {
		return nil
	}
	files, err := w.write(ctx, w.now.pending)
	if err != nil {
		return err
	}
	add := slices.Clone(w.now.add)
	for _, f := range files {
		add = append(add, staged{file: f})
	}
	w.now.add, w.now.pending, w.now.bytes = add, nil, 0
	return nil
}

// write writes batches to files. They stay the caller's: a savepoint may hold them
// too. (Their memory is the garbage collector's; a count of references that never
// comes to zero keeps nothing.)
func (w *work) write(ctx context.Context, batches []arrow.RecordBatch) ([]lib.DataFile, error) {
	for _, b := range batches {
		b.Retain()
	}
	files, err := w.writer.Write(ctx, batches, true)
	return files, w.refused(err)
}

// refused gives a value that the partitions cannot hold the table's name.
func (w *work) refused(err error) error {
	if p, ok := errors.AsType[*change.PartitionError](err); ok {
		return &ValueError{Table: name(w.tbl.Identifier()), Column: p.Column, Reason: p.Reason}
	}
	return err
}

// mark remembers how far the unit has come.
func (w *work) mark() progress {
	w.seal()
	return w.now
}

// back forgets what came after a mark. Files that were written since go with the
// rest of the unit's unused ones.
func (w *work) back(m progress) {
	w.rows.Rollback(0)
	w.now = m
}

// change is what the unit does to the table. Nothing may be in memory any more.
func (w *work) change() (*change.Change, error) {
	c := change.New(w.tbl)
	c.Writes = w.writer.IDs
	for _, s := range w.now.add {
		file, err := change.Encode(w.tbl, s.file, s.rewritten)
		if err != nil {
			return nil, err
		}
		c.Add = append(c.Add, file)
	}
	for _, df := range w.now.remove {
		c.Remove = append(c.Remove, change.Named(df))
	}
	if len(c.Remove) == 0 {
		return c, nil
	}
	var err error
	if c.Filter, err = json.Marshal(w.now.filter); err != nil {
		return nil, err
	}
	c.Redo, err = json.Marshal(w.now.redo)
	return c, err
}

// clean removes the files that the unit has written and does not use.
func (w *work) clean(ctx context.Context) error {
	used := make([]lib.DataFile, len(w.now.add))
	for i, s := range w.now.add {
		used[i] = s.file
	}
	return w.writer.Clean(ctx, used)
}

// drop removes every file that the unit has written.
func (w *work) drop(ctx context.Context) error {
	w.back(progress{})
	return w.clean(ctx)
}
