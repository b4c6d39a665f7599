package iceberg

import (
	"context"
	"slices"

	lib "github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
)

// CopyFrom stages rows; it needs an open branch. A row that is refused takes back
// all rows of the call.
func (s *Session) CopyFrom(ctx context.Context, table string, columns []string, next func() ([]any, error)) (int64, error) {
	switch {
	case s.branch == nil:
		return 0, &branches.StatementError{Store: s.store.name, Reason: "rows are appended without a transaction", Way: "begin one with db.BeginTx"}
	case s.branch.readOnly:
		return 0, branches.ErrReadOnlyUnit
	}
	if err := s.branch.Doomed(); err != nil {
		return 0, err
	}
	n, err := s.branch.copyFrom(ctx, table, columns, next)
	return n, s.store.fail("copy rows", err)
}

func (b *Branch) copyFrom(ctx context.Context, text string, columns []string, next func() ([]any, error)) (int64, error) {
	parsed, err := icesql.Parse("DESCRIBE " + text)
	if err != nil {
		return 0, err
	}
	described, ok := parsed.(*icesql.Describe)
	if !ok {
		return 0, &branches.StatementError{Store: b.store.name, Reason: "rows are copied into a table by its name alone"}
	}
	w, err := b.work(ctx, b.store.ident(described.Table.Namespace, described.Table.Table))
	if err != nil {
		return 0, err
	}
	at, err := b.positions(w.tbl.Schema(), columns)
	if err != nil {
		return 0, err
	}
	mark := w.mark()
	n, err := w.copyFrom(ctx, at, next)
	if err != nil {
		w.back(mark)
		return 0, err
	}
	return n, nil
}

// positions are the places of columns in a table's schema.
func (b *Branch) positions(schema *lib.Schema, columns []string) ([]int, error) {
	fields := schema.Fields()
	if len(columns) == 0 {
		for _, f := range fields {
			columns = append(columns, f.Name)
		}
	}
	at := make([]int, len(columns))
	for i, column := range columns {
		at[i] = slices.IndexFunc(fields, func(f lib.NestedField) bool { return f.Name == column })
		switch {
		case at[i] < 0:
			return nil, &branches.StatementError{Store: b.store.name, Reason: "the table has no column " + column}
		case slices.Contains(at[:i], at[i]):
			return nil, &branches.StatementError{Store: b.store.name, Reason: "column " + column + " is named twice"}
		}
	}
	return at, nil
}

func (w *work) copyFrom(ctx context.Context, at []int, next func() ([]any, error)) (int64, error) {
	width := len(w.tbl.Schema().Fields())
	n := int64(0)
	for ; ; n++ {
		values, err := next()
		if err != nil || values == nil {
			if err == nil {
				err = w.check()
			}
			return n, err
		}
		if len(values) != len(at) {
			return 0, &branches.StatementError{Store: w.store.name, Reason: "a row has another number of values than there are columns"}
		}
		row := make([]any, width)
		for i, v := range values {
			row[at[i]] = v
		}
		if err := w.rows.Append(row); err != nil {
			return 0, err
		}
		if w.full() {
			if err := w.check(); err != nil {
				return 0, err
			}
			if err := w.flush(ctx); err != nil {
				return 0, err
			}
		}
	}
}
