// Package floor is the opponent of the benchmark: what a good engineer writes
// by hand for two PostgreSQL databases, or one and a drevo graph, and one journal
// row. Native pgx, prepared statements, both PREPAREs and both COMMIT PREPAREDs in
// parallel, no marker, ONE forced journal row. And for a lease: its row, taken and
// given back by one conditional statement each.
//
// It is not safe: it has no recovery, takes every answer for an outcome, and
// forgets what a crash leaves prepared. It is only fast.
package floor

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Floor is the opponent, opened.
type Floor struct{ a, b, journal *pgxpool.Pool }

// Open connects one pool of size conns to each database.
func Open(ctx context.Context, a, b, journal string, conns int) (*Floor, error) {
	f := &Floor{}
	for _, p := range []struct {
		pool **pgxpool.Pool
		dsn  string
	}{{&f.a, a}, {&f.b, b}, {&f.journal, journal}} {
		var err error
		if *p.pool, err = pool(ctx, p.dsn, conns); err != nil {
			return nil, err
		}
	}
	return f, makeJournal(ctx, f.journal)
}

func pool(ctx context.Context, dsn string, conns int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("open floor: %w", err)
	}
	config.MaxConns = int32(conns) //nolint:gosec // a handful
	p, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open floor: %w", err)
	}
	return p, nil
}

func makeJournal(ctx context.Context, journal *pgxpool.Pool) error {
	_, err := journal.Exec(ctx, `CREATE TABLE IF NOT EXISTS floor_journal (id uuid PRIMARY KEY, state text NOT NULL)`)
	return err
}

// Close ends the pools.
func (f *Floor) Close() {
	f.a.Close()
	f.b.Close()
	f.journal.Close()
}

// Transfer takes amount from one account of a and gives it to one of b.
func (f *Floor) Transfer(ctx context.Context, from, to, amount int64) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	a, err := f.a.Acquire(ctx)
	if err != nil {
		return err
	}
	defer a.Release()
	b, err := f.b.Acquire(ctx)
	if err != nil {
		return err
	}
	defer b.Release()
	if _, err := a.Exec(ctx, "begin"); err != nil {
		return err
	}
	if _, err := a.Exec(ctx, "UPDATE account SET balance = balance - $1 WHERE id = $2", amount, from); err != nil {
		return err
	}
	if _, err := b.Exec(ctx, "begin"); err != nil {
		return err
	}
	if _, err := b.Exec(ctx, "UPDATE account SET balance = balance + $1 WHERE id = $2", amount, to); err != nil {
		return err
	}
	if err := both(ctx, a.Conn(), b.Conn(), fmt.Sprintf("PREPARE TRANSACTION '%s'", id)); err != nil {
		return err
	}
	if _, err := f.journal.Exec(ctx, "INSERT INTO floor_journal VALUES ($1, 'COMMITTED')", id); err != nil {
		return err
	}
	return both(ctx, a.Conn(), b.Conn(), fmt.Sprintf("COMMIT PREPARED '%s'", id))
}

// both sends one statement to both databases at once.
func both(ctx context.Context, a, b *pgx.Conn, sql string) error {
	return parallel(func() error { return end(ctx, a, sql) }, func() error { return end(ctx, b, sql) })
}

// parallel runs two calls at once, and returns the error of the first that has one.
func parallel(a, b func() error) error {
	var wg sync.WaitGroup
	var first error
	wg.Go(func() { first = a() })
	second := b()
	wg.Wait()
	if first != nil {
		return first
	}
	return second
}
