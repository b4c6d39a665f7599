package clickhouse

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

// named is the table of an INSERT; without a database it is in the DSN's.
func (s *Store) named(in *chsql.InsertInto) tableName {
	if in.Database == "" {
		return tableName{s.database, in.Table}
	}
	return tableName{in.Database, in.Table}
}

// insert keeps the rows of an INSERT for the commit. Outside of a branch it is a
// unit of its own; what cannot be kept goes to the server as it is. parsed may
// be nil.
func (s *Session) insert(ctx context.Context, query string, parsed *chsql.InsertInto, args []driver.NamedValue) (driver.Result, error) {
	if parsed == nil {
		var err error
		if parsed, err = chsql.ParseInsert(query); err != nil {
			if s.branch == nil {
				return driver.ResultNoRows, s.pass(ctx, query, args)
			}
			return nil, &branches.StatementError{Store: s.store.name, Reason: err.Error()}
		}
	}
	if s.branch == nil {
		return s.alone(ctx, parsed, args)
	}
	n, err := s.branch.insert(ctx, parsed, args)
	return driver.RowsAffected(n), err
}

// insert keeps the rows of a statement. What it knows of the table may be old:
// before a value or a column is refused the table is looked at again.
func (b *Branch) insert(ctx context.Context, in *chsql.InsertInto, args []driver.NamedValue) (int64, error) {
	if b.doom != nil {
		return 0, b.doom
	}
	name := b.session.store.named(in)
	n, err := b.insertInto(ctx, name, in, args)
	if changed, refused := b.outdated(ctx, name, err); changed {
		if refused != nil {
			return 0, refused
		}
		return b.insertInto(ctx, name, in, args)
	}
	return n, err
}

// insertInto checks every row before it keeps one, so that a refused statement
// leaves nothing behind.
func (b *Branch) insertInto(ctx context.Context, name tableName, in *chsql.InsertInto, args []driver.NamedValue) (int64, error) {
	found, err := b.session.store.table(ctx, name)
	if err != nil {
		return 0, err
	}
	list, err := b.buffer.list(found, in.Columns)
	if err != nil {
		return 0, err
	}
	rows, err := list.read(ctx, in, args)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		if err := list.check(row, row); err != nil {
			return 0, err
		}
	}
	for _, row := range rows {
		if err := list.add(&b.buffer, row); err != nil {
			return 0, b.dooms(err)
		}
	}
	return int64(len(rows)), nil
}

// outdated reports whether err may come of a table that has changed since it was
// looked at. refused is the error of a unit that has rows of it already.
func (b *Branch) outdated(ctx context.Context, name tableName, err error) (changed bool, refused error) {
	if !errors.As(err, new(*ValueError)) && !errors.As(err, new(*branches.StatementError)) {
		return false, nil
	}
	s := b.session.store
	before, lookErr := s.table(ctx, name)
	if lookErr != nil {
		return false, nil //nolint:nilerr // err stands as it is
	}
	now, lookErr := s.describe(ctx, []tableName{name})
	if lookErr != nil || before.same(now[name]) {
		return false, nil //nolint:nilerr // err stands as it is
	}
	if b.buffer.drop(name) {
		return true, nil
	}
	return true, s.busy("insert rows", "table "+name.String()+" was changed while the unit ran", err)
}

// append keeps the rows of a bulk call. It takes them one by one, so what was
// kept before a refused one is dropped again.
func (b *Branch) append(ctx context.Context, name tableName, columns []string, next func() ([]any, error)) (int64, error) {
	if b.doom != nil {
		return 0, b.doom
	}
	found, err := b.session.store.table(ctx, name)
	if err != nil {
		return 0, err
	}
	list, err := b.buffer.list(found, columns)
	if err == nil {
		var n int64
		if n, err = b.bulk(ctx, list, next); err == nil {
			return n, nil
		}
	}
	if changed, refused := b.outdated(ctx, name, err); changed {
		if refused == nil { // rows that were taken cannot be asked for again
			refused = b.session.store.busy("append rows", "table "+name.String()+" has changed: run the unit again", err)
		}
		return 0, refused
	}
	return 0, err
}

func (b *Branch) bulk(ctx context.Context, list *rowList, next func() ([]any, error)) (int64, error) {
	before, err := b.buffer.mark()
	if err != nil {
		return 0, b.dooms(err)
	}
	n, err := b.take(ctx, list, next)
	if err == nil {
		return n, nil
	}
	if failed := b.buffer.back(before); failed != nil {
		return 0, b.dooms(failed)
	}
	return 0, err
}

func (b *Branch) take(ctx context.Context, list *rowList, next func() ([]any, error)) (int64, error) {
	checked := make([]any, len(list.columns))
	for n := int64(0); ; n++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		row, err := next()
		if err != nil || row == nil {
			return n, err
		}
		if err := list.check(row, checked); err != nil {
			return 0, err
		}
		if err := list.add(&b.buffer, checked); err != nil {
			return 0, err
		}
	}
}

