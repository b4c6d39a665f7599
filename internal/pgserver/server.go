package pgserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/child"
)

// Superuser is the name of every launched server's superuser.
const Superuser = "postgres"

// startTimeout bounds one start or stop: recovery after a kill included.
const startTimeout = 60 * time.Second

// lockName is the file in which PostgreSQL keeps its process id.
const lockName = "postmaster.pid"

// Mode says how [Server.Stop] ends a server.
type Mode string

// The two ways to stop a server, in pg_ctl's words.
const (
	// Fast rolls back what is open, disconnects clients, writes a checkpoint.
	Fast Mode = "fast"
	// Immediate quits without a checkpoint: the next start recovers from WAL.
	Immediate Mode = "immediate"
)

// Server is one throw-away PostgreSQL server, running or stopped. Its methods
// are not for concurrent use, those without an error excepted.
type Server struct {
	binaries Binaries
	account  account
	dir      *child.Dir // holds data/, log and the password file
	port     int
	password string
	running  atomic.Bool
}

// Launch makes a data directory, starts a server on it and returns when it
// accepts connections. Each setting is "name=value" as in postgresql.conf and
// wins over the defaults: max_connections 200, max_prepared_transactions 100,
// and PostgreSQL's own (fsync on). The server ends with [Server.Close] or with this
// process, whichever is first.
//
// The error is [ErrNoServer] where PostgreSQL is not installed.
func Launch(ctx context.Context, settings ...string) (*Server, error) {
	binaries, err := Find(ctx)
	if err != nil {
		return nil, err
	}
	runAs, err := pickAccount()
	if err != nil {
		return nil, err
	}
	dir, err := child.MakeDirOf("rhizodat-pg-", "data/"+lockName)
	if err != nil {
		return nil, err
	}
	s := &Server{binaries: binaries, account: runAs, dir: dir, password: "fixture-" + rand.Text()}
	if err := s.create(ctx, settings); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.firstStart(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Addr is the server's host:port; it stays the same over restarts.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Password is the superuser's password, a fixture: tests look for it in what
// must not hold secrets.
func (s *Server) Password() string { return s.password }

// Binaries says which installation runs the server.
func (s *Server) Binaries() Binaries { return s.binaries }

// Running tells whether the server has been started and neither stopped nor
// killed since.
func (s *Server) Running() bool { return s.running.Load() }

// Log is the path of the server's log.
func (s *Server) Log() string { return s.dir.Path("log") }

// DSN is the postgres:// URL of a database for the superuser.
func (s *Server) DSN(database string) string {
	dsn := url.URL{
		Scheme: "postgres", User: url.UserPassword(Superuser, s.password),
		Host: s.Addr(), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return dsn.String()
}

// Start starts a stopped or killed server on its old port.
func (s *Server) Start(ctx context.Context) error {
	if err := s.control(ctx, "start", "-l", s.Log()); err != nil {
		return err
	}
	s.running.Store(true)
	return nil
}

// Stop stops the server and waits until it is down.
func (s *Server) Stop(ctx context.Context, mode Mode) error {
	s.running.Store(false)
	return s.control(ctx, "stop", "-m", string(mode))
}

// Kill ends all processes of the server by SIGKILL at one instant, as a crash
// does, and returns when they are gone. What the server had not yet handed to
// the operating system is lost: commits with synchronous_commit=off of the
// last wal_writer_delay (200 ms unless set; up to 10s makes the loss certain
// enough to test). What it had written is kept, synced or not: only a crash of
// the machine takes that.
func (s *Server) Kill(ctx context.Context) error {
	pid, err := s.postmaster()
	if err != nil {
		return err
	}
	s.running.Store(false)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := killFamily(ctx, pid); err != nil {
		return err
	}
	// In a container whose first process reaps no orphans the dead server stays
	// a zombie, and the next one would take its lock file for that of a server alive.
	if err := os.Remove(s.lockFile()); err != nil {
		return fmt.Errorf("rhizodat: remove lock file of killed server: %w", err)
	}
	return nil
}

// Close stops the server, if it runs, and removes its directory.
func (s *Server) Close() error { return s.dir.Remove() }

func (s *Server) data() string { return s.dir.Path("data") }

func (s *Server) lockFile() string { return filepath.Join(s.data(), lockName) }

// create runs initdb and writes the settings.
func (s *Server) create(ctx context.Context, settings []string) error {
	secret := s.dir.Path("password")
	if err := os.WriteFile(secret, []byte(s.password), 0o600); err != nil {
		return fmt.Errorf("rhizodat: write password of postgres server: %w", err)
	}
	if err := errors.Join(s.account.own(s.dir.Path()), s.account.own(secret)); err != nil {
		return fmt.Errorf("rhizodat: hand over directory of postgres server: %w", err)
	}
	err := s.run(ctx, "initdb", "--no-sync", "--auth=scram-sha-256", "--username="+Superuser,
		"--pwfile="+secret, "--encoding=UTF8", "--no-locale", "--pgdata="+s.data())
	if err != nil {
		return err
	}
	defaults := []string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200",
		"max_prepared_transactions=100", "log_line_prefix=%m [%p] %q%a %d ", "timezone=UTC",
	}
	return s.configure(append(defaults, settings...)...)
}

// configure appends settings to postgresql.conf, where the last line wins.
func (s *Server) configure(settings ...string) error {
	var text bytes.Buffer
	for _, setting := range settings {
		name, value, found := strings.Cut(setting, "=")
		if !found {
			return fmt.Errorf("rhizodat: configure postgres server: setting without '=': %s", setting)
		}
		fmt.Fprintf(&text, "%s = '%s'\n", strings.TrimSpace(name), strings.ReplaceAll(strings.TrimSpace(value), "'", "''"))
	}
	file, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("rhizodat: configure postgres server: %w", err)
	}
	_, err = file.Write(text.Bytes())
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("rhizodat: configure postgres server: %w", err)
	}
	return nil
}

