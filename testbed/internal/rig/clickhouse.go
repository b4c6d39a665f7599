package rig

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/rhizodat/rhizodat-go/internal/chserver"
)

// ClickHouse is a ClickHouse server with databases that are dropped with it: one
// of its own, or the one that RHIZODAT_TEST_CLICKHOUSE names.
type ClickHouse struct {
	own *chserver.Server // nil: somebody's own server
	at  chserver.Endpoint

	mu        sync.Mutex
	databases []string
}

// OpenClickHouse uses the server that RHIZODAT_TEST_CLICKHOUSE names, or launches
// one. The error is [chserver.ErrNoServer] where this machine has none.
func OpenClickHouse(ctx context.Context) (*ClickHouse, error) {
	switch at, found, err := chserver.EnvEndpoint(); {
	case err != nil:
		return nil, err
	case found:
		return &ClickHouse{at: at}, nil
	}
	return LaunchClickHouse(ctx, "")
}

// LaunchClickHouse starts a server of our own; see [chserver.Launch].
func LaunchClickHouse(ctx context.Context, config string) (*ClickHouse, error) {
	own, err := chserver.Launch(ctx, config)
	if err != nil {
		return nil, err
	}
	return &ClickHouse{own: own, at: own.Endpoint()}, nil
}

// Own is the server where it is our own, to kill and to start again; else nil.
func (c *ClickHouse) Own() *chserver.Server { return c.own }

// Database makes an empty database whose name begins with prefix.
func (c *ClickHouse) Database(ctx context.Context, prefix string) (*ClickHouseDatabase, error) {
	name := strings.ToLower(prefix + "_" + rand.Text()[:8])
	if _, err := c.at.Ask(ctx, "", "CREATE DATABASE "+name); err != nil {
		return nil, fmt.Errorf("make clickhouse database: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.databases = append(c.databases, name)
	return &ClickHouseDatabase{Name: name, server: c}, nil
}

// Close removes the server, or from somebody's own server our databases.
func (c *ClickHouse) Close(ctx context.Context) error {
	if c.own != nil {
		return c.own.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, name := range c.databases {
		_, err := c.at.Ask(ctx, "", "DROP DATABASE "+name+" SYNC")
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove clickhouse databases: %w", err)
	}
	return nil
}

// ClickHouseDatabase is one database. It is asked by plain HTTP, never through
// the client library that is under test. It is safe for concurrent use.
type ClickHouseDatabase struct {
	Name   string
	server *ClickHouse
}

// DSN of the database by the native protocol.
func (d *ClickHouseDatabase) DSN() string { return d.server.at.Native(d.Name) }

// DSNOverHTTP is the DSN by the HTTP protocol.
func (d *ClickHouseDatabase) DSNOverHTTP() string { return d.server.at.HTTP(d.Name) }

// Ask runs one statement, in which {db} stands for the database, and returns the
// fields of each row of its answer.
func (d *ClickHouseDatabase) Ask(ctx context.Context, query string) ([][]string, error) {
	answer, err := d.server.at.Ask(ctx, "", strings.ReplaceAll(query, "{db}", d.Name))
	if err != nil {
		return nil, fmt.Errorf("ask clickhouse database %s: %w", d.Name, err)
	}
	if answer == "" {
		return nil, nil
	}
	var rows [][]string
	for line := range strings.SplitSeq(answer, "\n") {
		rows = append(rows, strings.Split(line, "\t"))
	}
	return rows, nil
}

// Exec runs one statement, in which {db} stands for the database.
func (d *ClickHouseDatabase) Exec(ctx context.Context, statement string) error {
	_, err := d.Ask(ctx, statement)
	return err
}

// Pairs returns a query's first column with its second.
func (d *ClickHouseDatabase) Pairs(ctx context.Context, query string) (map[string]string, error) {
	rows, err := d.Ask(ctx, query)
	if err != nil {
		return nil, err
	}
	pairs := make(map[string]string, len(rows))
	for _, row := range rows {
		if len(row) < 2 {
			return nil, fmt.Errorf("ask clickhouse database %s: %d columns, want 2", d.Name, len(row))
		}
		pairs[row[0]] = row[1]
	}
	return pairs, nil
}
