package chserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/child"
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
	dir      *child.Dir // holds data/, config.xml and ready.json
	tcp      int
	http     int
	process  *child.Process // nil before the first Start
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
	dir, err := child.MakeDir("rhizodat-ch-")
	if err != nil {
		return nil, err
	}
	s := &Server{binaries: found, dir: dir}
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
	text := fmt.Sprintf(baseConfig, bytes.ReplaceAll([]byte(config), []byte("DIR"), []byte(s.Dir())))
	if err := os.WriteFile(s.dir.Path("config.xml"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("rhizodat: configure clickhouse server: %w", err)
	}
	return nil
}

// Dir is the server's directory; it goes with the server.
func (s *Server) Dir() string { return s.dir.Path() }

// Native is the host:port of the native protocol; it stays over restarts.
func (s *Server) Native() string { return "127.0.0.1:" + strconv.Itoa(s.tcp) }

// HTTP is the host:port of the HTTP protocol; it stays over restarts.
func (s *Server) HTTP() string { return "127.0.0.1:" + strconv.Itoa(s.http) }

// Running tells whether the server's process is there.
func (s *Server) Running() bool { return s.process.Running() }

// Start starts a stopped or killed server on its old data and its old ports.
func (s *Server) Start(ctx context.Context) error {
	ready := s.dir.Path("ready.json")
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("rhizodat: start clickhouse server: %w", err)
	}
	//nolint:gosec,noctx // our own program; it outlives the call, and ends with its standard input
	cmd := exec.Command(s.binaries.program, "-stdin", "-grace", "500ms",
		"-path", s.dir.Path("data"), "-config", s.dir.Path("config.xml"), "-ready", ready,
		"-tcp", strconv.Itoa(s.tcp), "-http", strconv.Itoa(s.http))
	cmd.Env = append(os.Environ(), "CHDB_LIB_PATH="+s.binaries.engine)
	cmd.Dir = s.Dir()
	process, err := child.Start("clickhouse server", cmd)
	if err != nil {
		return err
	}
	s.process = process
	return s.process.Await(ctx, startTimeout, func() (bool, error) { return s.listens(ready) })
}

// listens reads the ports from the ready file, which the server writes last.
func (s *Server) listens(ready string) (bool, error) {
	text, err := os.ReadFile(ready) //nolint:gosec // a path of ours
	if err != nil {
		return false, nil //nolint:nilerr // not written yet
	}
	var port struct{ TCP, HTTP int }
	if err := json.Unmarshal(text, &port); err != nil {
		return false, err
	}
	s.tcp, s.http = port.TCP, port.HTTP
	return true, nil
}

// Stop shuts the server down.
func (s *Server) Stop() error { return s.process.Stop(startTimeout) }

// Kill ends the server by SIGKILL, as a crash of it does, and returns when it is gone.
func (s *Server) Kill() error { return s.process.Kill() }

// Close ends the server and removes its directory.
func (s *Server) Close() error { return errors.Join(s.Kill(), s.dir.Remove()) }
