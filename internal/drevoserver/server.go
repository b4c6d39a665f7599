package drevoserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
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
	dir     string // holds data/
	dog     *watchdog
	bolt    string // host:port, kept over restarts
	http    string
	run     *run // nil before the first Start
}

// run is one life of the server's process.
type run struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   tail
	done  chan struct{} // closed when the process has ended
}

// New makes a server that does not run yet, with an empty data directory. The
// error is ErrNoServer where there is no test bed.
func New() (*Server, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rhizodat-drevo-")
	if err != nil {
		return nil, fmt.Errorf("rhizodat: make directory of drevo server: %w", err)
	}
	s := &Server{program: program, dir: dir, bolt: "127.0.0.1:0", http: "127.0.0.1:0"}
	if s.dog, err = watch(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
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
func (s *Server) Dir() string { return s.dir }

// Data is where the graphs' logs lie, in drevo's own layout.
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

// Bolt is the host:port of the Bolt protocol; it stays over restarts.
func (s *Server) Bolt() string { return s.bolt }

// HTTP is the host:port of the routes that make and drop graphs; it stays over restarts.
func (s *Server) HTTP() string { return s.http }

// Pid is the id of the server's process, running or the last one.
func (s *Server) Pid() int { return s.run.cmd.Process.Pid }

// Log is the end of what the server's process has written.
func (s *Server) Log() string { return s.run.log.text() }

// Running tells whether the server's process is there.
func (s *Server) Running() bool {
	if s.run == nil {
		return false
	}
	select {
	case <-s.run.done:
		return false
	default:
		return true
	}
}

// Start starts a new, stopped or killed server on its data and its old ports
// and returns when it listens. args are drevo-rig's, such as "--fault",
// "prepare:after:exit", and hold for this life of it.
func (s *Server) Start(ctx context.Context, args ...string) error {
	args = append([]string{
		"-c", launcher, s.program, "--data", s.Data(), "--exit-with-stdin",
		"--listen", s.bolt, "--http", s.http,
	}, args...)
	cmd := exec.Command("sh", args...) //nolint:gosec,noctx // our own program; it outlives the call, and ends with its standard input
	cmd.Dir = s.dir
	// Of its own session: an interrupt of the terminal is for the tests.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r := &run{cmd: cmd, done: make(chan struct{})}
	cmd.Stderr = &r.log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("rhizodat: start drevo server: %w", err)
	}
	ready := make(chan []byte, 1)
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("rhizodat: start drevo server: %w", err)
	}
	cmd.Stdout = writer
	err = cmd.Start()
	if closeErr := writer.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("rhizodat: start drevo server: %w", errors.Join(err, reader.Close()))
	}
	r.stdin = stdin
	go func() {
		defer func() { _ = reader.Close() }() // the one line is all that comes
		if line, err := bufio.NewReader(reader).ReadBytes('\n'); err == nil {
			ready <- line
		}
		_ = cmd.Wait() // how it ended is for those who ended it
		close(r.done)
	}()
	s.run = r
	return s.await(ctx, ready)
}

// await waits for the line that tells the addresses.
func (s *Server) await(ctx context.Context, ready <-chan []byte) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case line := <-ready:
		var told struct{ Addr, HTTP string }
		if err := json.Unmarshal(line, &told); err != nil {
			return fmt.Errorf("rhizodat: start drevo server: %w", err)
		}
		s.bolt, s.http = told.Addr, told.HTTP
		return nil
	case <-s.run.done:
		return fmt.Errorf("rhizodat: start drevo server: it ended: %s", s.run.log.text())
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("rhizodat: start drevo server: %w: %s", ctx.Err(), s.run.log.text()), s.Kill())
	}
}

// Stop lets the server end by itself.
func (s *Server) Stop() error {
	if !s.Running() {
		return nil
	}
	if err := s.run.stdin.Close(); err != nil {
		return fmt.Errorf("rhizodat: stop drevo server: %w", err)
	}
	_, err := s.Wait()
	return err
}

// Kill ends the server by SIGKILL, as a crash of it does, and returns when it is gone.
func (s *Server) Kill() error {
	if !s.Running() {
		return nil
	}
	if err := s.run.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("rhizodat: kill drevo server: %w", err)
	}
	<-s.run.done
	return nil
}

// Wait waits for a server that ends by itself, by a fault for one, and returns
// its exit code.
func (s *Server) Wait() (int, error) {
	select {
	case <-s.run.done:
		return s.run.cmd.ProcessState.ExitCode(), nil
	case <-time.After(startTimeout):
		return 0, errors.Join(errors.New("rhizodat: wait for drevo server: it does not end"), s.Kill())
	}
}

// Close ends the server and removes its directory.
func (s *Server) Close() error {
	return errors.Join(s.Kill(), s.dog.end(s.dir))
}
