// Package drevotest gives tests drevo graphs of their own.
//
// [Server] is the shared server of a test run, [Own] one that a test may stop,
// kill and start with faults. Both are thrown away afterwards. With
// RHIZODAT_TEST_DREVO set to a bolt:// URL, [Server] is the server that it names
// instead, and RHIZODAT_TEST_DREVO_HTTP its http:// URL, by which graphs are made.
package drevotest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"

	"github.com/rhizodat/rhizodat-go/internal/drevoserver"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// patience bounds every single request of this package.
const patience = 30 * time.Second

// Cluster is a drevo server with as many graphs as tests ask for. Its methods end
// the test when something goes wrong, so they have no error.
type Cluster struct {
	server *drevoserver.Server // nil: somebody's own server
	bolt   *url.URL
	http   *url.URL
}

var shared = sync.OnceValues(func() (*Cluster, error) {
	if dsn := os.Getenv(drevoserver.EnvServer); dsn != "" {
		return external(dsn, os.Getenv(drevoserver.EnvServerHTTP))
	}
	// Not of any test's context: the server is for all of them, and ends with
	// the process.
	server, err := drevoserver.Launch(context.Background())
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

// Own starts a server for this test alone and removes it afterwards. args are
// drevo-rig's, such as "--prepared-timeout", "2", and hold until its end; a later
// Start has arguments of its own. It is always the project's own rig, also where
// Server is somebody's.
func Own(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	c := Stopped(tb)
	c.Start(tb, args...)
	return c
}

// Stopped is Own before its first Start.
func Stopped(tb testing.TB) *Cluster {
	tb.Helper()
	server, err := drevoserver.New()
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
	if errors.Is(err, drevoserver.ErrNoServer) {
		pgtest.Skip(tb, err.Error())
	}
	if err != nil {
		tb.Fatalf("drevo for tests: %v", err)
	}
	return c
}

func launched(server *drevoserver.Server) *Cluster {
	c := &Cluster{server: server}
	c.locate()
	return c
}

// locate reads the server's addresses, which its first Start fixes.
func (c *Cluster) locate() {
	c.bolt = &url.URL{Scheme: "bolt", Host: c.server.Bolt()}
	c.http = &url.URL{Scheme: "http", Host: c.server.HTTP()}
}

func external(bolt, web string) (*Cluster, error) {
	c := &Cluster{}
	var err error
	if c.bolt, err = url.Parse(bolt); err != nil || !strings.HasPrefix(c.bolt.Scheme, "bolt") {
		// Without err: it would print the URL and its password.
		return nil, errors.New("rhizodat: read " + drevoserver.EnvServer + ": not a bolt:// URL")
	}
	if web == "" {
		c.http = &url.URL{Scheme: "http", Host: net.JoinHostPort(c.bolt.Hostname(), "8080")}
		return c, nil
	}
	if c.http, err = url.Parse(web); err != nil || !strings.HasPrefix(c.http.Scheme, "http") {
		return nil, errors.New("rhizodat: read " + drevoserver.EnvServerHTTP + ": not an http:// URL")
	}
	return c, nil
}

// Graph makes an empty graph whose name begins with prefix. It is dropped after
// the test.
func (c *Cluster) Graph(tb testing.TB, prefix string) *Graph {
	tb.Helper()
	name := strings.ToLower(prefix + "_" + rand.Text()[:12])
	c.request(tb, http.MethodPost, "/databases", `{"name":"`+name+`"}`)
	tb.Cleanup(func() {
		if c.server == nil || c.server.Running() {
			c.request(tb, http.MethodDelete, "/databases/"+name, "")
		}
	})
	return c.Named(tb, name)
}

// Named is a graph that is there already; "drevo" is every server's default one.
func (c *Cluster) Named(tb testing.TB, name string) *Graph {
	tb.Helper()
	auth := neo4j.NoAuth()
	if user := c.bolt.User; user != nil {
		password, _ := user.Password()
		auth = neo4j.BasicAuth(user.Username(), password, "")
	}
	driver, err := neo4j.NewDriverWithContext(c.bolt.Scheme+"://"+c.bolt.Host, auth, func(conf *config.Config) {
		conf.ConnectionLivenessCheckTimeout = 0 // the server may have been restarted since
	})
	if err != nil {
		tb.Fatalf("drevo for tests: %v", err)
	}
	tb.Cleanup(func() { _ = driver.Close(context.WithoutCancel(tb.Context())) })
	// Not by several goroutines at once: the driver's first connection has a data
	// race (Connector.Connect sets SupplyConnection).
	if err := driver.VerifyConnectivity(tb.Context()); err != nil {
		tb.Fatalf("drevo for tests: %v", err)
	}
	return &Graph{cluster: c, name: name, driver: driver}
}

// request asks the server's HTTP side. Its context is detached: that of a test
// has ended when its cleanups run.
func (c *Cluster) request(tb testing.TB, method, path, body string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.http.JoinPath(path).String(), strings.NewReader(body))
	if err != nil {
		tb.Fatalf("ask test server: %v", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatalf("ask test server: %v", err)
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode >= http.StatusMultipleChoices {
		tb.Fatalf("ask test server: %s %s: %s %s %v", method, path, response.Status, answer, err)
	}
}

// Addr is the host:port of the Bolt protocol.
func (c *Cluster) Addr() string { return c.bolt.Host }

// URL is the URL of a graph, in the words of rhizodat's own DSN.
func (c *Cluster) URL(graph string) string {
	dsn := *c.bolt
	dsn.Path = "/" + graph
	return dsn.String()
}

// Data is an own server's data directory: a graph's log is
// databases/NAME/native.wal below it, that of "drevo" native.wal.
func (c *Cluster) Data() string { return c.server.Data() }

// Start starts an own server again, on its data and its ports.
func (c *Cluster) Start(tb testing.TB, args ...string) {
	tb.Helper()
	if err := c.TryStart(tb, args...); err != nil {
		tb.Fatal(err)
	}
}

// TryStart is Start for what may fail.
func (c *Cluster) TryStart(tb testing.TB, args ...string) error {
	tb.Helper()
	if err := c.server.Start(context.WithoutCancel(tb.Context()), args...); err != nil {
		return err
	}
	c.locate()
	return nil
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

// Restart is Kill and Start.
func (c *Cluster) Restart(tb testing.TB, args ...string) {
	tb.Helper()
	c.Kill(tb)
	c.Start(tb, args...)
}

// Wait waits for an own server that a fault ends and returns its exit code.
func (c *Cluster) Wait(tb testing.TB) int {
	tb.Helper()
	code, err := c.server.Wait()
	c.done(tb, "wait for", err)
	return code
}

func (c *Cluster) done(tb testing.TB, what string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(fmt.Errorf("%s server: %w", what, err))
	}
}
