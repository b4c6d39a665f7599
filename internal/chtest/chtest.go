// Package chtest gives tests ClickHouse databases of their own.
//
// [Server] is the shared server of a test run, [Own] one that a test may stop,
// kill and configure. Both are thrown away afterwards. With
// RHIZODAT_TEST_CLICKHOUSE set, [Server] is the server that it names instead.
//
// What a test asks of a server goes by plain HTTP and never through the client
// library under test.
package chtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/chserver"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// Protocol is how a DSN reaches the server. Its text is the DSN's scheme.
type Protocol string

// The protocols.
const (
	Native Protocol = chserver.SchemeNative
	HTTP   Protocol = chserver.SchemeHTTP
)

// Protocols lists them.
var Protocols = []Protocol{Native, HTTP}

// Cluster is a ClickHouse server with as many databases as tests ask for. Its
// methods end the test when something goes wrong, so they have no error.
type Cluster struct {
	server *chserver.Server // nil: somebody's own server
	at     chserver.Endpoint
}

var shared = sync.OnceValues(func() (*Cluster, error) {
	if at, found, err := chserver.EnvEndpoint(); found || err != nil {
		return &Cluster{at: at}, err
	}
	// Not of any test's context: the server is for all of them, and ends with
	// the process.
	server, err := chserver.Launch(context.Background(), "")
	if err != nil {
		return nil, err
	}
	return launched(server), nil
})

// Server returns the server that all tests of a package share. The test is
// skipped where there is none.
func Server(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := shared()
	return usable(tb, c, err)
}

// Own starts a server for this test alone and removes it afterwards. config is
// XML for its <clickhouse> element; DIR in it stands for the server's directory.
func Own(tb testing.TB, config string) *Cluster {
	tb.Helper()
	server, err := chserver.Launch(tb.Context(), config)
	if err != nil {
		return usable(tb, nil, err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Errorf("close own server: %v", err)
		}
	})
	return launched(server)
}

func usable(tb testing.TB, c *Cluster, err error) *Cluster {
	tb.Helper()
	if errors.Is(err, chserver.ErrNoServer) {
		pgtest.Skip(tb, err.Error())
	}
	if err != nil {
		tb.Fatalf("clickhouse for tests: %v", err)
	}
	return c
}

func launched(server *chserver.Server) *Cluster {
	return &Cluster{server: server, at: server.Endpoint()}
}

// Database creates an empty database whose name begins with prefix and returns
// its name. It is dropped after the test.
func (c *Cluster) Database(tb testing.TB, prefix string) string {
	tb.Helper()
	name := strings.ToLower(prefix + "_" + rand.Text()[:12])
	c.Exec(tb, "CREATE DATABASE "+name)
	tb.Cleanup(func() {
		if c.server == nil || c.server.Running() {
			c.Exec(tb, "DROP DATABASE "+name+" SYNC")
		}
	})
	return name
}

// DSN is the URL of a database, in the words of rhizodat's own DSN.
func (c *Cluster) DSN(protocol Protocol, database string) string {
	if protocol == HTTP {
		return c.at.HTTP(database)
	}
	return c.at.Native(database)
}

// Addr is the server's host:port.
func (c *Cluster) Addr(protocol Protocol) string {
	if protocol == HTTP {
		return c.at.HTTPAddr()
	}
	return c.at.NativeAddr()
}

// Dir is an own server's directory.
func (c *Cluster) Dir() string { return c.server.Dir() }

// Configure replaces an own server's configuration, from the next Start on.
func (c *Cluster) Configure(tb testing.TB, config string) {
	tb.Helper()
	c.done(tb, "configure", c.server.Configure(config))
}

// Kill ends an own server by SIGKILL.
func (c *Cluster) Kill(tb testing.TB) {
	tb.Helper()
	c.done(tb, "kill", c.server.Kill())
}

// Stop stops an own server.
func (c *Cluster) Stop(tb testing.TB) {
	tb.Helper()
	c.done(tb, "stop", c.server.Stop())
}

// Start starts an own server again, on its old data and its old ports.
func (c *Cluster) Start(tb testing.TB) {
	tb.Helper()
	c.done(tb, "start", c.server.Start(context.WithoutCancel(tb.Context())))
}

func (c *Cluster) done(tb testing.TB, what string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(fmt.Errorf("%s server: %w", what, err))
	}
}
