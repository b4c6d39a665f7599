package iceberg

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	lib "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
)

// prunable is the part of a condition that may choose files, and always true where
// the library would choose wrongly.
//
// It leaves the bound of an empty string out of a manifest's summary, so that in a
// table that is partitioned by a string it skips files that hold one; and uuids are
// ordered otherwise by Java, which writes their bounds so.
func (s *Store) prunable(tbl *table.Table, where *icesql.Predicate) lib.BooleanExpression {
	schema := tbl.Schema()
	for _, spec := range tbl.Metadata().PartitionSpecs() {
		for _, f := range spec.Fields() {
			for _, id := range f.SourceIDs {
				source, ok := schema.FindFieldByID(id)
				if !ok {
					return lib.AlwaysTrue{}
				}
				switch source.Type.(type) {
				case lib.UUIDType:
					return lib.AlwaysTrue{}
				case lib.StringType:
					switch f.Transform.(type) {
					case lib.IdentityTransform, lib.TruncateTransform:
						return lib.AlwaysTrue{}
					}
				}
			}
		}
	}
	return where.Prune()
}

// selects runs a SELECT. w is the unit's own work on the table, or nil.
func (s *Store) selects(ctx context.Context, sel *icesql.Select, tbl *table.Table, w *work, args []driver.NamedValue) (driver.Rows, error) {
	schema, at, err := travel(sel, tbl, args)
	if err != nil {
		return nil, err
	}
	query, err := icesql.BindSelect(sel, schema, args)
	if err != nil {
		return nil, err
	}
	// The filter chooses files and nothing else: a filtered read of the library
	// drops a row group where exactly half of the values are NULL.
	options := append(at, table.WithSelectedFields(query.Columns()...))
	plan := options
	if schema == tbl.Schema() {
		plan = append(slices.Clip(options), table.WithRowFilter(s.prunable(tbl, query.Predicate())))
	}
	tasks, err := tbl.Scan(plan...).PlanFiles(ctx)
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		tasks[i].Residual = nil
	}
	var own []arrow.RecordBatch
	if w != nil && sel.AsOf == nil {
		tasks, own = w.overlay(tasks)
	}
	return query.Rows(ctx, batches(ctx, tbl.Scan(options...), tasks, own))
}

// overlay puts the unit's own work over what a plan of the table has found.
func (w *work) overlay(tasks []table.FileScanTask) ([]table.FileScanTask, []arrow.RecordBatch) {
	w.seal()
	gone := map[string]bool{}
	for _, df := range w.now.remove {
		gone[df.FilePath()] = true
	}
	tasks = slices.DeleteFunc(tasks, func(t table.FileScanTask) bool { return gone[t.File.FilePath()] })
	for _, s := range w.now.add {
		tasks = append(tasks, whole(s.file))
	}
	return tasks, w.now.pending
}

// batches reads tasks, and gives the unit's own rows after them. The plan of the
// library is read lazily, so that a LIMIT reads no more than it needs.
func batches(ctx context.Context, scan *table.Scan, tasks []table.FileScanTask, own []arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		if len(tasks) > 0 {
			_, found, err := scan.ReadTasks(ctx, tasks)
			if err != nil {
				yield(nil, err)
				return
			}
			for batch, err := range found {
				if !yield(batch, err) || err != nil {
					return
				}
			}
		}
		for _, batch := range own {
			batch.Retain() // the reader releases what it is handed
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// travel is the schema to read with, and the options that choose an earlier
// snapshot where the statement asks for one.
func travel(sel *icesql.Select, tbl *table.Table, args []driver.NamedValue) (*lib.Schema, []table.ScanOption, error) {
	if sel.AsOf == nil {
		return tbl.Schema(), nil, nil
	}
	to, err := sel.AsOf.Resolve(args)
	if err != nil {
		return nil, nil, err
	}
	var snapshot *table.Snapshot
	switch {
	case to.Ref != "":
		snapshot = tbl.SnapshotByName(to.Ref)
	case !to.At.IsZero():
		snapshot = tbl.SnapshotAsOf(to.At.UnixMilli(), true)
	default:
		snapshot = tbl.SnapshotByID(to.SnapshotID)
	}
	if snapshot == nil {
		return nil, nil, fmt.Errorf("table %s has no such snapshot, or it has expired", name(tbl.Identifier()))
	}
	schema := tbl.Schema()
	if snapshot.SchemaID != nil && *snapshot.SchemaID != schema.ID {
		old, ok := tbl.Schemas()[*snapshot.SchemaID]
		if !ok {
			return nil, nil, fmt.Errorf("the schema of snapshot %d is gone", snapshot.SnapshotID)
		}
		schema = old
	}
	return schema, []table.ScanOption{table.WithSnapshotID(snapshot.SnapshotID)}, nil
}

// texts are rows of text that are all there: the answers of SHOW and DESCRIBE.
type texts struct {
	columns []string
	rows    [][]string
}

func (t *texts) Columns() []string { return t.columns }

func (t *texts) Close() error { return nil }

func (t *texts) Next(to []driver.Value) error {
	if len(t.rows) == 0 {
		return io.EOF
	}
	for i, text := range t.rows[0] {
		to[i] = text
	}
	t.rows = t.rows[1:]
	return nil
}

func (t *texts) sort() { slices.SortFunc(t.rows, slices.Compare) }

// sorted are properties as rows, in the order of their names.
func sorted(props map[string]string) [][]string {
	rows := make([][]string, 0, len(props))
	for _, key := range slices.Sorted(maps.Keys(props)) {
		rows = append(rows, []string{key, props[key]})
	}
	return rows
}
