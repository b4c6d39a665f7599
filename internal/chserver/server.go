package chserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// startTimeout bounds one start or stop.
const startTimeout = 60 * time.Second

// baseConfig switches on the logs that tests read. What a test adds goes behind it.
const baseConfig = `<clickhouse>
  <query_log><database>system</database><table>query_log</table><flush_interval_milliseconds>200</flush_interval_milliseconds></query_log>
  <part_log><database>system</database><table>part_log</table></part_log>
  %s
</clickhouse>
`

// Server is one throw-away ClickHouse server, running or stopped. Its methods
// are not for concurrent use, those without an error excepted.
type Server struct {
	binaries binaries
	dir      string // holds data/, config.xml and ready.json
	dog      *watchdog
	tcp      int
	http     int
	run      *run // nil while it is stopped
}

// run is one life of the server's process.
type run struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   tail
	done  chan struct{} // closed when the process has ended
}

// Launch starts a server with an empty data directory and returns when it
// listens. config is XML that goes into its <clickhouse> element; DIR in it
// stands for the server's own directory. The error is ErrNoServer where there is
// no test bed.
func Launch(ctx context.Context, config string) (*Server, error) {
	found, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rhizodat-ch-")
	if err != nil {
		return nil, fmt.Errorf("rhizodat: make directory of clickhouse server: %w", err)
	}
	s := &Server{binaries: found, dir: dir}
	if s.dog, err = watch(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.Configure(config); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Configure replaces what Launch was given; it holds from the next Start on.
func (s *Server) Configure(config string) error {
	text := fmt.Sprintf(baseConfig, bytes.ReplaceAll([]byte(config), []byte("DIR"), []byte(s.dir)))
	if err := os.WriteFile(s.path("config.xml"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("rhizodat: configure clickhouse server: %w", err)
	}
	return nil
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// Dir is the server's directory; it goes with the server.
func (s *Server) Dir() string { return s.dir }

// Native is the host:port of the native protocol; it stays over restarts.
func (s *Server) Native() string { return "127.0.0.1:" + strconv.Itoa(s.tcp) }

// HTTP is the host:port of the HTTP protocol; it stays over restarts.
func (s *Server) HTTP() string { return "127.0.0.1:" + strconv.Itoa(s.http) }

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

// Start starts a stopped or killed server on its old data and its old ports.
func (s *Server) Start(ctx context.Context) error {
	ready := s.path("ready.json")
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("rhizodat: start clickhouse server: %w", err)
	}
	//nolint:gosec,noctx // our own program; it outlives the call, and ends with its standard input
	cmd := exec.Command(s.binaries.program, "-stdin", "-grace", "500ms",
		"-path", s.path("data"), "-config", s.path("config.xml"), "-ready", ready,
		"-tcp", strconv.Itoa(s.tcp), "-http", strconv.Itoa(s.http))
	cmd.Env = append(os.Environ(), "CHDB_LIB_PATH="+s.binaries.engine)
	cmd.Dir = s.dir
	// Of its own session: an interrupt of the terminal is for the tests.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r := &run{cmd: cmd, done: make(chan struct{})}
	cmd.Stderr = &r.log
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("rhizodat: start clickhouse server: %w", err)
	}
	r.stdin = stdin
	go func() {
		_ = cmd.Wait() // how it ended is for those who ended it
		close(r.done)
	}()
	s.run = r
	return s.await(ctx, ready)
}

// await waits for the ready file.
func (s *Server) await(ctx context.Context, ready string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(ready); err == nil { //nolint:gosec // a path of ours
			var port struct{ TCP, HTTP int }
			if err := json.Unmarshal(text, &port); err != nil {
				return fmt.Errorf("rhizodat: start clickhouse server: %w", err)
			}
			s.tcp, s.http = port.TCP, port.HTTP
			return nil
		}
		select {
		case <-s.run.done:
			return fmt.Errorf("rhizodat: start clickhouse server: it ended: %s", s.run.log.text())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("rhizodat: start clickhouse server: %w: %s", ctx.Err(), s.run.log.text()), s.Kill())
		case <-tick.C:
		}
	}
}

// Stop shuts the server down.
func (s *Server) Stop() error {
	if !s.Running() {
		return nil
	}
	if err := s.run.stdin.Close(); err != nil {
		return fmt.Errorf("rhizodat: stop clickhouse server: %w", err)
	}
	select {
	case <-s.run.done:
		return nil
	case <-time.After(startTimeout):
		return errors.Join(errors.New("rhizodat: stop clickhouse server: it does not stop"), s.Kill())
	}
}

// Kill ends the server by SIGKILL, as a crash of it does, and returns when it is gone.
func (s *Server) Kill() error {
	if !s.Running() {
		return nil
	}
	if err := s.run.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("rhizodat: kill clickhouse server: %w", err)
	}
	<-s.run.done
	return nil
}

// Close ends the server and removes its directory.
func (s *Server) Close() error {
	return errors.Join(s.Kill(), s.dog.end(s.dir))
}

// tail keeps the end of what was written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const most = 4000
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-most):]
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.kept))
}
