// Package sqlite keeps a journal in a SQLite database: one file on one host,
// for development and single-process embedded use.
//
// journal=file:///var/lib/app/journal.db is opened only when it is written so.
// Recovery has to run on this host, and what the disk loses is lost: use
// journal/postgres for everything else.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/internal/places"
	"github.com/rhizodat/rhizodat-go/journal/sqljournal"
)

// Scheme is the scheme of the URL that Open takes.
const Scheme = "file"

// Open makes the journal of a file:///path URL. It touches no file: Install
// makes it, and until then calls answer branches.ErrNotInstalled.
func Open(location string, opts journal.Options) (journal.Journal, error) {
	path, err := parse(location)
	if err != nil {
		return nil, err
	}
	opts = opts.WithDefaults()
	db, err := sql.Open("sqlite", dataSource(path))
	if err != nil {
		return nil, fmt.Errorf("rhizodat: open journal: %w", err)
	}
	opts.Logger.Warn("rhizodat: the journal is a file on this host: for development and single-process use only",
		slog.String("path", path))
	pool := &pool{Pool: sqljournal.NewDBPool(db, opts.Places, 1, begin, translate), path: path}
	return &file{sqljournal.New(pool, dialect{path: path}, opts), path}, nil
}

// parse takes file:///path and nothing that only looks like it: SQLite itself
// would read file:journal.db and file://host/journal.db as files beside the
// program.
func parse(location string) (string, error) {
	refuse := func(why string) error {
		return fmt.Errorf("rhizodat: open journal: %s: write file:///absolute/path", why)
	}
	u, err := url.Parse(location)
	switch {
	case err != nil:
		return "", refuse("the location is not a URL")
	case u.Scheme != Scheme:
		return "", refuse("the scheme is not file")
	case u.Host != "" || u.User != nil:
		return "", refuse("a file has no host")
	case u.RawQuery != "" || u.Fragment != "":
		return "", refuse("a file has no options (? and # in a path are %3F and %23)")
	case u.Opaque != "" || !filepath.IsAbs(u.Path):
		return "", refuse("the path is relative")
	case strings.HasSuffix(u.Path, "/"):
		return "", refuse("the path is a folder")
	case strings.ContainsRune(u.Path, 0):
		return "", refuse("the path holds a NUL")
	}
	return filepath.Clean(u.Path), nil
}

// dataSource: mode=rw, so that a wrong path does not leave an empty database
// where no journal ever was.
func dataSource(path string) string {
	u := url.URL{Scheme: Scheme, Path: path}
	return u.String() + "?mode=rw&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=fullfsync(1)"
}

// begin: synchronous cannot change inside a transaction. In WAL mode NORMAL
// loses at most the last commits in a crash of the host, and FULL none.
func begin(m sqljournal.Mode) []string {
	switch m {
	case sqljournal.Read:
		return []string{`BEGIN`}
	case sqljournal.Unforced:
		return []string{`PRAGMA synchronous = NORMAL`, `BEGIN IMMEDIATE`}
	case sqljournal.Forced:
		return []string{`PRAGMA synchronous = FULL`, `BEGIN IMMEDIATE`}
	}
	return nil
}

// file is a journal whose Install makes the file first.
type file struct {
	*sqljournal.Journal
	path string
}

// Install makes the file and its tables, or upgrades them.
func (f *file) Install(ctx context.Context) error {
	made, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = made.Close()
	}
	if err != nil {
		return fmt.Errorf("rhizodat: install journal: %w", err)
	}
	return f.Journal.Install(ctx)
}

// pool tells a file that is not there from one that cannot be opened.
type pool struct {
	sqljournal.Pool
	path string
}

func (p *pool) Take(ctx context.Context, spare bool) (sqljournal.Conn, error) {
	if err := p.there(); err != nil {
		return nil, err
	}
	return p.Pool.Take(ctx, spare)
}

func (p *pool) Reserved(ctx context.Context, purpose places.Purpose) (sqljournal.Conn, error) {
	if err := p.there(); err != nil {
		return nil, err
	}
	return p.Pool.Reserved(ctx, purpose)
}

func (p *pool) there() error {
	if _, err := os.Stat(p.path); errors.Is(err, os.ErrNotExist) {
		return branches.ErrNotInstalled
	}
	return nil
}

// translate finds the error that says that a table is missing. SQLite has no
// code for it, only the text.
func translate(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == codeError && strings.Contains(e.Error(), "no such table") {
		return fmt.Errorf("%w: %w", branches.ErrNotInstalled, err)
	}
	return err
}
