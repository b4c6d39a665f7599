package change

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Writer writes one unit's data files into one table. Nothing of them can be seen
// before a snapshot names them.
type Writer struct {
	Txn     branches.TxnID
	Table   *table.Table
	Schema  *arrow.Schema // of the batches
	Objects bool          // the warehouse is an object store

	// What was tried, whether it succeeded or not.
	IDs    []string // in the names of the files
	Paths  []string // of whole files
	Failed bool     // a write has failed: parts of files may stand
}

// Write writes rows and returns their files. It releases the batches. With fresh
// rows a value that the table's partitions cannot hold is a *PartitionError, before
// anything is written; rows that are only moved have been there before.
func (w *Writer) Write(ctx context.Context, batches []arrow.RecordBatch, fresh bool) ([]iceberg.DataFile, error) {
	defer release(batches)
	// The names of a unit's files follow from its id: a unit that comes twice would
	// overwrite the files of the first, which a snapshot may name.
	switch tagged(w.Table.Metadata(), w.Txn) {
	case Done:
		return nil, ErrApplied
	case Never:
		return nil, ErrNever
	case Pending, Vanished:
	}
	if fresh {
		for _, b := range batches {
			if err := CheckPartitions(w.Table, b, w.Objects); err != nil {
				return nil, err
			}
		}
	}
	groups, err := apart(ctx, w.Table, batches)
	if err != nil {
		return nil, err
	}
	var files []iceberg.DataFile
	for i, group := range groups {
		written, err := w.write(ctx, group)
		if err != nil {
			for _, rest := range groups[i+1:] {
				release(rest)
			}
			return nil, err
		}
		files = append(files, written...)
	}
	return files, nil
}

// write is one WriteRecords, with an id of its own.
func (w *Writer) write(ctx context.Context, batches []arrow.RecordBatch) ([]iceberg.DataFile, error) {
	id := WriteUUID(w.Txn, w.Table.Identifier(), len(w.IDs))
	w.IDs = append(w.IDs, id.String()) // before the write: one that fails leaves parts
	var files []iceberg.DataFile
	for df, err := range table.WriteRecords(ctx, w.Table, w.Schema, each(batches), table.WithWriteUUID(id)) {
		if err != nil {
			w.Failed = true
			return nil, err
		}
		w.Paths = append(w.Paths, df.FilePath())
		files = append(files, df)
	}
	return files, nil
}

func each(batches []arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
	}
}

func release(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// Unused names the whole files that were written and are not among these.
func (w *Writer) Unused(used []iceberg.DataFile) []string {
	keep := map[string]bool{}
	for _, df := range used {
		keep[df.FilePath()] = true
	}
	var names []string
	for _, name := range w.Paths {
		if !keep[name] {
			names = append(names, name)
		}
	}
	return names
}

// Clean removes what was written and is not among these. Nothing that a snapshot
// may name must be left out of used.
func (w *Writer) Clean(ctx context.Context, used []iceberg.DataFile) error {
	if err := Remove(ctx, w.Table, w.Unused(used)); err != nil || !w.Failed {
		return err
	}
	// The ids of writes that gave whole files are of use to nobody here.
	keep := map[string]bool{}
	for _, df := range used {
		keep[df.FilePath()] = true
	}
	return sweepBut(ctx, w.Table, w.IDs, keep)
}
