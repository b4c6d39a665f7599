package catalogs

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	sqlcat "github.com/apache/iceberg-go/catalog/sql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver of a SQLite catalog
)

// initTables of the library: whether it makes its tables when it is opened. That
// needs the right to create something even where they are there, so it is asked
// for only where they are not.
const initTables = "init_catalog_tables"

// openSQL opens the database and the catalog in it.
func (c *Catalog) openSQL(ctx context.Context, create bool) error {
	db, err := c.database(create)
	if err != nil {
		return err
	}
	missing, err := lacksTables(ctx, db)
	switch {
	case err != nil:
		return errors.Join(err, db.Close())
	case missing && !create:
		return errors.Join(ErrMissing, db.Close())
	}
	props := c.cfg.props()
	props[initTables] = map[bool]string{true: "true", false: "false"}[missing]
	dialect := sqlcat.SQLite
	if c.cfg.Kind == Postgres {
		dialect = sqlcat.Postgres
	}
	opened, err := sqlcat.NewCatalog(c.cfg.Name, db, dialect, props)
	// CREATE TABLE IF NOT EXISTS of several at once: all but one may fail, and that
	// for each of the two tables.
	for range installTries {
		if !missing || !duplicate(err) {
			break
		}
		opened, err = sqlcat.NewCatalog(c.cfg.Name, db, dialect, props)
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	c.opened, c.db = opened, db
	return nil
}

func (c *Catalog) database(create bool) (*sql.DB, error) {
	if c.cfg.Kind == Postgres {
		db := stdlib.OpenDB(*c.cfg.Postgres, stdlib.OptionAfterConnect(forced))
		db.SetMaxOpenConns(maxConns)
		return db, nil
	}
	// A wrong path must not leave an empty database behind.
	if _, err := os.Stat(c.cfg.Path); errors.Is(err, os.ErrNotExist) && !create {
		return nil, ErrMissing
	}
	u := url.URL{Scheme: "file", Path: c.cfg.Path}
	// Without busy_timeout most loads beside a writer fail: "database is locked".
	return sql.Open("sqlite", u.String()+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=fullfsync(1)")
}

// maxConns bounds the connections of one store to a PostgreSQL catalog. None is held
// for longer than a request.
const maxConns = 16

// forced makes a commit of the catalog durable before it is answered, whatever the
// role's default is: what is DONE must not be lost with the server's memory.
func forced(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SELECT pg_catalog.set_config('synchronous_commit', 'on', false) WHERE pg_catalog.current_setting('synchronous_commit') = 'off'")
	return err
}

// lacksTables reports whether the catalog's tables are not there. The library makes
// them one by one: another's first may stand while its second does not yet.
func lacksTables(ctx context.Context, db *sql.DB) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM iceberg_tables WHERE 1=0)"+
		" + (SELECT count(*) FROM iceberg_namespace_properties WHERE 1=0)").Scan(&n)
	switch {
	case err == nil:
		return false, nil
	case sqlState(err) == "42P01", strings.Contains(err.Error(), "no such table: iceberg_"):
		return true, nil
	}
	return false, err
}

func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// installTries bounds the tries to make the catalog's tables beside others.
const installTries = 5

// duplicate: what is being made has just been made by another.
func duplicate(err error) bool {
	switch sqlState(err) {
	case "23505", "42710", "42P07":
		return true
	}
	return false
}

// sqlIdentity: the server's own words where it is a server, the real path where it
// is a file.
func (c *Catalog) sqlIdentity(ctx context.Context) (string, error) {
	if c.cfg.Kind == SQLite {
		return "sqlite:" + realPath(c.cfg.Path) + "/" + c.cfg.Name, nil
	}
	var system, database, schema string
	err := c.db.QueryRowContext(ctx, "SELECT system_identifier::text, pg_catalog.current_database()::text,"+
		" (SELECT n.nspname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid=c.relnamespace"+
		" WHERE c.oid='iceberg_tables'::pg_catalog.regclass)"+
		" FROM pg_catalog.pg_control_system()").Scan(&system, &database, &schema)
	return "pg:" + system + "/" + database + "/" + schema + "/" + c.cfg.Name, err
}

// realPath follows links: two names of one file are one catalog.
func realPath(path string) string {
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(folder, filepath.Base(path))
	}
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		path = followed
	}
	return path
}
