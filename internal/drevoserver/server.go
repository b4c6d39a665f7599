package drevoserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/child"
)

// startTimeout bounds one start or stop.
const startTimeout = 30 * time.Second

// launcher ignores SIGXFSZ, so that a file-size limit (see [Server.LimitFiles])
// is an error of the write and not the end of the server.
const launcher = `trap '' XFSZ; exec "$0" "$@"`

// Server is one throw-away drevo server, running or stopped. Its methods are not
// for concurrent use, those without an error excepted.
type Server struct {
	program string
	dir     *child.Dir // holds data/
	bolt    string     // host:port, kept over restarts
	http    string
	process *child.Process // nil before the first Start
}

// New makes a server that does not run yet, with an empty data directory. The
// error is ErrNoServer where there is no test bed.
func New() (*Server, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := child.MakeDir("rhizodat-drevo-")
	if err != nil {
		return nil, err
	}
	return &Server{program: program, dir: dir, bolt: "127.0.0.1:0", http: "127.0.0.1:0"}, nil
}

// Launch is New and Start.
func Launch(ctx context.Context, args ...string) (*Server, error) {
	s, err := New()
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx, args...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Dir is the server's directory; it goes with the server.
func (s *Server) Dir() string { return s.dir.Path() }

// Data is where the graphs' logs lie, in drevo's own layout.
func (s *Server) Data() string { return s.dir.Path("data") }

// Bolt is the host:port of the Bolt protocol; it stays over restarts.
func (s *Server) Bolt() string { return s.bolt }

// HTTP is the host:port of the routes that make and drop graphs; it stays over restarts.
func (s *Server) HTTP() string { return s.http }

// Pid is the id of the server's process, running or the last one.
func (s *Server) Pid() int { return s.process.Pid() }

// Log is the end of what the server's process has written.
func (s *Server) Log() string { return s.process.Log() }

// Running tells whether the server's process is there.
func (s *Server) Running() bool { return s.process.Running() }

// Start starts a new, stopped or killed server on its data and its old ports
// and returns when it listens. args are drevo-rig's, such as "--fault",
// "prepare:after:exit", and hold for this life of it.
func (s *Server) Start(ctx context.Context, args ...string) error {
	args = append([]string{
		"-c", launcher, s.program, "--data", s.Data(), "--exit-with-stdin",
		"--listen", s.bolt, "--http", s.http,
	}, args...)
	cmd := exec.Command("sh", args...) //nolint:gosec,noctx // our own program; it outlives the call, and ends with its standard input
	cmd.Dir = s.dir.Path()
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("rhizodat: start drevo server: %w", err)
	}
	cmd.Stdout = writer
	process, err := child.Start("drevo server", cmd)
	if closeErr := writer.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return errors.Join(err, reader.Close())
	}
	s.process = process
	ready := make(chan []byte, 1)
	go func() {
		defer func() { _ = reader.Close() }() // the one line is all that comes
		if line, err := bufio.NewReader(reader).ReadBytes('\n'); err == nil {
			ready <- line
		}
	}()
	return s.await(ctx, ready)
}

// await waits for the line that tells the addresses.
func (s *Server) await(ctx context.Context, ready <-chan []byte) error {
	return s.process.Await(ctx, startTimeout, func() (bool, error) {
		select {
		case line := <-ready:
			var told struct{ Addr, HTTP string }
			if err := json.Unmarshal(line, &told); err != nil {
				return false, err
			}
			s.bolt, s.http = told.Addr, told.HTTP
			return true, nil
		default:
			return false, nil
		}
	})
}

// Stop lets the server end by itself.
func (s *Server) Stop() error { return s.process.Stop(startTimeout) }

// Kill ends the server by SIGKILL, as a crash of it does, and returns when it is gone.
func (s *Server) Kill() error { return s.process.Kill() }

// Wait waits for a server that ends by itself, by a fault for one, and returns
// its exit code.
func (s *Server) Wait() (int, error) { return s.process.Wait(startTimeout) }

// Close ends the server and removes its directory.
func (s *Server) Close() error { return errors.Join(s.Kill(), s.dir.Remove()) }
