package bolt

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"

	"github.com/rhizodat/rhizodat-go/hlc"
)

// Graph is one graph of one server, over a pool of connections of its own. It is
// safe for concurrent use.
type Graph struct {
	driver neo4j.DriverWithContext
	name   string
	wall   hlc.Wall
	once   sync.Once
	closed error

	// first lets one caller at a time connect until one has tried.
	first     chan struct{}
	connected atomic.Bool
}

// Options of a Graph. The zero Options are usable.
type Options struct {
	// Connections bounds the pool. 0 is the driver's own bound.
	Connections int
	// Wall is the clock that waits are measured by; nil is hlc.System.
	Wall hlc.Wall
	// Configure may change the driver's configuration last of all.
	Configure func(*config.Config)
}

// idle is after what rest a connection is asked for a sign of life before it is
// used: a server that was restarted has left them all dead.
const idle = time.Second

// Open makes the Graph of t. It does not connect.
func Open(t Target, opts Options) (*Graph, error) {
	driver, err := neo4j.NewDriverWithContext(t.server, t.auth(), func(c *config.Config) {
		c.UserAgent = "rhizodat-go"
		c.ConnectionLivenessCheckTimeout = idle
		c.TelemetryDisabled = true
		if opts.Connections > 0 {
			c.MaxConnectionPoolSize = opts.Connections
		}
		if opts.Configure != nil {
			opts.Configure(c)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("open bolt driver: %w", err)
	}
	if opts.Wall == nil {
		opts.Wall = hlc.System
	}
	return &Graph{driver: driver, name: t.Graph, wall: opts.Wall, first: make(chan struct{}, 1)}, nil
}

// Name is the graph's name on its server.
func (g *Graph) Name() string { return g.name }

// Session is a session of the driver on this graph; the caller closes it. It
// takes whole results: drevo refuses a second statement of a transaction while
// rows of the first are under way.
func (g *Graph) Session(ctx context.Context) neo4j.SessionWithContext {
	g.connect(ctx)
	return g.driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: g.name, FetchSize: neo4j.FetchAll})
}

// connect makes the driver's first connection, alone: the driver's connector fills
// a field of its own when it is first called, and reads it without a lock beside
// that (v5.28.4, found by the race detector). An error will be met again by whoever
// uses the session.
func (g *Graph) connect(ctx context.Context) {
	if g.connected.Load() {
		return
	}
	select {
	case g.first <- struct{}{}:
		defer func() { <-g.first }()
	case <-ctx.Done():
		return
	}
	if g.connected.Load() {
		return
	}
	if err := g.driver.VerifyConnectivity(ctx); err == nil || ctx.Err() == nil {
		g.connected.Store(true) // tried: the field is filled
	}
}

// Close closes the connections. A second call does nothing.
func (g *Graph) Close() error {
	g.once.Do(func() {
		// What is closed last has no call left to take a context from.
		ctx, cancel := tidying(context.Background())
		defer cancel()
		g.closed = g.driver.Close(ctx)
	})
	return g.closed
}

// Read runs a statement that writes nothing, by autocommit: an explicit
// transaction would be refused at COMMIT for every write beside it. What it
// sees is on the server's disk.
func (g *Graph) Read(ctx context.Context, cypher string, params map[string]any) ([][]any, error) {
	var rows [][]any
	err := g.again(ctx, func() error {
		session := g.Session(ctx)
		result, err := session.Run(ctx, cypher, params)
		if err == nil {
			rows, err = collect(ctx, result)
		}
		return end(ctx, session, err)
	})
	return rows, err
}

// end closes a session. What it fails with says nothing about what was done in
// it.
func end(ctx context.Context, session neo4j.SessionWithContext, err error) error {
	ctx, cancel := tidying(ctx)
	defer cancel()
	_ = session.Close(ctx)
	return err
}

// tidying is for what has to be done although ctx may have ended. The bound is
// for a server that does not answer: the driver then closes the connection.
func tidying(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
}

// collect takes the values of every row.
func collect(ctx context.Context, result neo4j.ResultWithContext) ([][]any, error) {
	records, err := result.Collect(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([][]any, len(records))
	for i, r := range records {
		rows[i] = r.Values
	}
	return rows, nil
}
