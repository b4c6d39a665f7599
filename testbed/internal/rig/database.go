package rig

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Database is one database, seen by its superuser over one session that is
// opened anew when it was lost. It is safe for concurrent use.
type Database struct {
	Name   string
	DSN    string
	Scheme string // stands before its URL in a DSN, for a store that is not PostgreSQL's

	mu   sync.Mutex
	conn *pgx.Conn
}

// Addr is the host:port of the database's server.
func (d *Database) Addr() string {
	u, err := url.Parse(d.DSN)
	if err != nil {
		panic("rig: own DSN does not parse") // made by url.URL.String
	}
	return u.Host
}

// Exec runs statements, without arguments as many as there are.
func (d *Database) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	var affected int64
	err := d.with(ctx, func(conn *pgx.Conn) error {
		if len(args) == 0 {
			args = append(args, pgx.QueryExecModeSimpleProtocol)
		}
		tag, err := conn.Exec(ctx, sql, args...)
		affected = tag.RowsAffected()
		return err
	})
	return affected, err
}

// Texts returns the first column of a query.
func (d *Database) Texts(ctx context.Context, sql string, args ...any) ([]string, error) {
	var texts []string
	err := d.with(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return texts, err
}

// Pairs returns a query's first column with its second.
func (d *Database) Pairs(ctx context.Context, sql string, args ...any) (map[string]string, error) {
	pairs := map[string]string{}
	err := d.with(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		var key, value string
		_, err = pgx.ForEachRow(rows, []any{&key, &value}, func() error {
			pairs[key] = value
			return nil
		})
		return err
	})
	return pairs, err
}

// Int returns the one number of a query.
func (d *Database) Int(ctx context.Context, sql string, args ...any) (int, error) {
	var n int
	err := d.with(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, sql, args...).Scan(&n) })
	return n, err
}

// Prepared lists the gids prepared in this database.
func (d *Database) Prepared(ctx context.Context) ([]string, error) {
	return d.Texts(ctx, `SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY gid`)
}

// Disconnect ends every other session of the database, as an administrator
// would, and returns when they are gone.
func (d *Database) Disconnect(ctx context.Context) (int, error) {
	// Chosen first: in one WHERE the planner may end a backend before it has
	// looked whether it is its own.
	ended, err := d.Texts(ctx, `WITH others AS MATERIALIZED (
			SELECT pid FROM pg_stat_activity WHERE datname = current_database()
			AND backend_type = 'client backend' AND pid <> pg_backend_pid())
		SELECT pid::text FROM others WHERE pg_terminate_backend(pid)`)
	if err != nil {
		return 0, err
	}
	return len(ended), Await(ctx, "end of sessions", func() (bool, error) {
		left, err := d.Int(ctx, `SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1::int[])`, ended)
		return left == 0, err
	})
}

// Sessions counts the other sessions of the database.
func (d *Database) Sessions(ctx context.Context) (int, error) {
	return d.Int(ctx, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`)
}

// Close ends the session; the next request opens another.
func (d *Database) Close(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close(ctx) // nothing is left to be lost with it
		d.conn = nil
	}
}

func (d *Database) with(ctx context.Context, f func(*pgx.Conn) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil && (d.conn.IsClosed() || d.conn.Ping(ctx) != nil) {
		d.conn = nil
	}
	if d.conn == nil {
		conn, err := pgx.Connect(ctx, d.DSN)
		if err != nil {
			return fmt.Errorf("reach database %s: %w", d.Name, err)
		}
		d.conn = conn
	}
	if err := f(d.conn); err != nil {
		return fmt.Errorf("ask database %s: %w", d.Name, err)
	}
	return nil
}
