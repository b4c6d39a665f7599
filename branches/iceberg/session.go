package iceberg

import (
	"context"
	"database/sql/driver"
	"io"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
)

// Session is one driver connection's share of the store's catalog. It holds
// nothing between two statements but the branch that is open.
type Session struct {
	store  *Store
	branch *Branch // open; nil between units
	closed bool
}

var (
	_ branches.Session = (*Session)(nil)
	_ branches.Pinger  = (*Session)(nil)
	_ branches.Copier  = (*Session)(nil)
	_ branches.Raw     = (*Session)(nil)
)

// Exec runs a statement. Inside of a branch what it writes is staged; outside of
// one it is a unit of its own.
func (s *Session) Exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	parsed, err := icesql.Parse(query)
	if err != nil {
		return nil, err
	}
	return s.exec(ctx, parsed, args)
}

func (s *Session) exec(ctx context.Context, parsed icesql.Statement, args []driver.NamedValue) (driver.Result, error) {
	if err := s.admit(parsed); err != nil {
		return nil, err
	}
	switch {
	case icesql.IsDDL(parsed):
		return driver.ResultNoRows, s.store.define(ctx, parsed)
	case !icesql.Writes(parsed):
		rows, err := s.query(ctx, parsed, args)
		if err != nil {
			return nil, err
		}
		return driver.ResultNoRows, rows.Close()
	case s.branch == nil:
		return s.alone(ctx, parsed, args)
	}
	n, err := s.branch.write(ctx, parsed, args)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(n), nil
}

// Query runs a statement that returns rows.
func (s *Session) Query(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	parsed, err := icesql.Parse(query)
	if err != nil {
		return nil, err
	}
	return s.query(ctx, parsed, args)
}

func (s *Session) query(ctx context.Context, parsed icesql.Statement, args []driver.NamedValue) (driver.Rows, error) {
	var rows driver.Rows
	var err error
	switch q := parsed.(type) {
	case *icesql.Select:
		rows, err = s.selects(ctx, q, args)
	case *icesql.ShowTables:
		rows, err = s.store.showTables(ctx, q)
	case *icesql.ShowNamespaces:
		rows, err = s.store.showNamespaces(ctx, q)
	case *icesql.Describe:
		rows, err = s.describe(ctx, q)
	default:
		_, err := s.exec(ctx, parsed, args)
		return noRows{}, err
	}
	return rows, s.store.fail("read rows", err)
}

func (s *Session) selects(ctx context.Context, q *icesql.Select, args []driver.NamedValue) (driver.Rows, error) {
	ident := s.store.ident(q.From.Namespace, q.From.Table)
	if s.branch != nil {
		tbl, w, err := s.branch.view(ctx, ident)
		if err != nil {
			return nil, err
		}
		return s.store.selects(ctx, q, tbl, w, args)
	}
	tbl, err := s.store.catalog.Load(ctx, ident)
	if err != nil {
		return nil, err
	}
	return s.store.selects(ctx, q, tbl, nil, args)
}

// admit refuses what a branch cannot hold.
func (s *Session) admit(parsed icesql.Statement) error {
	switch {
	case s.branch == nil || !icesql.Writes(parsed):
		return nil
	case s.branch.readOnly:
		return branches.ErrReadOnlyUnit
	case icesql.IsDDL(parsed):
		return &branches.StatementError{
			Store: s.store.name, Way: "run it outside of the transaction",
			Reason: "a statement that changes the catalog inside a transaction: the catalog would carry it out at once and could not take it back",
		}
	}
	return nil
}

// Prepare reads the statement, so that its errors come early.
func (s *Session) Prepare(_ context.Context, query string) (driver.Stmt, error) {
	parsed, err := icesql.Parse(query)
	if err != nil {
		return nil, err
	}
	return &stmt{session: s, parsed: parsed}, nil
}

// Begin opens a branch. Nothing is sent: a catalog has nothing to begin.
func (s *Session) Begin(_ context.Context, opts branches.BeginOptions) (branches.Branch, error) {
	if s.branch != nil {
		return nil, s.store.fail("begin branch", errBranchOpen)
	}
	if s.closed {
		return nil, driver.ErrBadConn
	}
	s.branch = s.store.newBranch(opts.Txn)
	s.branch.session, s.branch.readOnly = s, opts.ReadOnly
	return s.branch, nil
}

// Ping proves that the catalog answers.
func (s *Session) Ping(ctx context.Context) error {
	catalog, err := s.store.catalog.Get(ctx)
	if err == nil {
		_, err = catalog.CheckNamespaceExists(ctx, s.store.to.namespace)
	}
	return s.store.fail("ping", err)
}

// Raw is the catalog: a catalog.Catalog of iceberg-go, nil before the first
// statement has opened it. What is written over it belongs to no unit.
func (s *Session) Raw() any {
	if opened := s.store.catalog.Opened(); opened != nil {
		return opened
	}
	return nil
}

// Usable reports whether another unit may run here.
func (s *Session) Usable() bool { return s.branch == nil && !s.closed }

// Close ends the session. Staged files stay where they are: the unit may be decided
// without it.
func (s *Session) Close() error {
	s.branch, s.closed = nil, true
	return nil
}

// stmt is a statement that was read already.
type stmt struct {
	session *Session
	parsed  icesql.Statement
}

var (
	_ driver.StmtExecContext  = (*stmt)(nil)
	_ driver.StmtQueryContext = (*stmt)(nil)
)

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.session.exec(ctx, s.parsed, args)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.session.query(ctx, s.parsed, args)
}

func (s *stmt) NumInput() int { return icesql.NumInput(s.parsed) }

func (s *stmt) Close() error { return nil }

// Exec and Query make up driver.Stmt; database/sql calls those with a context.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }

func (s *stmt) Query([]driver.Value) (driver.Rows, error) { return nil, errNoContext }

// noRows is the answer to a statement that was sent as a query and writes.
type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }
