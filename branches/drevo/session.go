package drevo

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Session is one driver connection's share of the store's pool. It holds a
// connection while a branch is open or a statement runs.
type Session struct {
	store  *Store
	branch *Branch // open and not yet prepared; nil between units
	lost   bool    // a branch's connection died
	closed bool
}

var (
	_ branches.Session         = (*Session)(nil)
	_ branches.Pinger          = (*Session)(nil)
	_ driver.NamedValueChecker = (*Session)(nil)
)

// Exec runs a statement. Bolt tells no counters: what is to be known of its
// effect has to be returned by the statement, to Query.
func (s *Session) Exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if _, err := s.run(ctx, query, args); err != nil {
		return nil, err
	}
	return uncounted{}, nil
}

// Query runs a statement that returns rows. They are all here when it returns.
func (s *Session) Query(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	found, err := s.run(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (s *Session) run(ctx context.Context, query string, args []driver.NamedValue) (*rows, error) {
	if s.closed {
		return nil, driver.ErrBadConn
	}
	text := read(query)
	params, err := parameters(args)
	if err != nil {
		return nil, &branches.StatementError{Store: s.store.name, Reason: err.Error()}
	}
	if s.branch == nil {
		return s.autocommit(ctx, query, params)
	}
	if err := s.admit(text); err != nil {
		return nil, err
	}
	return s.branch.run(ctx, text, query, params)
}

// admit refuses what a branch must not send. It has not reached the server, and
// dooms nothing.
func (s *Session) admit(text statement) error {
	switch {
	case text.resolves:
		return &branches.StatementError{
			Store: s.store.name, Reason: "drevo.tx procedures inside a transaction: Commit prepares and resolves it",
			Way: "call them outside of a transaction",
		}
	case text.writes && s.branch.readOnly:
		return branches.ErrReadOnlyUnit
	}
	return nil
}

// autocommit runs a statement outside of a branch, as the driver does. drevo
// applies it write by write.
func (s *Session) autocommit(ctx context.Context, query string, params map[string]any) (*rows, error) {
	session := s.store.work.Load().Session(ctx)
	result, err := session.Run(ctx, query, params)
	var found *rows
	if err == nil {
		found, err = collect(ctx, result)
	}
	tidyCtx, cancel := tidying(ctx)
	defer cancel()
	_ = session.Close(tidyCtx) // its statement is over: this says nothing about it
	if err != nil {
		s.store.notice(err)
		return nil, withContext(ctx, err)
	}
	return found, nil
}

// Prepare keeps the statement's text: drevo has no prepared statements.
func (s *Session) Prepare(_ context.Context, query string) (driver.Stmt, error) {
	return &stmt{session: s, query: query}, nil
}

// CheckNamedValue lets every value pass: they are converted where they are sent.
func (s *Session) CheckNamedValue(*driver.NamedValue) error { return nil }

// beginTries bounds the attempts of Begin: after a restart of the server the
// pool's connections are all dead, and nothing has happened yet.
const beginTries = 3

// Begin opens a branch. drevo has one isolation, a snapshot whose commit any other
// commit refuses, which is as strict as serializable.
func (s *Session) Begin(ctx context.Context, opts branches.BeginOptions) (branches.Branch, error) {
	switch {
	case s.branch != nil:
		return nil, s.store.fail("begin branch", errBranchOpen)
	case s.closed || s.lost:
		return nil, driver.ErrBadConn
	case sql.IsolationLevel(opts.Isolation) > sql.LevelSerializable:
		return nil, s.store.refuse("begin branch", "drevo has no isolation above serializable", "")
	}
	for try := 1; ; try++ {
		graph := s.store.work.Load()
		session := graph.Session(ctx)
		tx, err := session.BeginTransaction(ctx)
		if err == nil {
			s.branch = &Branch{session: s, graph: graph, neo: session, tx: tx, readOnly: opts.ReadOnly, undo: undoing(ctx, session)}
			return s.branch, nil
		}
		_ = undoing(ctx, session)() // nothing has begun
		if ctx.Err() != nil || !connectivity(err) || try == beginTries {
			return nil, s.store.fail("begin branch", withContext(ctx, err))
		}
	}
}

// undoing rolls back what is open in a session and gives its connection back,
// however the caller's context ends. Where that fails the driver closes the
// connection, which does the same.
func undoing(ctx context.Context, session neo4j.SessionWithContext) func() error {
	return func() error {
		ctx, cancel := tidying(ctx)
		defer cancel()
		return session.Close(ctx)
	}
}

// tidying is for what has to be done although ctx may have ended.
func tidying(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
}

// withContext shows the end of the caller's context, which the driver's errors
// hide.
func withContext(ctx context.Context, err error) error {
	if ended := context.Cause(ctx); ended != nil && err != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

// Ping proves that the server answers.
func (s *Session) Ping(ctx context.Context) error {
	_, err := s.store.work.Load().Read(ctx, "RETURN 1", nil)
	return err
}

// Usable reports whether another unit may run here.
func (s *Session) Usable() bool { return s.branch == nil && !s.lost && !s.closed }

// Close ends the session, and with it an unprepared branch.
func (s *Session) Close() error {
	s.closed = true
	if b := s.branch; b != nil {
		b.leave()
		return b.undo()
	}
	return nil
}

// stmt is a text.
type stmt struct {
	session *Session
	query   string
}

var (
	_ driver.StmtExecContext  = (*stmt)(nil)
	_ driver.StmtQueryContext = (*stmt)(nil)
)

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.session.Exec(ctx, s.query, args)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.session.Query(ctx, s.query, args)
}

// NumInput is unknown: a parameter may be used many times or never.
func (s *stmt) NumInput() int { return -1 }

func (s *stmt) Close() error { return nil }

// Exec and Query make up driver.Stmt; database/sql calls those with a context.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }

func (s *stmt) Query([]driver.Value) (driver.Rows, error) { return nil, errNoContext }

// uncounted is the result of a statement: Bolt has no counters.
type uncounted struct{}

func (uncounted) LastInsertId() (int64, error) { return 0, errUncounted }
func (uncounted) RowsAffected() (int64, error) { return 0, errUncounted }
