package rhizodat

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Connector is one opened deployment: its stores, its journal, its coordinator.
// sql.OpenDB(connector) makes a pool of it, and closing that pool closes it.
type Connector struct {
	cfg         *Config
	stores      map[string]branches.Store
	journal     journal.Journal // nil without one
	clock       *hlc.Clock
	coordinator *coordinator.Coordinator
	admission   admission
	closing     sync.Once
	closed      error
}

var (
	_ driver.Connector = (*Connector)(nil)
	_ io.Closer        = (*Connector)(nil)
)

// NewConnector opens what cfg describes. It connects to nothing, so that one
// store's outage does not stop the others.
func NewConnector(cfg *Config) (*Connector, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Connector{cfg: cfg.WithDefaults(), stores: map[string]branches.Store{}}
	c.clock = hlc.NewClock(hlc.System, c.cfg.MaxClockDrift)
	env := StoreEnv{Config: c.cfg, Wall: c.clock.Wall(), Clock: c.clock, journal: func() journal.Journal { return c.journal }}
	//nolint:forbidigo // an opener must not connect: there is no call to take a context from
	ctx := context.Background()
	if err := c.open(ctx, env); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	split, _ := c.cfg.Observer.(coordinator.Splitter)
	c.coordinator = coordinator.New(coordinator.Config{
		Journal:       c.journal,
		Clock:         c.clock,
		CommitTimeout: c.cfg.CommitTimeout,
		FinishTimeout: c.cfg.FinishTimeout,
		MinFree:       c.cfg.MinFree,
		MaxPayload:    c.cfg.MaxPayload,
		Markers:       c.markers(),
		Admit:         c.admit,
		SplitDecision: split != nil && split.SplitDecision(),
		Logger:        c.cfg.Logger,
		Observer:      c.cfg.Observer,
	})
	return c, nil
}

func (c *Connector) open(ctx context.Context, env StoreEnv) error {
	for _, name := range c.cfg.StoreNames() {
		open, err := storeOpener(name, c.cfg.Stores[name])
		if err != nil {
			return err
		}
		store, err := open(ctx, name, c.cfg.Stores[name], env)
		if err != nil {
			return fmt.Errorf("rhizodat: open store %s: %w", name, err)
		}
		c.stores[name] = store
	}
	if c.cfg.Journal.IsZero() {
		return nil
	}
	open, err := journalOpener(c.cfg.Journal)
	if err != nil {
		return err
	}
	if c.journal, err = open(ctx, c.cfg.Journal, env); err != nil {
		return fmt.Errorf("rhizodat: open journal: %w", err)
	}
	return nil
}

func (c *Connector) markers() bool { return c.cfg.marked() }

// marked reports whether a commit of one branch leaves its marker. With one
// store and no journal the driver is the store's own driver and nothing else.
func (c *Config) marked() bool {
	return c.Markers == MarkersOn || !c.Journal.IsZero() || len(c.Stores) > 1
}

// Connect makes a driver connection. Stores are reached when a statement first
// needs them; with one store, and a pool that asks for a connection, at once.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (c *Connector) connect(ctx context.Context) (*conn, error) {
	conn := newConn(c)
	if len(c.stores) > 1 {
		return conn, nil
	}
	if err := conn.open(ctx, conn.only); err != nil {
		return nil, err
	}
	return conn, nil
}

// Driver returns the driver that this connector belongs to.
func (c *Connector) Driver() driver.Driver { return &Driver{} }

// Close writes what commits still owe to the journal, within finish_timeout,
// and closes journal and stores. Prepared branches stay for recovery.
func (c *Connector) Close() error {
	c.closing.Do(func() {
		var errs []error
		if c.coordinator != nil {
			errs = append(errs, c.coordinator.Close())
		}
		if c.journal != nil {
			errs = append(errs, c.journal.Close())
		}
		for _, s := range c.stores {
			errs = append(errs, s.Close())
		}
		c.closed = errors.Join(errs...)
	})
	return c.closed
}

// kindOf classifies an error that a statement of any store has returned.
func (c *Connector) kindOf(err error) branches.Kind {
	if aborted, ok := errors.AsType[*coordinator.Aborted](err); ok {
		return aborted.Kind
	}
	for _, name := range c.cfg.StoreNames() {
		if k := branches.Classify(c.stores[name], err); k != branches.Permanent {
			return k
		}
	}
	return branches.Permanent
}
