// Package graph is a drevo store for the crash tests: a server that may be
// killed, started with faults and kept from writing, and graphs whose nodes are
// counted unit by unit. They are asked by the official driver, past the packages
// under test.
package graph

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"

	"github.com/rhizodat/rhizodat-go/internal/drevoserver"
)

// ErrNoServer says that this machine has no drevo engine.
var ErrNoServer = drevoserver.ErrNoServer

// exitOfFault is the exit code of a server that a fault has ended.
const exitOfFault = 137

// Server is a drevo server of our own.
type Server struct {
	server *drevoserver.Server
	driver neo4j.DriverWithContext
}

// Launch starts a server. The error is ErrNoServer where there is no engine.
func Launch(ctx context.Context) (*Server, error) {
	server, err := drevoserver.Launch(ctx)
	if err != nil {
		return nil, err
	}
	driver, err := neo4j.NewDriverWithContext("bolt://"+server.Bolt(), neo4j.NoAuth(), func(c *config.Config) {
		c.ConnectionLivenessCheckTimeout = 0 // the server may have been restarted since
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open driver: %w", err), server.Close())
	}
	return &Server{server, driver}, nil
}

// Crash ends the server by SIGKILL.
func (s *Server) Crash(context.Context) error { return s.server.Kill() }

// Start starts a server that crashed, at its old address and without faults.
func (s *Server) Start(ctx context.Context) error { return s.server.Start(ctx) }

// Restart kills the server and starts it with arguments of drevo-rig's.
func (s *Server) Restart(ctx context.Context, args ...string) error {
	return errors.Join(s.server.Kill(), s.server.Start(ctx, args...))
}

// Fallen waits for a server that a fault ends, and reports whether it was that.
func (s *Server) Fallen() (bool, error) {
	code, err := s.server.Wait()
	return code == exitOfFault, err
}

// Close removes the server and all that it holds.
func (s *Server) Close(ctx context.Context) error {
	return errors.Join(s.driver.Close(ctx), s.server.Close())
}

// Store makes a graph.
func (s *Server) Store(ctx context.Context) (*Store, error) {
	name := "graph_" + strings.ToLower(rand.Text()[:8])
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.server.HTTP()+"/databases", strings.NewReader(`{"name":"`+name+`"}`))
	if err != nil {
		return nil, fmt.Errorf("make graph: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("make graph: %w", err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusCreated {
		return nil, fmt.Errorf("make graph: %s %w", response.Status, err)
	}
	return &Store{server: s, name: name}, nil
}

// LimitLog lets the log of a graph grow by no more than a few bytes, until the
// server's end: a disk that is full, where none can be mounted.
func (s *Server) LimitLog(of *Store, more int64) error {
	info, err := os.Stat(filepath.Join(s.server.Data(), "databases", of.name, "native.wal"))
	if err != nil {
		return fmt.Errorf("look at log: %w", err)
	}
	return s.server.LimitFiles(uint64(info.Size() + more)) //nolint:gosec // sizes are positive
}
