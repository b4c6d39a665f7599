package iceberg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/catalogs"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/files"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Store is one namespace of an Iceberg catalog. It is safe for concurrent use.
type Store struct {
	name     string
	opts     Options
	to       target
	files    *files.FS
	catalog  *catalogs.Catalog
	finisher *change.Finisher
	probed   atomic.Bool // Probe has found all well

	mu       sync.Mutex
	identity string // of the catalog; empty until somebody has asked
	// doubts are the one-phase commits of this process whose answer was lost: what
	// Settle needs to know of them beside their id.
	doubts map[branches.TxnID]*doubt
}

// maxDrift is of no consequence here: nobody's time is observed.
const maxDrift = time.Minute

var _ branches.Store = (*Store)(nil)

// Open makes the store that a DSN knows as name. It does not connect. dsn is
// iceberg+sqlite:///FILE, iceberg+postgres://…, iceberg+rest+http(s)://… or
// iceberg+dir:///DIR, with the parameters of the package comment.
func Open(name, dsn string, opts Options) (*Store, error) {
	to, err := parseDSN(dsn, opts.Properties)
	if err != nil {
		return nil, fmt.Errorf("rhizodat: open store %s: %w", name, err)
	}
	s := &Store{name: name, opts: opts, to: to, files: files.New(), doubts: map[branches.TxnID]*doubt{}}
	s.defaults()
	s.to.catalog.Files = s.files
	s.catalog = catalogs.New(s.to.catalog)
	s.finisher = &change.Finisher{Catalog: s.catalog, Redo: s.redo}
	return s, nil
}

func (s *Store) defaults() {
	if s.opts.FlushRows <= 0 {
		s.opts.FlushRows = defaultFlushRows
	}
	if s.opts.FlushBytes <= 0 {
		s.opts.FlushBytes = defaultFlushBytes
	}
	if s.opts.CommitWait <= 0 {
		s.opts.CommitWait = defaultCommitWait
	}
	if s.opts.Wall == nil {
		s.opts.Wall = hlc.System
	}
	if s.opts.Clock == nil {
		s.opts.Clock = hlc.NewClock(s.opts.Wall, maxDrift)
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.Default()
	}
}

// Name is the store's name in the DSN.
func (s *Store) Name() string { return s.name }

// Connect opens a session. Sessions share the store's catalog, so nothing is
// reached before a statement needs it.
func (s *Store) Connect(context.Context) (branches.Session, error) {
	return &Session{store: s}, nil
}

// Close closes the catalog.
func (s *Store) Close() error {
	err := s.catalog.Close()
	s.files.Close()
	return s.fail("close store", err)
}

// ident is the full name of a table: one that is named alone is in the store's
// namespace.
func (s *Store) ident(namespace []string, name string) table.Identifier {
	if len(namespace) == 0 {
		namespace = s.to.namespace
	}
	return append(append(table.Identifier{}, namespace...), name)
}

// own reports whether a table is in the store's namespace, the only one that its
// units write to: markers are looked for there and nowhere else.
func (s *Store) own(ident table.Identifier) bool {
	return len(ident) == len(s.to.namespace)+1 && strings.Join(ident[:len(ident)-1], "\x00") == strings.Join(s.to.namespace, "\x00")
}

// onObjects reports whether the warehouse is an object store.
func (s *Store) onObjects() bool { return !strings.HasPrefix(s.to.warehouse, "file://") }

var (
	errBranchOpen = errors.New("a branch is open on this session")
	errNoContext  = errors.New("rhizodat: run prepared statement: call it with a context")
	errNoMark     = errors.New("no such savepoint")
	errNoTime     = errors.New("the unit has no dat_tx_time")
)
