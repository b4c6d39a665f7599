// Package events is a ClickHouse store for the crash tests: a server that may
// be killed, and databases with one table, whose rows are counted unit by unit.
// What is asked of a server goes by plain HTTP, past the client under test.
package events

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/internal/chserver"
)

// ErrNoServer says that this machine has no ClickHouse engine.
var ErrNoServer = chserver.ErrNoServer

// Engine is a ClickHouse server of our own.
type Engine struct {
	server *chserver.Server
	at     chserver.Endpoint
}

// Launch starts a server; config is XML of its configuration, as chserver takes
// it. The error is ErrNoServer where there is no engine.
func Launch(ctx context.Context, config string) (*Engine, error) {
	server, err := chserver.Launch(ctx, config)
	if err != nil {
		return nil, err
	}
	return &Engine{server: server, at: server.Endpoint()}, nil
}

// Crash ends the server by SIGKILL.
func (e *Engine) Crash(context.Context) error { return e.server.Kill() }

// Start starts a server that crashed, at its old address.
func (e *Engine) Start(ctx context.Context) error { return e.server.Start(ctx) }

// Reconfigure kills the server and starts it with another configuration.
func (e *Engine) Reconfigure(ctx context.Context, config string) error {
	return errors.Join(e.server.Configure(config), e.server.Kill(), e.server.Start(ctx))
}

// Close removes the server and all that it holds.
func (e *Engine) Close() error { return e.server.Close() }

// Layout of a store. The zero Layout is one of a few rows a unit.
type Layout struct {
	HTTP       bool   // the store is reached by HTTP and not by the native protocol
	Rows       int    // of every unit; 0 is 40
	Partitions int    // that they go into; 0 is 4
	Window     int    // of deduplication; 0 is none, the default of a MergeTree
	Columns    string // further ones, with a comma in front
	Settings   string // of the table, the same
}

// Store makes a database with a ledger.
func (e *Engine) Store(ctx context.Context, layout Layout) (*Store, error) {
	if layout.Rows == 0 {
		layout.Rows = 40
	}
	if layout.Partitions == 0 {
		layout.Partitions = 4
	}
	s := &Store{
		engine: e, layout: layout, deleted: map[string]deletion{},
		database: "events_" + strings.ToLower(rand.Text()[:8]),
	}
	for _, query := range []string{
		"CREATE DATABASE " + s.database,
		fmt.Sprintf(`CREATE TABLE %s (k UInt64, stores Int32, dat_txn Nullable(UUID), dat_tx_time Nullable(Int64)%s)
			ENGINE = MergeTree ORDER BY k PARTITION BY k %% %d SETTINGS non_replicated_deduplication_window=%d%s`,
			s.Table(), layout.Columns, layout.Partitions, layout.Window, layout.Settings),
	} {
		if _, err := s.Ask(ctx, query); err != nil {
			return nil, err
		}
	}
	return s, nil
}
