package drevo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
)

// Store is one graph of a drevo server. It is safe for concurrent use.
type Store struct {
	name    string
	target  bolt.Target
	opts    Options
	work    atomic.Pointer[bolt.Graph] // the application's statements
	control *bolt.Graph                // ours
	probed  atomic.Bool                // Probe has found all well
	full    atomic.Bool                // an answer said that the server's disk is full
	stopped atomic.Bool                // a fence had the code of an old server
	owed    atomic.Int64               // sweeps to be written when the fence is down

	detaching sync.WaitGroup // connections that leave a prepared transaction
}

var (
	_ branches.Store  = (*Store)(nil)
	_ branches.Placer = (*Store)(nil)
)

// Open makes the store that a DSN knows as name. It does not connect. url is
// bolt://user:password@host:port/graph, or bolt+s or bolt+ssc for TLS; no graph is
// drevo's default one, "drevo".
func Open(name, url string, opts Options) (*Store, error) {
	if url == "" {
		return nil, fmt.Errorf("rhizodat: open store %s: no URL", name)
	}
	rest, err := cutOurs(url, &opts)
	if err != nil {
		return nil, fmt.Errorf("rhizodat: open store %s: %w", name, err)
	}
	target, err := bolt.Parse(rest)
	if err != nil {
		return nil, fmt.Errorf("rhizodat: open store %s: %w", name, err)
	}
	if opts.Wall == nil {
		opts.Wall = hlc.System
	}
	if opts.Patience <= 0 {
		opts.Patience = defaultPatience
	}
	s := &Store{name: name, target: target, opts: opts}
	// Neither connects, so that nothing has to be closed where one fails.
	control, controlErr := s.open(controlConns)
	work, workErr := s.open(workConns)
	if err := errors.Join(controlErr, workErr); err != nil {
		return nil, fmt.Errorf("rhizodat: open store %s: %w", name, err)
	}
	s.control = control
	s.work.Store(work)
	return s, nil
}

func (s *Store) open(conns int) (*bolt.Graph, error) {
	return bolt.Open(s.target, bolt.Options{Connections: conns, Wall: s.opts.Wall, Configure: s.opts.Configure})
}

// Name is the store's name in the DSN.
func (s *Store) Name() string { return s.name }

// Connect opens a session. It sends nothing: a session borrows a connection for
// each statement or transaction.
func (s *Store) Connect(context.Context) (branches.Session, error) {
	return &Session{store: s}, nil
}

// Place is drevo:<id of the graph>/<graph>, the id being that of a node which
// Install makes. branches.ErrNotInstalled where there is none.
func (s *Store) Place(ctx context.Context) (branches.Place, error) {
	place, err := s.control.Place(ctx)
	return place, s.fail("find place", err)
}

// Close closes the connections. Prepared branches stay.
func (s *Store) Close() error {
	s.detaching.Wait() // each has a bound of its own
	return errors.Join(s.work.Load().Close(), s.control.Close())
}

// renew gives up every connection of the application's statements, since one of
// them may hold drevo's mark of a prepared transaction: the driver cannot close one
// alone, and would hand it to the next unit, whose COMMIT then did nothing.
func (s *Store) renew(spoiled *bolt.Graph) error {
	fresh, err := s.open(workConns)
	if err != nil {
		return errors.Join(err, spoiled.Close())
	}
	if !s.work.CompareAndSwap(spoiled, fresh) {
		return fresh.Close() // another unit has done it
	}
	return spoiled.Close()
}
