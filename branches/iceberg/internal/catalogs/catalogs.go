// Package catalogs opens Iceberg catalogs of four kinds, each when it is first
// needed, and adds what iceberg-go's own interface lacks: which catalog it is, and
// a namespace property that is changed by compare-and-set.
package catalogs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/files"
)

// Kind is where a catalog keeps its tables.
type Kind string

// The kinds.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
	REST     Kind = "rest"
	Dir      Kind = "dir" // Hadoop's: a local directory
)

// Config says which catalog it is.
type Config struct {
	Kind     Kind
	Path     string          // of SQLite's file, of Dir's directory
	Postgres *pgx.ConnConfig // of Postgres
	URI      *url.URL        // of REST
	Name     string          // catalog_name of a SQL catalog
	Props    iceberg.Properties
	Files    *files.FS
}

// Catalog is one catalog. Nothing is reached before its first use. It is safe for
// concurrent use.
type Catalog struct {
	cfg  Config
	turn chan struct{} // holds one token: held while the catalog is being opened

	// Guarded by turn.
	opened  catalog.Catalog
	db      *sql.DB
	objects *objects
	closed  bool
}

var (
	// ErrMissing says that the catalog itself is not there: a SQL catalog without
	// its tables, a directory that does not exist.
	ErrMissing = errors.New("the catalog does not exist yet")
	errClosed  = errors.New("the store is closed")
)

// New makes a catalog that is not open yet.
func New(cfg Config) *Catalog {
	c := &Catalog{cfg: cfg, turn: make(chan struct{}, 1)}
	if cfg.Kind != REST {
		c.cfg.Props = c.cfg.props()
	}
	return c
}

// props are the catalog's properties with our own file IO.
func (c Config) props() iceberg.Properties {
	props := iceberg.Properties{}
	maps.Copy(props, c.Props)
	c.Files.Props(props)
	return props
}

// Get opens the catalog where it is not open. One that does not exist is
// ErrMissing.
func (c *Catalog) Get(ctx context.Context) (catalog.Catalog, error) { return c.get(ctx, false) }

// Create makes the catalog where it does not exist, and opens it.
func (c *Catalog) Create(ctx context.Context) (catalog.Catalog, error) { return c.get(ctx, true) }

func (c *Catalog) get(ctx context.Context, create bool) (catalog.Catalog, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // the directory's catalog would not notice
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	switch {
	case c.closed:
		return nil, errClosed
	case c.opened != nil:
		return c.opened, nil
	}
	if err := c.cfg.Files.InUse(ctx); err != nil {
		return nil, err
	}
	var err error
	if c.objects == nil {
		if c.objects, err = newObjects(ctx, c.cfg.Props); err != nil {
			return nil, err
		}
	}
	switch c.cfg.Kind {
	case SQLite, Postgres:
		err = c.openSQL(ctx, create)
	case REST:
		err = c.openREST(ctx)
	case Dir:
		err = c.openDir(create)
	default:
		err = fmt.Errorf("unknown kind of catalog %q", c.cfg.Kind)
	}
	return c.opened, err
}

// Opened is the library's catalog where it is open, else nil.
func (c *Catalog) Opened() catalog.Catalog {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	return c.opened
}

// Load loads a table as it is now.
func (c *Catalog) Load(ctx context.Context, ident table.Identifier) (*table.Table, error) {
	opened, err := c.Get(ctx)
	if err != nil {
		return nil, err
	}
	tbl, err := opened.LoadTable(c.objects.with(ctx), ident)
	if err != nil {
		return nil, err
	}
	if c.cfg.Kind == REST {
		return tbl, nil // its server may hand out credentials, which the library renews
	}
	return c.objects.table(tbl, opened), nil
}

// Commit gives a commit of a table to the catalog, once.
func (c *Catalog) Commit(ctx context.Context, commit table.TableCommit) error {
	opened, err := c.Get(ctx)
	if err != nil {
		return err
	}
	_, _, err = opened.CommitTable(c.objects.with(ctx), commit.Identifier, commit.Requirements, commit.Updates)
	return err
}

// CreateTable makes a table.
func (c *Catalog) CreateTable(ctx context.Context, ident table.Identifier, schema *iceberg.Schema, opts ...catalog.CreateTableOpt) error {
	opened, err := c.Get(ctx)
	if err != nil {
		return err
	}
	_, err = opened.CreateTable(c.objects.with(ctx), ident, schema, opts...)
	return err
}

// Tables lists the tables of a namespace.
func (c *Catalog) Tables(ctx context.Context, namespace table.Identifier) ([]table.Identifier, error) {
	opened, err := c.Get(ctx)
	if err != nil {
		return nil, err
	}
	var found []table.Identifier
	for ident, err := range opened.ListTables(ctx, namespace) {
		if err != nil {
			return nil, err
		}
		found = append(found, ident)
	}
	return found, nil
}

// Close closes what was opened. The catalog's files are the caller's.
func (c *Catalog) Close() error {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.closed = true
	var errs []error
	if closer, ok := c.opened.(catalog.Closer); ok {
		errs = append(errs, closer.Close())
	}
	if c.db != nil {
		errs = append(errs, c.db.Close())
	}
	c.objects.close()
	c.opened, c.db = nil, nil
	return errors.Join(errs...)
}
