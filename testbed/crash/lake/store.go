// Package lake is an Iceberg store for the crash tests: a catalog and a
// directory with one table, whose rows and snapshots are counted unit by unit, by
// iceberg-go itself and without a filter, past the package under test.
package lake

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	lib "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/hadoop"
	sqlcat "github.com/apache/iceberg-go/catalog/sql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of a catalog in PostgreSQL
	_ "modernc.org/sqlite"             // and of one in a file

	"github.com/rhizodat/rhizodat-go/internal/restcatalog"
	"github.com/rhizodat/rhizodat-go/internal/tinydisk"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// Namespace of the table, and Columns of it behind its name.
const (
	Namespace = "crash"
	Columns   = "(txn string, stores int, k long) TBLPROPERTIES ('commit.retry.num-retries'='4')"
)

// Texts by which a proxy knows the requests to a catalog in PostgreSQL.
const (
	TextLoad   = `FROM "iceberg_tables"`   // where is the table's metadata?
	TextCommit = `UPDATE "iceberg_tables"` // it is there now
)

// Kind of a catalog.
type Kind string

// The catalogs. The zero Kind is Postgres.
const (
	Postgres Kind = ""
	SQLite   Kind = "sqlite"
	Dir      Kind = "dir"
	REST     Kind = "rest" // a server of this process
)

// Layout of a store.
type Layout struct {
	Kind Kind
	Rows int // of every unit; 0 is 40
	// Small puts the warehouse, and not the catalog, on a disk that can be filled.
	Small bool
	// Expires: snapshots may be missing.
	Expires bool
}

// Store is one catalog with its warehouse.
type Store struct {
	layout Layout
	dir    string
	db     *rig.Database // nil: the catalog is a file
	conn   *sql.DB
	opened catalog.Catalog     // nil until it is first asked
	rest   *restcatalog.Server // nil but for REST
	behind *sql.DB             // the catalog of rest
}

var _ rig.Other = (*Store)(nil)

// New makes a place for a catalog. db is the catalog's, where it is one in PostgreSQL.
// The error is ErrNoDisk where a small disk cannot be had.
func New(ctx context.Context, layout Layout, db *rig.Database) (*Store, error) {
	if layout.Rows == 0 {
		layout.Rows = 40
	}
	dir, err := os.MkdirTemp("", "rhizodat-lake-")
	if err != nil {
		return nil, fmt.Errorf("make directory of lake: %w", err)
	}
	s := &Store{layout: layout, dir: dir, db: db}
	if layout.Small {
		err = s.mount(ctx)
	}
	if err == nil && layout.Kind == REST {
		err = s.serve(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Rows of every unit.
func (s *Store) Rows() int { return s.layout.Rows }

// Way is the store's URL in a DSN.
func (s *Store) Way() string {
	tail := "warehouse=file://" + s.dir + "/wh&namespace=" + Namespace
	switch s.layout.Kind {
	case SQLite:
		return "iceberg+sqlite://" + s.dir + "/catalog.db?" + tail
	case Dir:
		return "iceberg+dir://" + s.dir + "/wh?namespace=" + Namespace
	case REST:
		return "iceberg+rest+" + s.rest.URL + "?" + tail
	case Postgres:
	}
	// Otherwise a text is sent once and later only its number, which no proxy knows.
	return "iceberg+" + s.db.DSN + s.separator() + "default_query_exec_mode=simple_protocol&" + tail
}

func (s *Store) separator() string {
	if strings.Contains(s.db.DSN, "?") {
		return "&"
	}
	return "?"
}

// Addr is the host:port of a catalog in PostgreSQL.
func (s *Store) Addr() string {
	u, err := url.Parse(s.db.DSN)
	if err != nil {
		panic("lake: own DSN does not parse") // made by the rig
	}
	return u.Host
}

// Via is Way through a proxy that listens at addr.
func (s *Store) Via(addr string) string { return strings.Replace(s.Way(), s.Addr(), addr, 1) }

// Prepared is empty: nothing can be prepared here.
func (s *Store) Prepared(context.Context) ([]string, error) { return nil, nil }

// Busy reports whether anybody else has a session with the catalog.
func (s *Store) Busy(ctx context.Context) (bool, error) {
	if s.rest != nil {
		return s.rest.Busy(), nil
	}
	if s.db == nil {
		return false, nil // the program is the server
	}
	if err := s.forget(); err != nil {
		return false, err
	}
	n, err := s.db.Sessions(ctx)
	return n > 0, err
}

// Files lists the data files below the table's directory, those of no snapshot too.
func (s *Store) Files() ([]string, error) { return s.list("data", "*.parquet") }

// Lists lists the table's manifest lists, those of no snapshot too: a commit writes
// one before it asks the catalog.
func (s *Store) Lists() ([]string, error) { return s.list("metadata", "snap-*.avro") }

func (s *Store) list(part, pattern string) ([]string, error) {
	var found []string
	for _, namespace := range []string{Namespace, Namespace + ".db"} {
		more, err := filepath.Glob(filepath.Join(s.dir, "wh", namespace, "ledger", part, pattern))
		if err != nil {
			return nil, fmt.Errorf("list files: %w", err)
		}
		found = append(found, more...)
	}
	return found, nil
}

// Close removes the warehouse.
func (s *Store) Close() error {
	errs := []error{s.forget()}
	if s.rest != nil {
		errs = append(errs, s.rest.Close(), s.behind.Close())
	}
	if s.layout.Small {
		errs = append(errs, tinydisk.Unmount(s.wh()))
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// forget closes the connection to the catalog; the next question opens another.
func (s *Store) forget() error {
	conn := s.conn
	s.conn, s.opened = nil, nil
	if conn == nil {
		return nil
	}
	return conn.Close()
}

// open opens the catalog, which its owner has made.
func (s *Store) open() (catalog.Catalog, error) {
	if s.opened != nil {
		return s.opened, nil
	}
	if s.rest != nil {
		return s.rest.Catalog, nil
	}
	if s.layout.Kind == Dir {
		opened, err := hadoop.NewCatalog("default", "file://"+s.dir+"/wh", lib.Properties{})
		if err != nil {
			return nil, fmt.Errorf("open catalog: %w", err)
		}
		s.opened = opened
		return opened, nil
	}
	driver, dsn, dialect := "sqlite", "file:"+s.dir+"/catalog.db?_pragma=busy_timeout(10000)", sqlcat.SQLite
	if s.layout.Kind == Postgres {
		driver, dsn, dialect = "pgx", s.db.DSN, sqlcat.Postgres
	}
	conn, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	opened, err := sqlcat.NewCatalog("default", conn, dialect, lib.Properties{"warehouse": "file://" + s.dir + "/wh", "init_catalog_tables": strconv.FormatBool(false)})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open catalog: %w", err), conn.Close())
	}
	s.conn, s.opened = conn, opened
	return opened, nil
}
