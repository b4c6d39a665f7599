package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/child"
)

// ErrNoBouncer says that PgBouncer is not installed.
var ErrNoBouncer = errors.New("rhizodat: find pgbouncer: not in PATH or /usr/sbin (Debian: scripts/setup.sh installs it)")

// Bouncer is a throw-away PgBouncer in front of a server. It ends as a
// [Server] does.
type Bouncer struct {
	upstream *url.URL
	dir      *child.Dir
	port     int
}

// LaunchBouncer starts PgBouncer in transaction mode for all databases of the
// server that dsn, a postgres:// URL, names, and for its user. Each setting is
// "name=value" as in the section [pgbouncer] of its configuration, and wins over the
// defaults. The error is [ErrNoBouncer] where it is not installed.
func LaunchBouncer(ctx context.Context, dsn string, settings ...string) (*Bouncer, error) {
	program, err := findBouncer()
	if err != nil {
		return nil, err
	}
	upstream, err := url.Parse(dsn)
	if err != nil || upstream.User == nil {
		return nil, errors.New("rhizodat: read DSN for pgbouncer: not a postgres:// URL with a user")
	}
	runAs, err := pickAccount()
	if err != nil {
		return nil, err
	}
	b := &Bouncer{upstream: upstream}
	if b.port, err = freePort(ctx); err != nil {
		return nil, err
	}
	if b.dir, err = child.MakeDirOf("rhizodat-pg-", "data/pid"); err != nil {
		return nil, err
	}
	if err := b.start(ctx, program, runAs, settings); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// DSN is the postgres:// URL of a database through the bouncer.
func (b *Bouncer) DSN(database string) string {
	dsn := url.URL{
		Scheme: "postgres", User: b.upstream.User, Host: b.Addr(),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return dsn.String()
}

// Addr is the bouncer's host:port.
func (b *Bouncer) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// Close stops the bouncer and removes its directory.
func (b *Bouncer) Close() error { return b.dir.Remove() }

func findBouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoBouncer
}

// path is inside data/, by which the watchdog knows the process.
func (b *Bouncer) path(name string) string { return b.dir.Path("data", name) }

func (b *Bouncer) start(ctx context.Context, program string, runAs account, settings []string) error {
	if err := b.configure(runAs, settings); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "-d", "-q", b.path("ini")) //nolint:gosec // found above
	cmd.Dir, cmd.Env = b.dir.Path(), environment(b.dir.Path())
	runAs.apply(cmd)
	if output, err := cmd.CombinedOutput(); err != nil {
		return &ProgramError{Program: "pgbouncer", Output: string(output), Log: tail(b.path("log")), Err: err}
	}
	return b.await(ctx)
}

func (b *Bouncer) configure(runAs account, settings []string) error {
	password, _ := b.upstream.User.Password()
	quote := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	lines := []string{
		"[databases]", "* = host=" + b.upstream.Hostname() + " port=" + b.upstream.Port(),
		"[pgbouncer]", "listen_addr = 127.0.0.1", "listen_port = " + strconv.Itoa(b.port), "unix_socket_dir =",
		"auth_type = scram-sha-256", "auth_file = " + b.path("users"), "pool_mode = transaction",
		"logfile = " + b.path("log"), "pidfile = " + b.path("pid"), "max_client_conn = 200",
	}
	for _, file := range []struct{ path, text string }{
		{b.path("users"), quote(b.upstream.User.Username()) + " " + quote(password) + "\n"},
		{b.path("ini"), strings.Join(append(lines, settings...), "\n") + "\n"},
	} {
		if err := os.MkdirAll(filepath.Dir(file.path), 0o700); err != nil {
			return fmt.Errorf("rhizodat: configure pgbouncer: %w", err)
		}
		if err := os.WriteFile(file.path, []byte(file.text), 0o600); err != nil {
			return fmt.Errorf("rhizodat: configure pgbouncer: %w", err)
		}
		if err := runAs.own(file.path); err != nil {
			return fmt.Errorf("rhizodat: configure pgbouncer: %w", err)
		}
	}
	if err := errors.Join(runAs.own(b.dir.Path()), runAs.own(b.path("."))); err != nil {
		return fmt.Errorf("rhizodat: hand over directory of pgbouncer: %w", err)
	}
	return nil
}

// await waits until the bouncer listens: it returns to its caller before.
func (b *Bouncer) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.Addr())
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return &ProgramError{Program: "pgbouncer", Log: tail(b.path("log")), Err: err}
		case <-tick.C:
		}
	}
}
