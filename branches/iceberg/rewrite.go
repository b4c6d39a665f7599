package iceberg

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	lib "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// rewrite is a DELETE or an UPDATE bound to a table.
type rewrite struct {
	statement redoStatement
	where     *icesql.Predicate
	fresh     bool // it makes values that were not there
	// changed gives what stands in a file after the statement.
	changed func(ctx context.Context, batch arrow.RecordBatch, mask icesql.Mask) (arrow.RecordBatch, error)
}

func bindDelete(d *icesql.Delete, schema *lib.Schema, args []driver.NamedValue) (*rewrite, error) {
	where, err := icesql.Bind(d.Where, schema, args)
	if err != nil {
		return nil, err
	}
	return newRewrite(d, args, where, false, remaining)
}

// remaining are the rows that a DELETE leaves: those for which its condition is
// false, and those for which it is unknown. The library's own DELETE keeps only the
// former.
func remaining(ctx context.Context, batch arrow.RecordBatch, mask icesql.Mask) (arrow.RecordBatch, error) {
	if guard.Off(guard.Nulls) {
		for i, truth := range mask {
			if truth == icesql.Unknown {
				mask[i] = icesql.True
			}
		}
	}
	return mask.Rest(ctx, batch)
}

func bindUpdate(u *icesql.Update, schema *lib.Schema, args []driver.NamedValue) (*rewrite, error) {
	plan, err := icesql.BindUpdate(u, schema, args)
	if err != nil {
		return nil, err
	}
	return newRewrite(u, args, plan.Predicate(), true, plan.Apply)
}

func newRewrite(text fmt.Stringer, args []driver.NamedValue, where *icesql.Predicate, fresh bool,
	changed func(context.Context, arrow.RecordBatch, icesql.Mask) (arrow.RecordBatch, error),
) (*rewrite, error) {
	encoded, err := icesql.EncodeArgs(args)
	return &rewrite{redoStatement{SQL: text.String(), Args: encoded}, where, fresh, changed}, err
}

// rewrite carries a statement out on what the unit sees: every file that holds a
// row of it is written anew. It is done whole or not at all.
func (w *work) rewrite(ctx context.Context, r *rewrite) (int64, error) {
	if err := w.flush(ctx); err != nil {
		return 0, err
	}
	prune := w.store.prunable(w.tbl, r.where)
	tasks, err := w.rewriteTasks(ctx, prune)
	if err != nil {
		return 0, err
	}
	next := w.now
	next.add, next.remove = nil, slices.Clone(w.now.remove)
	hits := int64(0)
	for _, task := range tasks {
		n, files, err := w.rewriteFile(ctx, r, task)
		if err != nil {
			return 0, err
		}
		if hits += n; n > 0 {
			next.remove = append(next.remove, task.File)
			next.add = append(next.add, stagedAll(files, true)...)
		}
	}
	for _, s := range w.now.add {
		n, files, err := w.rewriteFile(ctx, r, whole(s.file))
		switch {
		case err != nil:
			return 0, err
		case n == 0:
			next.add = append(next.add, s)
		default:
			hits += n
			next.add = append(next.add, stagedAll(files, s.rewritten)...)
		}
	}
	// A statement that met nothing may meet a peer's row when it is done again.
	next.redo = append(slices.Clip(w.now.redo), r.statement)
	next.filter = either(w.now.filter, prune)
	w.now = next
	return hits, nil
}

func stagedAll(files []lib.DataFile, rewritten bool) []staged {
	all := make([]staged, len(files))
	for i, f := range files {
		all[i] = staged{f, rewritten}
	}
	return all
}

func either(a, b lib.BooleanExpression) lib.BooleanExpression {
	if a == nil {
		return b
	}
	return lib.NewOr(a, b)
}

