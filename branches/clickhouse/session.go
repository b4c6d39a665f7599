package clickhouse

import (
	"context"
	"database/sql/driver"
	"io"

	client "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

// Session is one driver connection's share of the store's pools. It holds no
// connection between two statements, and so no session state of the server.
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

// Exec runs a statement. Inside of a branch, INSERT … VALUES is kept for the
// commit and everything else that writes is refused.
func (s *Session) Exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	kind, word := chsql.KindOf(query)
	if err := s.admit(kind, word); err != nil {
		return nil, err
	}
	if kind == chsql.Insert {
		return s.insert(ctx, query, nil, args)
	}
	return driver.ResultNoRows, s.pass(ctx, query, args)
}

// pass hands a statement to the server as it is.
func (s *Session) pass(ctx context.Context, query string, args []driver.NamedValue) error {
	return s.store.work.Exec(ctx, query, clientArgs(args)...)
}

// Query runs a statement that returns rows.
func (s *Session) Query(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	kind, word := chsql.KindOf(query)
	if err := s.admit(kind, word); err != nil {
		return nil, err
	}
	if kind == chsql.Insert {
		_, err := s.insert(ctx, query, nil, args)
		return noRows{}, err
	}
	found, err := s.store.work.Query(ctx, query, clientArgs(args)...)
	if err != nil {
		return nil, err
	}
	return newRows(found), nil
}

// admit refuses what a branch cannot hold, and what would change a connection
// that others share.
func (s *Session) admit(kind chsql.Kind, word string) error {
	refused := &branches.StatementError{Store: s.store.name}
	switch {
	case kind == chsql.Session:
		refused.Reason = word + " changes one connection of a pool that others share"
		refused.Way = "put settings and the database into the DSN, or settings into the context with clickhouse.WithSettings"
	case s.branch == nil || kind == chsql.Read || kind == chsql.Empty:
		return nil
	case s.branch.readOnly:
		return branches.ErrReadOnlyUnit
	case kind == chsql.Change:
		refused.Reason = word + " inside a transaction: ClickHouse would carry it out at once and could not take it back"
		refused.Way = "run it outside of the transaction"
	default:
		return nil
	}
	return refused
}

// Prepare keeps the statement's text. An INSERT is read and its table looked at
// now, so that its errors come early.
func (s *Session) Prepare(ctx context.Context, query string) (driver.Stmt, error) {
	made := &stmt{session: s, query: query}
	if kind, _ := chsql.KindOf(query); kind == chsql.Insert {
		parsed, err := chsql.ParseInsert(query)
		if err != nil {
			return made, nil //nolint:nilerr // its execution says so, or hands it to the server
		}
		made.insert = parsed
		if _, err := s.store.table(ctx, s.store.named(parsed)); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// Begin opens a branch. Nothing is sent: ClickHouse has nothing to begin.
func (s *Session) Begin(_ context.Context, opts branches.BeginOptions) (branches.Branch, error) {
	if s.branch != nil {
		return nil, s.store.fail("begin branch", errBranchOpen)
	}
	if s.closed {
		return nil, driver.ErrBadConn
	}
	s.branch = &Branch{session: s, txn: opts.Txn, readOnly: opts.ReadOnly, buffer: buffer{store: s.store}}
	return s.branch, nil
}

// Ping proves that the server answers.
func (s *Session) Ping(ctx context.Context) error { return s.store.work.Ping(ctx) }

// Raw is the client's own connection: a driver.Conn of clickhouse-go. What is
// written over it belongs to no unit.
func (s *Session) Raw() any { return s.store.work }

// Usable reports whether another unit may run here.
func (s *Session) Usable() bool { return s.branch == nil && !s.closed }

// Close ends the session, and with it what a branch has kept.
func (s *Session) Close() error {
	s.branch, s.closed = nil, true
	return nil
}

// CopyFrom keeps rows for the commit; it needs an open branch. A row that is
// refused takes back all rows of the call.
func (s *Session) CopyFrom(ctx context.Context, table string, columns []string, next func() ([]any, error)) (int64, error) {
	switch {
	case s.branch == nil:
		return 0, &branches.StatementError{Store: s.store.name, Reason: "rows are appended without a transaction", Way: "begin one with db.BeginTx"}
	case s.branch.readOnly:
		return 0, branches.ErrReadOnlyUnit
	}
	database, name, err := chsql.ParseName(table)
	if err != nil {
		return 0, &branches.StatementError{Store: s.store.name, Reason: err.Error()}
	}
	if database == "" {
		database = s.store.database
	}
	return s.branch.append(ctx, tableName{database, name}, columns, next)
}

// clientArgs gives arguments the client's form.
func clientArgs(args []driver.NamedValue) []any {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
		if arg.Name != "" {
			values[i] = client.Named(arg.Name, arg.Value)
		}
	}
	return values
}

// stmt is a text, and an INSERT that was read already.
type stmt struct {
	session *Session
	query   string
	insert  *chsql.InsertInto
}

var (
	_ driver.StmtExecContext  = (*stmt)(nil)
	_ driver.StmtQueryContext = (*stmt)(nil)
)

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.insert == nil {
		return s.session.Exec(ctx, s.query, args)
	}
	if err := s.session.admit(chsql.Insert, "INSERT"); err != nil {
		return nil, err
	}
	return s.session.insert(ctx, s.query, s.insert, args)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.session.Query(ctx, s.query, args)
}

// NumInput is unknown: placeholders are counted where they are used.
func (s *stmt) NumInput() int { return -1 }

func (s *stmt) Close() error { return nil }

// Exec and Query make up driver.Stmt; database/sql calls those with a context.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }

func (s *stmt) Query([]driver.Value) (driver.Rows, error) { return nil, errNoContext }

// noRows is the answer to an INSERT that was sent as a query.
type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }
