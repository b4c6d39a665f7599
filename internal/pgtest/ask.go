package pgtest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Exec runs one or more statements, without arguments, as the superuser in a
// session of their own. An empty database means the maintenance database.
func (c *Cluster) Exec(tb testing.TB, database, sql string) {
	tb.Helper()
	c.session(tb, database, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		return err
	})
}

// Strings answers the first column of a query as text, in the query's order.
func (c *Cluster) Strings(tb testing.TB, database, sql string, args ...any) []string {
	tb.Helper()
	var values []string
	c.session(tb, database, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		values, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return values
}

// Int answers the one number that a query returns.
func (c *Cluster) Int(tb testing.TB, database, sql string, args ...any) int64 {
	tb.Helper()
	var value int64
	c.session(tb, database, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, sql, args...).Scan(&value)
	})
	return value
}

// Prepared lists the gids of the transactions that are prepared in a
// database, sorted.
func (c *Cluster) Prepared(tb testing.TB, database string) []string {
	tb.Helper()
	return c.Strings(tb, "", "SELECT gid FROM pg_prepared_xacts WHERE database = $1 ORDER BY gid", Name(database))
}

// Backends counts the client sessions of a database.
func (c *Cluster) Backends(tb testing.TB, database string) int {
	tb.Helper()
	return int(c.Int(tb, "", `SELECT count(*) FROM pg_stat_activity
		WHERE datname = $1 AND backend_type = 'client backend' AND pid <> pg_backend_pid()`, Name(database)))
}

// Disconnect ends all client sessions of a database, as an administrator
// does with pg_terminate_backend, and says how many there were.
func (c *Cluster) Disconnect(tb testing.TB, database string) int {
	tb.Helper()
	return int(c.Int(tb, "", `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = $1 AND backend_type = 'client backend' AND pid <> pg_backend_pid()`, Name(database)))
}

// session runs work in a new session and closes it: nothing of this package
// holds a session, so tests may count backends and look for leaks.
func (c *Cluster) session(tb testing.TB, database string, work func(context.Context, *pgx.Conn) error) {
	tb.Helper()
	if err := c.trySession(tb, database, work); err != nil {
		tb.Fatalf("ask test database: %v", err)
	}
}

func (c *Cluster) trySession(tb testing.TB, database string, work func(context.Context, *pgx.Conn) error) error {
	tb.Helper()
	// Detached: the context of a test has ended when its cleanups run.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.DSN(database))
	if err != nil {
		return err
	}
	return errors.Join(work(ctx, conn), conn.Close(ctx))
}
