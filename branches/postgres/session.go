package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Session is one connection. Like pgx's it is not safe for concurrent use.
type Session struct {
	store  *Store
	conn   *stdlib.Conn
	branch *Branch // open and not yet prepared; nil between units

	// unsynced: the server gave up waiting for a synchronous standby since the
	// last request that cares.
	unsynced bool
	spoiled  bool // its session state is not as it was made: never reused
	caches   bool // pgx keeps a prepared or described statement for every text

	bound    string                                  // SET LOCAL lock_timeout as the last branch had it
	bounded  bool                                    // it is what the session's own lock_timeout asks for
	prepares bool                                    // statements of ours may be prepared by name
	plans    map[string]string                       // their names, by text
	firsts   map[string]*pgconn.StatementDescription // first statements of branches, by text
}

var (
	_ branches.Session         = (*Session)(nil)
	_ branches.Pinger          = (*Session)(nil)
	_ branches.Copier          = (*Session)(nil)
	_ branches.Raw             = (*Session)(nil)
	_ driver.NamedValueChecker = (*Session)(nil)
)

// Exec runs a statement. It does what stdlib's ExecContext does, which keeps
// the command tag to itself, and has its errors.
func (s *Session) Exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	conn := s.client()
	if conn.IsClosed() {
		return nil, driver.ErrBadConn
	}
	values := make([]any, len(args), len(args)+1)
	for i := range args {
		values[i] = args[i].Value
	}
	if len(args) > 0 && s.caches && traced(query) {
		values = slices.Insert(values, 0, any(pgx.QueryExecModeDescribeExec))
	}
	s.sees(query)
	tag, err := s.exec(ctx, query, values)
	if err != nil {
		s.failed(err)
		if unsent(err) {
			return nil, driver.ErrBadConn
		}
	} else {
		s.branch.did(tag)
	}
	return driver.RowsAffected(tag.RowsAffected()), err
}

// exec runs a statement, behind the branch's BEGIN if that is still to be sent.
func (s *Session) exec(ctx context.Context, query string, values []any) (pgconn.CommandTag, error) {
	if !s.branch.Begun() {
		tag, done, err := s.branch.execFirst(ctx, query, values)
		if done || err != nil {
			return tag, err
		}
		if err := s.branch.begin(ctx); err != nil {
			return tag, err
		}
	}
	return s.client().Exec(ctx, query, values...)
}

// Query runs a statement that returns rows. They are stdlib's.
func (s *Session) Query(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s.sees(query)
	if err := s.branch.begin(ctx); err != nil {
		return nil, err
	}
	if s.caches && traced(query) {
		args = slices.Insert(slices.Clone(args), 0, driver.NamedValue{Value: pgx.QueryExecModeDescribeExec})
	}
	found, err := s.conn.QueryContext(ctx, query, args)
	if err != nil {
		s.failed(err)
		return nil, err
	}
	pgxRows, ok := found.(*stdlib.Rows)
	if !ok {
		return found, nil
	}
	s.branch.asks(query)
	return &rows{Rows: pgxRows, session: s}, nil
}

// Prepare prepares a statement for the session's life.
func (s *Session) Prepare(ctx context.Context, query string) (driver.Stmt, error) {
	if err := s.branch.begin(ctx); err != nil {
		return nil, err
	}
	made, err := s.conn.PrepareContext(ctx, query)
	if err != nil {
		s.failed(err)
		return nil, err
	}
	pgxStmt, ok := made.(*stdlib.Stmt)
	if !ok {
		return made, nil
	}
	return &stmt{Stmt: pgxStmt, session: s, query: query}, nil
}

// CheckNamedValue lets every value pass: pgx converts by the type of the
// parameter, and a first argument of type pgx.QueryExecMode is its own.
func (s *Session) CheckNamedValue(nv *driver.NamedValue) error { return s.conn.CheckNamedValue(nv) }