// read gives the rows of an INSERT as values.
func (l *rowList) read(ctx context.Context, in *chsql.InsertInto, args []driver.NamedValue) ([][]any, error) {
	if in.Rows == nil { // each execution is one row
		row := make([]any, len(args))
		for i, arg := range args {
			row[i] = arg.Value
		}
		return [][]any{row}, nil
	}
	a, err := newArguments(l.store.name, in, args)
	if err != nil {
		return nil, err
	}
	rows := make([][]any, len(in.Rows))
	for i, cells := range in.Rows {
		if len(cells) != len(l.columns) {
			return nil, &branches.StatementError{Store: l.store.name, Reason: fmt.Sprintf(
				"insert into %s: row %d has %d values for %d columns", l.table.name, i+1, len(cells), len(l.columns))}
		}
		if rows[i], err = l.values(ctx, cells, a); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// values evaluates the cells of a row: arguments and plain literals here, what
// is left by the server, in one request.
func (l *rowList) values(ctx context.Context, cells []chsql.Cell, a *arguments) ([]any, error) {
	row := make([]any, len(cells))
	var left []int
	for i, cell := range cells {
		value, ok, err := a.value(cell, l.columns[i].typ)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			left = append(left, i)
		default:
			row[i] = value
		}
	}
	if len(left) == 0 {
		return row, nil
	}
	return row, l.evaluate(ctx, cells, left, a, row)
}

// evaluate lets the server tell the values of expressions, as the types of their
// columns.
func (l *rowList) evaluate(ctx context.Context, cells []chsql.Cell, which []int, a *arguments, row []any) error {
	var parts []string
	var args []any
	for _, i := range which {
		if strings.HasPrefix(cells[i].Text, "{") {
			return &branches.StatementError{Store: l.store.name, Reason: "a Map is written " + cells[i].Text, Way: "write map('key', value), or give it as an argument"}
		}
		parts = append(parts, "CAST(("+cells[i].Text+"),"+chsql.Text(l.columns[i].typ)+")")
		args = append(args, a.of(cells[i])...)
	}
	if a.byName {
		args = clientArgs(a.args)
	}
	found, err := l.store.work.Query(ctx, "SELECT "+strings.Join(parts, ","), args...)
	if err != nil {
		return err
	}
	values := make([]driver.Value, len(which))
	rows := newRows(found)
	err = rows.next(values)
	if closeErr := rows.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("evaluate values: %w", err)
	}
	for n, i := range which {
		row[i] = values[n]
	}
	return nil
}

// arguments of one execution.
type arguments struct {
	store  string
	args   []driver.NamedValue
	byName bool // or by number: expressions get all of them
}

func newArguments(store string, in *chsql.InsertInto, args []driver.NamedValue) (*arguments, error) {
	a := &arguments{store: store, args: args}
	wanted := 0
	for _, row := range in.Rows {
		for _, cell := range row {
			switch cell.Kind { //nolint:exhaustive // literals take no argument
			case chsql.Positional:
				wanted++
			case chsql.Named, chsql.Numbered:
				a.byName = true
			case chsql.Expression:
				wanted += cell.Params
				a.byName = a.byName || cell.Params == 0 && strings.ContainsAny(cell.Text, "@${")
			}
		}
	}
	if wanted > 0 && a.byName {
		return nil, &branches.StatementError{Store: store, Reason: "placeholders of two kinds in one statement", Way: "use ?, or $1, or @name throughout"}
	}
	if !a.byName && wanted != len(args) {
		return nil, &branches.StatementError{Store: store, Reason: fmt.Sprintf("%d arguments for %d placeholders", len(args), wanted)}
	}
	return a, nil
}

// of are the arguments of an expression.
func (a *arguments) of(cell chsql.Cell) []any {
	if a.byName || cell.Params == 0 {
		return nil
	}
	return clientArgs(a.args[cell.Index : cell.Index+cell.Params])
}

// value gives the value of a cell; ok is false where only the server knows it.
func (a *arguments) value(cell chsql.Cell, typ string) (value any, ok bool, err error) {
	switch cell.Kind {
	case chsql.Positional, chsql.Numbered:
		if cell.Index >= len(a.args) {
			return nil, false, &branches.StatementError{Store: a.store, Reason: "there is no argument for " + cell.Text}
		}
		return a.args[cell.Index].Value, true, nil
	case chsql.Named:
		for _, arg := range a.args {
			if arg.Name == cell.Value {
				return arg.Value, true, nil
			}
		}
		return nil, false, &branches.StatementError{Store: a.store, Reason: "there is no argument named " + cell.Value, Way: "give it with sql.Named"}
	case chsql.Null:
		return nil, true, nil
	case chsql.Bool:
		return cell.Value == "true", typ == "Bool", nil
	case chsql.String:
		return cell.Value, holdsText(typ), nil
	case chsql.Number:
		n, err := strconv.ParseInt(cell.Value, 10, 64)
		return n, err == nil && (strings.HasPrefix(typ, "Int") || strings.HasPrefix(typ, "UInt")), nil
	case chsql.Expression:
	}
	return nil, false, nil
}

// holdsText: a string literal is the value. In other columns it is a text that
// the server reads in its own way.
func holdsText(typ string) bool {
	for _, outer := range []string{"LowCardinality(", "Nullable("} {
		if inner, ok := strings.CutPrefix(typ, outer); ok {
			typ = strings.TrimSuffix(inner, ")")
		}
	}
	return typ == "String" || strings.HasPrefix(typ, "FixedString(") || strings.HasPrefix(typ, "Enum") || strings.HasPrefix(typ, "JSON")
}