// rewriteFile reads one file and writes what the statement leaves of it. Without a
// row of the statement nothing is written.
func (w *work) rewriteFile(ctx context.Context, r *rewrite, task table.FileScanTask) (hits int64, files []lib.DataFile, err error) {
	_, batches, err := w.tbl.Scan().ReadTasks(ctx, []table.FileScanTask{task})
	if err != nil {
		return 0, nil, err
	}
	var left []arrow.RecordBatch
	for batch, err := range batches {
		if err != nil {
			return 0, nil, err
		}
		mask, err := r.where.Eval(batch)
		if err != nil {
			return 0, nil, err
		}
		hits += int64(mask.Count())
		kept, err := r.changed(ctx, batch, mask)
		batch.Release()
		if err != nil {
			return 0, nil, err
		}
		if kept.NumRows() > 0 {
			left = append(left, kept)
		}
	}
	if hits == 0 || len(left) == 0 {
		return hits, nil, nil
	}
	files, err = w.writer.Write(ctx, left, r.fresh)
	return hits, files, w.refused(err)
}

// whole is the task that reads a file from end to end.
func whole(df lib.DataFile) table.FileScanTask {
	return table.FileScanTask{File: df, Length: df.FileSizeBytes()}
}

// rewriteTasks gives, for every file that the filter cannot rule out and that the
// unit has not replaced, the task with all of its delete files.
//
// A plan that is made with the filter lacks the equality deletes whose bounds the
// filter rules out. To read such a task without the filter brings the rows that
// they removed back to life, and to write them to a new file makes it permanent.
func (w *work) rewriteTasks(ctx context.Context, prune lib.BooleanExpression) ([]table.FileScanTask, error) {
	wanted, err := w.tbl.Scan(table.WithRowFilter(prune)).PlanFiles(ctx)
	if err != nil {
		return nil, err
	}
	all := wanted
	if !guard.Off(guard.Unfiltered) {
		if all, err = w.tbl.Scan().PlanFiles(ctx); err != nil {
			return nil, err
		}
	}
	take := map[string]bool{}
	for _, t := range wanted {
		take[t.File.FilePath()] = true
	}
	for _, df := range w.now.remove {
		delete(take, df.FilePath())
	}
	var tasks []table.FileScanTask
	for _, t := range all {
		path := t.File.FilePath()
		if !take[path] {
			continue
		}
		delete(take, path) // a large file is planned as several splits
		t.Start, t.Length, t.Residual = 0, t.File.FileSizeBytes(), nil
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// redo does a decided change's statements again, on the head that a peer has left.
// Its files have names of their own, since several workers may be at it at once.
func (s *Store) redo(ctx context.Context, tbl *table.Table, c *change.Change) (change.Redone, error) {
	var statements []redoStatement
	if err := json.Unmarshal(c.Redo, &statements); err != nil || len(statements) == 0 {
		return change.Redone{}, change.ErrPayload
	}
	own, err := branches.NewTxnID()
	if err != nil {
		return change.Redone{}, err
	}
	w, err := s.newWork(own, tbl)
	if err != nil {
		return change.Redone{}, err
	}
	for _, statement := range statements {
		if err := w.again(ctx, statement); err != nil {
			return change.Redone{}, errors.Join(err, w.drop(ctx))
		}
	}
	if err := w.clean(ctx); err != nil {
		return change.Redone{}, errors.Join(err, w.drop(ctx))
	}
	done := change.Redone{Remove: w.now.remove}
	for _, s := range w.now.add {
		done.Add = append(done.Add, s.file)
	}
	return done, nil
}

// again binds a statement of a payload to the table as it is now.
func (w *work) again(ctx context.Context, statement redoStatement) error {
	parsed, err := icesql.Parse(statement.SQL)
	if err != nil {
		return err
	}
	args, err := icesql.DecodeArgs(statement.Args)
	if err != nil {
		return err
	}
	r, err := bindRewrite(parsed, w.tbl.Schema(), args)
	if err != nil {
		return err
	}
	_, err = w.rewrite(ctx, r)
	return err
}

func bindRewrite(parsed icesql.Statement, schema *lib.Schema, args []driver.NamedValue) (*rewrite, error) {
	switch s := parsed.(type) {
	case *icesql.Delete:
		return bindDelete(s, schema, args)
	case *icesql.Update:
		return bindUpdate(s, schema, args)
	}
	return nil, change.ErrPayload
}