// Ping proves that the session is alive. One that is not is closed. A BEGIN that
// was put off is sent first.
func (s *Session) Ping(ctx context.Context) error {
	if err := s.branch.begin(ctx); err != nil {
		return err
	}
	return s.conn.Ping(ctx)
}

// Raw is the *pgx.Conn. What is done by it is not seen here.
func (s *Session) Raw() any {
	s.bounded = false
	return s.client()
}

// Usable reports whether another unit may run here.
func (s *Session) Usable() bool {
	return s.branch == nil && !s.dead() && s.client().PgConn().TxStatus() == statusIdle
}

// Close ends the session, and with it an unprepared branch.
func (s *Session) Close() error {
	s.branch = nil
	return s.conn.Close()
}

// CopyFrom runs COPY FROM STDIN in the open branch, in binary format. table may
// be written with its schema, each part quoted where SQL would have it quoted.
func (s *Session) CopyFrom(ctx context.Context, table string, columns []string, next func() ([]any, error)) (int64, error) {
	name, err := parseName(table)
	if err != nil {
		return 0, err
	}
	if s.dead() {
		return 0, driver.ErrBadConn
	}
	if err := s.branch.begin(ctx); err != nil {
		return 0, err
	}
	n, err := s.client().CopyFrom(ctx, name, columns, pgx.CopyFromFunc(next))
	if err != nil {
		s.failed(err)
		return n, err
	}
	if n > 0 && s.branch != nil {
		s.branch.wrote = true
	}
	return n, nil
}

func (s *Session) client() *pgx.Conn { return s.conn.Conn() }

func (s *Session) dead() bool { return s.client().IsClosed() }

// sees is told of every statement before it is sent.
func (s *Session) sees(query string) {
	s.branch.sees(query)
	if s.bounded && namesBound(query) {
		s.bounded = false
	}
	if word := firstWord(query); strings.EqualFold(word, "discard") || strings.EqualFold(word, "deallocate") {
		s.forget()
	}
}

// failed notes the error that left the open branch unable to commit: not those
// that follow from it, but a later one after a ROLLBACK TO of the user's.
func (s *Session) failed(err error) {
	b := s.branch
	switch {
	case b == nil, !b.Begun() && !s.dead():
	case errors.Is(err, driver.ErrBadConn):
		// It says "try again" to database/sql, and must not reach it by Commit.
		if b.doom == nil {
			b.doom = errSessionLost
		}
	case b.doom != nil && code(err) == codeFailedTransaction:
	case s.dead() || s.client().PgConn().TxStatus() == statusFailed:
		b.doom = err
	}
}

// heard is told of every notice of the session's server.
func (s *Session) heard(notice *pgconn.Notice) {
	// By its source file: the text is translated on servers that speak another
	// language, and there is no SQLSTATE of its own.
	if notice.File == "syncrep.c" {
		s.unsynced = true
	}
}

// rows are stdlib's, and tell the session of an error met while reading.
type rows struct {
	*stdlib.Rows
	session *Session
}

func (r *rows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err != nil && !errors.Is(err, io.EOF) {
		r.session.failed(err)
	}
	return err
}

func (r *rows) Close() error {
	err := r.Rows.Close()
	if err != nil {
		r.session.failed(err)
	}
	return err
}

// stmt is stdlib's, and runs by the session.
type stmt struct {
	*stdlib.Stmt
	session *Session
	query   string
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.session.Exec(ctx, s.query, args)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.session.Query(ctx, s.query, args)
}

// parseName reads a table's name as SQL does: parts between dots, in double
// quotes or folded to lower case.
func parseName(text string) (pgx.Identifier, error) {
	var name pgx.Identifier
	for rest := text; ; {
		part, tail, ok := cutName(rest)
		if !ok {
			return nil, fmt.Errorf("rhizodat: copy rows: %q is not a table's name", text)
		}
		name = append(name, part)
		if tail == "" {
			return name, nil
		}
		rest = tail[1:]
	}
}
