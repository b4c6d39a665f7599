package sqljournal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/rhizodat/rhizodat-go/journal/internal/places"
)

// Begin returns the statements that open a transaction of a mode.
type Begin func(Mode) []string

// NewDBPool makes a Pool of a *sql.DB, whose transactions are opened by begin
// and ended by COMMIT. mapError translates the driver's errors. commits bounds
// how many sessions there are at a time, writers how many of them write, 0 for
// any number. It owns db.
func NewDBPool(db *sql.DB, commits, writers int, begin Begin, mapError func(error) error) Pool {
	p := &dbPool{db: db, places: places.New(commits), begin: begin, mapError: mapError}
	if writers > 0 {
		p.writers = make(chan struct{}, writers)
	}
	return p
}

type dbPool struct {
	db       *sql.DB
	places   *places.Places
	writers  chan struct{}
	begin    Begin
	mapError func(error) error
	once     sync.Once
}

func (p *dbPool) Take(ctx context.Context, spare bool) (Conn, error) {
	release, err := p.places.Take(ctx, spare)
	if err != nil {
		return nil, err
	}
	return &dbConn{pool: p, release: release}, nil
}

func (p *dbPool) Reserved(ctx context.Context, purpose places.Purpose) (Conn, error) {
	release, err := p.places.Reserved(ctx, purpose)
	if err != nil {
		return nil, err
	}
	return &dbConn{pool: p, release: release}, nil
}

func (p *dbPool) Close() (err error) {
	p.once.Do(func() {
		p.places.Close()
		err = p.db.Close()
	})
	return err
}

type dbConn struct {
	pool    *dbPool
	release func()
	conn    *sql.Conn // nil before the first use and after a failure
}

func (c *dbConn) Ready(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	conn, err := c.pool.db.Conn(ctx)
	if err != nil {
		return c.pool.mapped(err)
	}
	c.conn = conn
	return nil
}

func (c *dbConn) Run(ctx context.Context, m Mode, stmts ...Stmt) ([]Result, error) {
	results := make([]Result, 0, len(stmts))
	err := c.transaction(ctx, m, func() error {
		for _, s := range stmts {
			res, err := c.one(ctx, s)
			if err != nil {
				return err
			}
			results = append(results, res)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (c *dbConn) Work(ctx context.Context, f func(run func(Stmt) (Result, error)) error) error {
	return c.transaction(ctx, Forced, func() error {
		return f(func(s Stmt) (Result, error) {
			res, err := c.one(ctx, s)
			return res, c.pool.mapped(err)
		})
	})
}

func (c *dbConn) transaction(ctx context.Context, m Mode, f func() error) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	if c.pool.writers != nil && m != Read {
		select {
		case c.pool.writers <- struct{}{}:
			defer func() { <-c.pool.writers }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := c.inside(ctx, m, f)
	if err != nil {
		// Whether it still has an open transaction is not worth finding out.
		c.discard()
	}
	return c.pool.mapped(err)
}

func (c *dbConn) inside(ctx context.Context, m Mode, f func() error) error {
	for _, text := range c.pool.begin(m) {
		if _, err := c.conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	_, err := c.conn.ExecContext(ctx, `COMMIT`)
	return err
}

func (c *dbConn) one(ctx context.Context, s Stmt) (Result, error) {
	if s.Under != "" {
		if _, err := c.conn.ExecContext(ctx, `SELECT `+s.Under); err != nil { //nolint:gosec // G202: the dialect's own text
			return Result{}, err
		}
	}
	if !s.Rows {
		res, err := c.conn.ExecContext(ctx, s.Text, s.Args...)
		if err != nil {
			return Result{}, err
		}
		n, err := res.RowsAffected()
		return Result{Affected: n}, err
	}
	rows, err := c.conn.QueryContext(ctx, s.Text, s.Args...)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has said what there is to say
	names, err := rows.Columns()
	if err != nil {
		return Result{}, err
	}
	var res Result
	for rows.Next() {
		row := make([]any, len(names))
		into := make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return Result{}, err
		}
		res.Rows = append(res.Rows, plain(row))
	}
	res.Affected = int64(len(res.Rows))
	return res, rows.Err()
}

// plain leaves int64, string and nil.
func plain(row []any) []any {
	for i, v := range row {
		if b, ok := v.([]byte); ok {
			row[i] = string(b)
		}
	}
	return row
}

// discard closes the connection itself: what is open on it is rolled back.
func (c *dbConn) discard() {
	if c.conn == nil {
		return
	}
	_ = c.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.conn.Close()
	c.conn = nil
}

func (c *dbConn) Release() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
	c.release()
}

// mapped hides driver.ErrBadConn: to database/sql it would mean that nothing
// was sent and that it may try again.
func (p *dbPool) mapped(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, driver.ErrBadConn) {
		return fmt.Errorf("connection lost: %v", err) //nolint:errorlint // hidden on purpose
	}
	if p.mapError != nil {
		return p.mapError(err)
	}
	return err
}