// firstStart tries ports until one is really free: between a look and the
// server's own bind another server may take it.
func (s *Server) firstStart(ctx context.Context) error {
	const tries = 8
	var err error
	for range tries {
		if s.port, err = freePort(ctx); err != nil {
			return err
		}
		if err = s.configure("port=" + strconv.Itoa(s.port)); err != nil {
			return err
		}
		if err = s.Start(ctx); err == nil || !s.portTaken() {
			return err
		}
	}
	return err
}

func (s *Server) portTaken() bool {
	log, err := os.ReadFile(s.Log())
	return err == nil && bytes.Contains(log, []byte("could not bind")) &&
		bytes.Contains(log, []byte(fmt.Sprintf("port %d", s.port)))
}

// control runs pg_ctl, which waits for the result by itself.
func (s *Server) control(ctx context.Context, verb string, args ...string) error {
	common := []string{verb, "-D", s.data(), "-w", "-s", "-t", strconv.Itoa(int(startTimeout.Seconds()))}
	return s.run(ctx, "pg_ctl", append(common, args...)...)
}

// run runs a server program as the server's account. Its output goes to a
// file, not to a pipe: the server inherits it and would keep the pipe open.
func (s *Server) run(ctx context.Context, program string, args ...string) error {
	output, err := os.OpenFile(s.dir.Path(program+".out"), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("rhizodat: run server program: %w", err)
	}
	defer func() { _ = output.Close() }()                                            // read below; nothing is left to write
	cmd := exec.CommandContext(ctx, filepath.Join(s.binaries.Dir, program), args...) //nolint:gosec // the program is one of Find's
	cmd.Dir = s.dir.Path()
	cmd.Env = environment(s.dir.Path())
	cmd.Stdout, cmd.Stderr = output, output
	s.account.apply(cmd)
	if err := cmd.Run(); err != nil {
		return &ProgramError{Program: program, Output: tail(output.Name()), Log: tail(s.Log()), Err: err}
	}
	return nil
}

// postmaster reads the process id of the running server.
func (s *Server) postmaster() (int, error) {
	text, err := os.ReadFile(s.lockFile())
	if err != nil {
		return 0, fmt.Errorf("rhizodat: read process id of postgres server: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0, fmt.Errorf("rhizodat: read process id of postgres server: %w", err)
	}
	return pid, nil
}
