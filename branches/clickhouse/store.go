package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Store is one database of a ClickHouse server. It is safe for concurrent use.
type Store struct {
	name     string
	database string
	applied  string // the marker table's full name, quoted
	meta     string
	opts     Options
	config   *client.Options
	work     client.Conn // the application's statements
	control  client.Conn // ours
	probed   atomic.Bool // Probe has found all well

	mu     sync.Mutex
	known  map[tableName]*table // as last seen; Stage looks again
	moment func(moment)         // tests hold a finisher here; nil outside of them

	deleteTime time.Duration
	errands    *errands
}

// maxDrift is of no consequence here: nobody's time is observed.
const maxDrift = time.Minute

// moment is a place in the finisher where a test may hold it.
type moment string

const (
	momentQuiet    moment = "quiet"    // between a quiet server and the count
	momentCounted  moment = "counted"  // between the count and what it leads to
	momentDeleted  moment = "deleted"  // between the DELETE and the next count
	momentInserted moment = "inserted" // between the last insert and the marker
	momentSettled  moment = "settled"  // between the tombstone and the rows
)

func (s *Store) reach(m moment) {
	if s.moment != nil {
		s.moment(m)
	}
}

var _ branches.Store = (*Store)(nil)

// Open makes the store that a DSN knows as name. It does not connect. dsn is
// clickhouse-go's own, with the scheme clickhouse, clickhouse+http or
// clickhouse+https; it is empty where opts bring the client's Options.
func Open(name, dsn string, opts Options) (*Store, error) {
	s := &Store{name: name, known: map[tableName]*table{}, deleteTime: defaultDeleteTime, errands: newErrands()}
	switch {
	case opts.Client != nil && dsn != "":
		return nil, fmt.Errorf("rhizodat: open store %s: one of DSN and client Options is wanted", name)
	case opts.Client != nil:
		config := *opts.Client
		s.config = &config
	case dsn == "":
		return nil, fmt.Errorf("rhizodat: open store %s: no DSN", name)
	default:
		config, err := parseDSN(dsn, &opts)
		if err != nil {
			return nil, fmt.Errorf("rhizodat: open store %s: %w", name, err)
		}
		s.config = config
	}
	s.opts = opts
	s.defaults()
	s.database = s.config.Auth.Database
	s.applied = tableName{s.database, appliedTable}.quoted()
	s.meta = tableName{s.database, metaTable}.quoted()
	return s, s.open()
}

func (s *Store) defaults() {
	if s.config.Auth.Database == "" {
		s.config.Auth.Database = "default"
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
	if s.opts.Patience <= 0 {
		s.opts.Patience = defaultPatience
	}
}

// open makes the two pools. Neither connects.
func (s *Store) open() error {
	work, control := *s.config, *s.config
	if work.MaxOpenConns <= 0 {
		work.MaxOpenConns = defaultConns
	}
	control.MaxOpenConns, control.MaxIdleConns = controlConns, controlConns
	// The client's own log would show the rows that stand behind a statement.
	control.Logger = slog.New(slog.DiscardHandler)
	control.Debug = false //nolint:staticcheck // deprecated, and who uses it would get the rows too
	var err error
	if s.work, err = client.Open(&work); err != nil {
		return fmt.Errorf("rhizodat: open store %s: %s", s.name, reason(s.secretText(), err))
	}
	if s.control, err = client.Open(&control); err != nil {
		return errors.Join(fmt.Errorf("rhizodat: open store %s: %s", s.name, reason(s.secretText(), err)), s.work.Close())
	}
	return nil
}

// secretText is a DSN with the password, to look for it in an error.
func (s *Store) secretText() string {
	return "//" + s.config.Auth.Username + ":" + s.config.Auth.Password + "@"
}

// Name is the store's name in the DSN.
func (s *Store) Name() string { return s.name }

// Connect opens a session. Sessions share the store's pools, so nothing is
// reached before a statement needs it.
func (s *Store) Connect(context.Context) (branches.Session, error) {
	return &Session{store: s}, nil
}

// Close ends the store's connections. An insert of a decided branch that is still
// running is waited for, half a minute at most: cut off, it would have to be begun
// anew by another process.
func (s *Store) Close() error {
	s.errands.end(leavePatience)
	return errors.Join(s.work.Close(), s.control.Close())
}

// http reports whether the store speaks HTTP.
func (s *Store) http() bool { return s.config.Protocol == client.HTTP }
