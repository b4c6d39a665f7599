package iceberg

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
)

// Branch is what one unit has read and written, until its end.
type Branch struct {
	store    *Store
	session  *Session // nil: a statement of its own
	txn      branches.TxnID
	readOnly bool
	tables   map[string]*table.Table // as the unit sees them, by name
	works    map[string]*work        // those it has written to
	marks    map[string]savedMark
	doom     error

	staged  bool
	unit    branches.Unit
	changes []*change.Change // sealed by Stage
}

// savedMark is a savepoint: how far every table had come, and whether the branch
// was doomed already.
type savedMark struct {
	works map[string]progress
	doom  error
}

var (
	_ branches.Branch      = (*Branch)(nil)
	_ branches.Savepointer = (*Branch)(nil)
)

func (s *Store) newBranch(txn branches.TxnID) *Branch {
	return &Branch{store: s, txn: txn, tables: map[string]*table.Table{}, works: map[string]*work{}, marks: map[string]savedMark{}}
}

// name is a table's name in messages.
func name(ident table.Identifier) string { return strings.Join(ident, ".") }

// view is a table as the unit sees it, with the unit's own work, if any.
func (b *Branch) view(ctx context.Context, ident table.Identifier) (*table.Table, *work, error) {
	key := strings.Join(ident, "\x00")
	tbl, ok := b.tables[key]
	if !ok {
		var err error
		if tbl, err = b.store.catalog.Load(ctx, ident); err != nil {
			return nil, nil, err
		}
		b.tables[key] = tbl
	}
	return tbl, b.works[key], nil
}

// work is the unit's work on a table that it is about to write to.
func (b *Branch) work(ctx context.Context, ident table.Identifier) (*work, error) {
	if !b.store.own(ident) {
		return nil, &branches.StatementError{
			Store: b.store.name, Reason: "table " + name(ident) + " is not in the store's namespace " + name(b.store.to.namespace),
			Way: "add another store with " + keyNamespace + "=" + name(ident[:len(ident)-1]),
		}
	}
	tbl, w, err := b.view(ctx, ident)
	if err != nil || w != nil {
		return w, err
	}
	if w, err = b.store.newWork(b.txn, tbl); err != nil {
		return nil, err
	}
	b.works[strings.Join(ident, "\x00")] = w
	return w, nil
}

// write stages what an INSERT, DELETE or UPDATE does. One that is refused, or fails,
// has changed nothing.
func (b *Branch) write(ctx context.Context, parsed icesql.Statement, args []driver.NamedValue) (int64, error) {
	if err := b.Doomed(); err != nil {
		return 0, err
	}
	var n int64
	var err error
	switch q := parsed.(type) {
	case *icesql.Insert:
		n, err = b.insert(ctx, q, args)
	case *icesql.Delete:
		n, err = b.rewrite(ctx, q.Table, q, args)
	case *icesql.Update:
		n, err = b.rewrite(ctx, q.Table, q, args)
	}
	return n, b.store.fail("write rows", err)
}

func (b *Branch) insert(ctx context.Context, q *icesql.Insert, args []driver.NamedValue) (int64, error) {
	w, err := b.work(ctx, b.store.ident(q.Table.Namespace, q.Table.Table))
	if err != nil {
		return 0, err
	}
	plan, err := icesql.BindInsert(q, w.tbl.Schema())
	if err != nil {
		return 0, err
	}
	n, err := w.insert(plan, args)
	if err == nil && w.full() {
		// The rows are kept, whatever becomes of the file: nobody may take the error
		// for a statement that has left nothing.
		if err = w.flush(ctx); err != nil {
			return 0, b.dooms(err)
		}
	}
	return n, err
}

func (b *Branch) rewrite(ctx context.Context, of icesql.Name, q icesql.Statement, args []driver.NamedValue) (int64, error) {
	w, err := b.work(ctx, b.store.ident(of.Namespace, of.Table))
	if err != nil {
		return 0, err
	}
	if v := w.tbl.Metadata().Version(); v >= 3 {
		return 0, &branches.StatementError{
			Store: b.store.name, Reason: "DELETE and UPDATE of table " + name(w.tbl.Identifier()) +
				": it has format version 3, whose rows have ids that iceberg-go cannot carry into a rewritten file",
			Way: "use a table of format version 2",
		}
	}
	r, err := bindRewrite(q, w.tbl.Schema(), args)
	if err != nil {
		return 0, err
	}
	return w.rewrite(ctx, r)
}

// Doomed returns why the branch cannot commit. A refused statement is no reason:
// it has left nothing behind.
func (b *Branch) Doomed() error {
	if b.doom != nil {
		return b.store.fail("use branch", b.doom)
	}
	return nil
}

// dooms keeps the first error that left the branch incomplete.
func (b *Branch) dooms(err error) error {
	if b.doom == nil {
		b.doom = err
	}
	return err
}

// Savepoint remembers how far the unit has come.
func (b *Branch) Savepoint(_ context.Context, name string) error {
	saved := savedMark{works: make(map[string]progress, len(b.works)), doom: b.doom}
	for key, w := range b.works {
		saved.works[key] = w.mark()
	}
	b.marks[name] = saved
	return nil
}

// RollbackTo drops what came after the savepoint, and the doom with it.
func (b *Branch) RollbackTo(_ context.Context, name string) error {
	saved, ok := b.marks[name]
	if !ok {
		return b.store.fail("roll back to savepoint", errNoMark)
	}
	b.doom = saved.doom
	for key, w := range b.works {
		w.back(saved.works[key])
	}
	return nil
}

// Release forgets a savepoint.
func (b *Branch) Release(_ context.Context, name string) error {
	if _, ok := b.marks[name]; !ok {
		return b.store.fail("release savepoint", errNoMark)
	}
	delete(b.marks, name)
	return nil
}

// Prepare does nothing: what a branch has staged depends on no session.
func (b *Branch) Prepare(context.Context, branches.GID) error { return b.Doomed() }

// Rollback removes the files that the branch has written.
func (b *Branch) Rollback(ctx context.Context) error {
	defer b.leave()
	return b.store.fail("roll back branch", b.drop(ctx))
}

// drop removes every file of the branch. No snapshot can name them.
func (b *Branch) drop(ctx context.Context) error {
	var first error
	for _, w := range b.ordered() {
		if err := w.drop(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Finish is S9.
func (b *Branch) Finish(ctx context.Context, ref branches.Ref) error {
	b.leave()
	return b.store.Finish(ctx, ref)
}

// leave gives the session back and the rows up.
func (b *Branch) leave() {
	if b.session != nil && b.session.branch == b {
		b.session.branch = nil
	}
	b.works, b.tables, b.marks = nil, nil, nil
}

// ordered are the tables that were written to, in the order of their names: the
// one in which every unit commits (settle.go).
func (b *Branch) ordered() []*work {
	all := make([]*work, 0, len(b.works))
	for _, w := range b.works {
		all = append(all, w)
	}
	slices.SortFunc(all, func(x, y *work) int {
		return slices.Compare(x.tbl.Identifier(), y.tbl.Identifier())
	})
	return all
}
