package rhizodat

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/rhizodat/rhizodat-go/internal/sqltext"
)

// PrepareContext keeps the text. Where the text or the context says the store,
// it is prepared there at once, so that its errors come now; else each store
// prepares it when an execution first routes it there: database/sql prepares
// the same *sql.Stmt again on other connections, with other contexts.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	text, err := c.scan(query)
	if err != nil {
		return nil, err
	}
	s := &stmt{conn: c, text: text, prepared: map[string]prepared{}}
	if text.Kind != sqltext.Plain && c.only == nil {
		return s, nil
	}
	if c.only == nil && text.Store == "" && storeOf(ctx) == "" {
		return s, nil
	}
	if _, err := s.at(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Prepare is PrepareContext without a context.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	//nolint:forbidigo // driver.Conn.Prepare has no context; database/sql calls PrepareContext
	return c.PrepareContext(context.Background(), query)
}

// stmt is one text, prepared in each store that its executions reach.
type stmt struct {
	conn     *conn
	text     sqltext.Statement
	prepared map[string]prepared
}

type prepared struct {
	stmt  driver.Stmt
	epoch int // of the session it was prepared on
}

var (
	_ driver.Stmt              = (*stmt)(nil)
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

// at returns the statement prepared in the store that this execution reaches.
func (s *stmt) at(ctx context.Context) (driver.Stmt, error) {
	name, err := s.conn.route(ctx, s.text)
	if err != nil {
		return nil, err
	}
	slot, err := s.conn.reach(ctx, name)
	if err != nil {
		return nil, err
	}
	if s.text.Notify && slot.part != nil {
		slot.part.Notice = true
	}
	p, ok := s.prepared[name]
	if ok && p.epoch == slot.epoch {
		return p.stmt, nil
	}
	made, err := slot.session.Prepare(ctx, s.text.Text)
	if errors.Is(err, driver.ErrBadConn) {
		if err = s.conn.again(ctx, slot); err == nil {
			made, err = slot.session.Prepare(ctx, s.text.Text)
		}
	}
	if err != nil {
		return nil, err
	}
	s.prepared[name] = prepared{stmt: made, epoch: slot.epoch}
	return made, nil
}

// ExecContext runs the statement in the store that its text or ctx names.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.text.Kind != sqltext.Plain && s.conn.only == nil {
		if err := s.conn.tx.checkSavepoint(s.text); err != nil {
			return nil, err
		}
		return driver.ResultNoRows, s.conn.tx.savepoint(ctx, s.text)
	}
	var result driver.Result
	err := s.run(ctx, func(made driver.Stmt) (err error) {
		e, ok := made.(driver.StmtExecContext)
		if !ok {
			return errNoContext
		}
		result, err = e.ExecContext(ctx, args)
		return err
	})
	return result, err
}

// QueryContext runs the query in the store that its text or ctx names.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.text.Kind != sqltext.Plain && s.conn.only == nil {
		return nil, errors.New("rhizodat: query: a savepoint returns no rows: use Exec")
	}
	var rows driver.Rows
	err := s.run(ctx, func(made driver.Stmt) (err error) {
		q, ok := made.(driver.StmtQueryContext)
		if !ok {
			return errNoContext
		}
		rows, err = q.QueryContext(ctx, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	return columned(rows), nil
}

// run executes the prepared statement of the store that this execution reaches.
// Inside a unit a dead session is replaced where nothing of the branch had
// happened, and is an ordinary error else: it must not cost the whole driver
// connection. Outside one database/sql may try again, since not a byte was sent.
func (s *stmt) run(ctx context.Context, execute func(driver.Stmt) error) error {
	made, err := s.at(ctx)
	if err != nil {
		return err
	}
	err = execute(made)
	if err == nil || s.conn.tx == nil {
		return err
	}
	name, routeErr := s.conn.route(ctx, s.text)
	if routeErr != nil {
		return routeErr
	}
	if !errors.Is(err, driver.ErrBadConn) {
		return s.conn.hint(ctx, s.conn.slots[name], err)
	}
	if err := s.conn.again(ctx, s.conn.slots[name]); err != nil {
		return err
	}
	if made, err = s.at(ctx); err != nil {
		return err
	}
	if err = execute(made); errors.Is(err, driver.ErrBadConn) {
		return &LostSession{Store: name}
	}
	return err
}

var errNoContext = errors.New("rhizodat: run prepared statement: the adapter's statements take no context")

// CheckNamedValue accepts every value, as conn's does.
func (s *stmt) CheckNamedValue(*driver.NamedValue) error { return nil }

// NumInput is unknown: the store counts.
func (s *stmt) NumInput() int { return -1 }

// Close frees the statement in every session that still holds it.
func (s *stmt) Close() error {
	var errs []error
	for name, p := range s.prepared {
		if slot := s.conn.slots[name]; slot.session != nil && slot.epoch == p.epoch {
			errs = append(errs, p.stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// Exec and Query make up driver.Stmt; database/sql calls those with a context.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }

// Query is never called by database/sql.
func (s *stmt) Query([]driver.Value) (driver.Rows, error) { return nil, errNoContext }
