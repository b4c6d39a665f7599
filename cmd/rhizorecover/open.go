package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// envDSN is the environment variable that holds the DSN.
const envDSN = "RHIZODAT_DSN"

var errNoDSN = errors.New("no DSN: give --dsn-file FILE, or set " + envDSN)

// dsn finds the DSN. Where it comes from is said in errors, it itself never.
func (s *session) dsn() (string, error) {
	switch {
	case s.cli.DSNFile != "" && s.cli.DSN != "":
		return "", errors.New("--dsn-file and --dsn exclude each other")
	case s.cli.DSNFile != "":
		text, err := os.ReadFile(s.cli.DSNFile)
		if err != nil {
			return "", fmt.Errorf("read --dsn-file: %w", err)
		}
		if dsn := strings.TrimSpace(string(text)); dsn != "" {
			return dsn, nil
		}
		return "", errors.New("read --dsn-file: it is empty")
	case s.cli.DSN != "":
		s.logger().Warn("rhizorecover: --dsn can be read by everybody on this host (ps): use --dsn-file or " + envDSN)
		return s.cli.DSN, nil
	}
	if dsn, ok := s.env(envDSN); ok && dsn != "" {
		return dsn, nil
	}
	return "", errNoDSN
}

func (s *session) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if s.cli.Verbose {
		options.Level = slog.LevelDebug
	}
	if s.cli.Log == "json" {
		return slog.New(slog.NewJSONHandler(s.err, options))
	}
	return slog.New(slog.NewTextHandler(s.err, options))
}

// deployment is an opened DSN.
type deployment struct {
	connector *rhizodat.Connector
	worker    *recovery.Worker
	journal   journal.Journal
}

// open opens the DSN and calls f with it. It connects to nothing before f does.
func (s *session) open(change func(*recovery.Config), f func(context.Context, *deployment) error) (err error) {
	dsn, err := s.dsn()
	if err != nil {
		return &usageError{err}
	}
	cfg, err := rhizodat.ParseDSN(dsn)
	if err != nil {
		return &usageError{err}
	}
	cfg.Logger = s.logger()
	widen(cfg)
	connector, err := rhizodat.NewConnector(cfg)
	if err != nil {
		return &usageError{err}
	}
	defer func() { err = errors.Join(err, connector.Close()) }()
	settings, err := connector.Recovery()
	if err != nil {
		return &usageError{err}
	}
	if change != nil {
		change(&settings)
	}
	worker, err := recovery.New(settings)
	if err != nil {
		return err
	}
	return f(s.ctx, &deployment{connector, worker, settings.Journal})
}

// widen gives this program's PostgreSQL stores as many connections as it works
// on transactions at once: every COMMIT PREPARED waits for the disk, and the
// server makes one wait of those that come together. An application, which
// finishes over the sessions that prepared, does with fewer.
func widen(cfg *rhizodat.Config) {
	for name, store := range cfg.Stores {
		if scheme := store.Scheme(); store.Options == nil && (scheme == "postgres" || scheme == "postgresql") {
			store.Options = postgres.Options{ControlConns: recovery.DefaultParallel}
			cfg.Stores[name] = store
		}
	}
}
