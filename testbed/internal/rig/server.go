package rig

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/rhizodat/rhizodat-go/internal/pgserver"
)

// Server is a PostgreSQL server with databases that are dropped with it: one
// of its own, or the one that RHIZODAT_TEST_PG names.
type Server struct {
	own  *pgserver.Server // nil: somebody's own server
	base *url.URL

	mu        sync.Mutex
	databases []*Database
}

// Open uses the server that RHIZODAT_TEST_PG names, or launches one.
func Open(ctx context.Context, settings ...string) (*Server, error) {
	dsn := os.Getenv(pgserver.EnvServer)
	if dsn == "" {
		return Launch(ctx, settings...)
	}
	base, err := url.Parse(dsn)
	if err != nil || base.Host == "" {
		return nil, errors.New("read " + pgserver.EnvServer + ": not a postgres:// URL") // without its text, which has a password
	}
	return &Server{base: base}, nil
}

// Launch starts a server of our own; see [pgserver.Launch].
func Launch(ctx context.Context, settings ...string) (*Server, error) {
	own, err := pgserver.Launch(ctx, settings...)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(own.DSN("postgres"))
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return &Server{own: own, base: base}, nil
}

// DSN is the superuser's URL of a database.
func (s *Server) DSN(name string) string {
	dsn := *s.base
	dsn.Path = "/" + name
	return dsn.String()
}

// Database makes an empty database whose name begins with prefix.
func (s *Server) Database(ctx context.Context, prefix string) (*Database, error) {
	name := strings.ToLower(prefix + "_" + rand.Text()[:8])
	admin := &Database{Name: "postgres", DSN: s.base.String()}
	defer admin.Close(ctx)
	if _, err := admin.Exec(ctx, `CREATE DATABASE "`+name+`"`); err != nil {
		return nil, err
	}
	d := &Database{Name: name, DSN: s.DSN(name)}
	s.mu.Lock()
	s.databases = append(s.databases, d)
	s.mu.Unlock()
	return d, nil
}

// Crash ends all processes of an own server by SIGKILL: what it had not
// flushed is lost. Start brings it back at its old address.
func (s *Server) Crash(ctx context.Context) error { return s.own.Kill(ctx) }

// Start starts an own server that crashed.
func (s *Server) Start(ctx context.Context) error { return s.own.Start(ctx) }

// Close removes the server, or from somebody's own server our databases, with
// what is prepared there.
func (s *Server) Close(ctx context.Context) error {
	if s.own != nil {
		return s.own.Close()
	}
	admin := &Database{Name: "postgres", DSN: s.base.String()}
	defer admin.Close(ctx)
	var errs []error
	for _, d := range s.databases {
		gids, err := d.Prepared(ctx)
		errs = append(errs, err)
		for _, gid := range gids {
			_, err := d.Exec(ctx, "ROLLBACK PREPARED '"+gid+"'")
			errs = append(errs, err)
		}
		d.Close(ctx)
		_, err = admin.Exec(ctx, `DROP DATABASE "`+d.Name+`" WITH (FORCE)`)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove databases: %w", err)
	}
	return nil
}
