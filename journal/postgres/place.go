package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal/sqljournal"
)

const (
	// Every journal transaction says its level itself: a role's default of
	// REPEATABLE READ turns a lost compare-and-set into 40001 (seen), and READ
	// WRITE is refused by a standby, whose answers would be stale.
	beginText  = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`
	commitText = `COMMIT`

	// Under row level security an error is better than a record that seems
	// not to exist: the sweep rolls back what has none.
	readText     = `SELECT pg_catalog.set_config('row_security', 'off', true)`
	unforcedText = `SELECT pg_catalog.set_config('synchronous_commit', 'off', true)`
	// At least on, whatever the role says; the warning that voids the answer
	// must not be filtered out either.
	forcedText = `SELECT pg_catalog.set_config('synchronous_commit',
			CASE pg_catalog.current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
		pg_catalog.set_config('client_min_messages', 'warning', true)`
)

// place is a place in the pool, with a connection while it has a good one.
type place struct {
	pool    *pool
	release func()
	link    *link
}

// Ready implements sqljournal.Conn.
func (p *place) Ready(ctx context.Context) error {
	if p.link != nil && p.link.usable() {
		return nil
	}
	p.drop()
	l, err := p.pool.get(ctx)
	if err != nil {
		return err
	}
	p.link = l
	return nil
}

func (p *place) drop() {
	if p.link != nil {
		p.link.goodbye()
		p.link = nil
	}
}

// Run implements sqljournal.Conn.
func (p *place) Run(ctx context.Context, m sqljournal.Mode, stmts ...sqljournal.Stmt) ([]sqljournal.Result, error) {
	if err := p.Ready(ctx); err != nil {
		return nil, err
	}
	p.link.unconfirmed = false
	results, err := p.pipeline(ctx, m, stmts)
	if err == nil && m == sqljournal.Forced && p.link.unconfirmed {
		err = errNotConfirmed
	}
	if err != nil {
		p.recoverAfter(ctx)
		return nil, missing(err)
	}
	return results, nil
}

// settings is the statement before the others, which takes the lock that one
// of them is under.
func settings(m sqljournal.Mode, stmts []sqljournal.Stmt) string {
	text := readText
	switch m {
	case sqljournal.Read:
	case sqljournal.Unforced:
		text = unforcedText
	case sqljournal.Forced:
		text = forcedText
	}
	under := ""
	for _, s := range stmts {
		if s.Under != under {
			under = s.Under
			text += `, ` + under
		}
	}
	return text
}

// pipeline sends the whole transaction in one request. The server skips
// everything behind a statement that failed, the COMMIT too. What is sent
// without BEGIN is one transaction all the same, which the end of the request
// commits: its error comes after the answers, by Close. A read says BEGIN, for
// READ WRITE.
func (p *place) pipeline(ctx context.Context, m sqljournal.Mode, stmts []sqljournal.Stmt) ([]sqljournal.Result, error) {
	var batch pgx.Batch
	implicit := p.link.plain && m != sqljournal.Read
	if !implicit {
		batch.Queue(beginText)
	}
	batch.Queue(settings(m, stmts))
	for _, s := range stmts {
		batch.Queue(s.Text, s.Args...)
	}
	if !implicit {
		batch.Queue(commitText)
	}
	answers := p.link.conn.SendBatch(ctx, &batch)
	results, err := read(answers, len(stmts), implicit)
	if closeErr := answers.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

func read(answers pgx.BatchResults, n int, implicit bool) ([]sqljournal.Result, error) {
	before := 2 // BEGIN, settings
	if implicit {
		before = 1
	}
	for range before {
		if _, err := answers.Exec(); err != nil {
			return nil, err
		}
	}
	results := make([]sqljournal.Result, n)
	for i := range results {
		rows, err := answers.Query()
		if err != nil {
			return nil, err
		}
		if results[i], err = collect(rows); err != nil {
			return nil, err
		}
	}
	if implicit {
		return results, nil
	}
	tag, err := answers.Exec()
	if err != nil {
		return nil, err
	}
	return results, committed(tag)
}

// committed: PostgreSQL ends a failed transaction with the tag ROLLBACK and no error.
func committed(tag pgconn.CommandTag) error {
	if tag.String() != commitText {
		return fmt.Errorf("COMMIT was answered %q", tag.String())
	}
	return nil
}

func collect(rows pgx.Rows) (sqljournal.Result, error) {
	defer rows.Close()
	var res sqljournal.Result
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return res, err
		}
		for i, v := range row {
			if n, ok := v.(int32); ok {
				row[i] = int64(n)
			}
		}
		res.Rows = append(res.Rows, row)
	}
	rows.Close()
	res.Affected = rows.CommandTag().RowsAffected()
	return res, rows.Err()
}

// Work implements sqljournal.Conn.
func (p *place) Work(ctx context.Context, f func(run func(sqljournal.Stmt) (sqljournal.Result, error)) error) error {
	if err := p.Ready(ctx); err != nil {
		return err
	}
	err := p.work(ctx, f)
	if err != nil {
		p.recoverAfter(ctx)
	}
	return missing(err)
}

func (p *place) work(ctx context.Context, f func(run func(sqljournal.Stmt) (sqljournal.Result, error)) error) error {
	// exec: the statements may make what later ones name, so none can be
	// prepared ahead.
	conn := p.link.conn
	run := func(s sqljournal.Stmt) (sqljournal.Result, error) {
		mode := pgx.QueryExecModeExec
		if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
			mode = pgx.QueryExecModeSimpleProtocol
		}
		rows, err := conn.Query(ctx, s.Text, append([]any{mode}, s.Args...)...)
		if err != nil {
			return sqljournal.Result{}, err
		}
		res, err := collect(rows)
		return res, missing(err)
	}
	for _, text := range []string{beginText, forcedText} {
		if _, err := run(sqljournal.Stmt{Text: text}); err != nil {
			return err
		}
	}
	if err := f(run); err != nil {
		return err
	}
	tag, err := conn.Exec(ctx, commitText)
	if err != nil {
		return err
	}
	return committed(tag)
}

// recoverAfter ends what a failed transaction left open. A connection that
// cannot do that is closed; the next call takes a new one.
func (p *place) recoverAfter(ctx context.Context) {
	if p.link == nil || p.link.usable() {
		return
	}
	pg := p.link.conn.PgConn()
	if !pg.IsClosed() && !pg.IsBusy() {
		if _, err := pg.Exec(ctx, `ROLLBACK`).ReadAll(); err == nil && p.link.usable() {
			return
		}
	}
	p.drop()
}

// Release implements sqljournal.Conn.
func (p *place) Release() {
	if p.link != nil && p.link.usable() {
		p.pool.put(p.link)
		p.link = nil
	}
	p.drop()
	p.release()
}

// missing: a table or schema that is not there means that init has not run.
func missing(err error) error {
	switch sqlState(err) {
	case "42P01", "3F000":
		if !errors.Is(err, branches.ErrNotInstalled) {
			return fmt.Errorf("%w: %w", branches.ErrNotInstalled, err)
		}
	}
	return err
}
