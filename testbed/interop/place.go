package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// namespace of all tables, known to the peers.
const namespace = "peer"

// full is the catalog that has every table, and on which the peers' statistics and
// ClickHouse are shown: those differ in files, not in catalogs.
const full = "sqlite"

// place is one catalog with its warehouse, and how everybody gets there.
type place struct {
	name   string
	dir    string
	dsn    string            // ours
	python map[string]string // properties of PyIceberg's catalog
	java   map[string]string // of Java's
}

func (p *place) properties(peer string) map[string]string {
	if peer == "py" {
		return p.python
	}
	return p.java
}

// sqlitePlace is a SQL catalog in a file below dir.
func sqlitePlace(dir string) *place {
	dir = filepath.Join(dir, "sqlite")
	warehouse := "file://" + dir + "/wh"
	return &place{
		name: full, dir: dir,
		dsn:    "iceberg+sqlite://" + dir + "/catalog.db?warehouse=" + warehouse + "&namespace=" + namespace,
		python: map[string]string{"type": "sql", "uri": "sqlite:///" + dir + "/catalog.db", "warehouse": warehouse},
		java:   map[string]string{"type": "jdbc", "uri": "jdbc:sqlite:" + dir + "/catalog.db", "warehouse": warehouse, "jdbc.schema-version": "V1"},
	}
}

// postgresPlace is a SQL catalog in a database.
func postgresPlace(dir string, db *rig.Database) (*place, error) {
	dir = filepath.Join(dir, "postgres")
	u, err := url.Parse(db.DSN)
	if err != nil {
		return nil, fmt.Errorf("read address of database: %w", err)
	}
	warehouse := "file://" + dir + "/wh"
	separator := "?"
	if u.RawQuery != "" {
		separator = "&"
	}
	password, _ := u.User.Password()
	python := *u
	python.Scheme, python.RawQuery = "postgresql+psycopg2", ""
	return &place{
		name: "postgres", dir: dir,
		dsn:    "iceberg+" + db.DSN + separator + "warehouse=" + warehouse + "&namespace=" + namespace,
		python: map[string]string{"type": "sql", "uri": python.String(), "warehouse": warehouse},
		java: map[string]string{
			"type": "jdbc", "uri": "jdbc:postgresql://" + u.Host + u.Path, "warehouse": warehouse, "jdbc.schema-version": "V1",
			"jdbc.user": u.User.Username(), "jdbc.password": password,
		},
	}, nil
}

// restPlace is a catalog of the Java project's REST servlet.
func restPlace(ctx context.Context, dir, folder string) (*place, *servlet, error) {
	dir = filepath.Join(dir, "rest")
	server, err := startServlet(ctx, folder, dir, nil)
	if err != nil {
		return nil, nil, err
	}
	warehouse := "file://" + dir + "/wh"
	props := map[string]string{"type": "rest", "uri": server.url + "/interop", "warehouse": warehouse}
	return &place{
		name: "rest", dir: dir,
		dsn:    "iceberg+rest+" + server.url + "/interop?warehouse=" + warehouse + "&namespace=" + namespace,
		python: props, java: props,
	}, server, nil
}

// log is a second store of our own, so that commits are of two: a catalog in a
// directory, beside the warehouse.
func (p *place) log() string { return "iceberg+dir://" + p.dir + "/log?namespace=log" }

// journal is what decides.
func (p *place) journal() string { return "file://" + p.dir + "/journal.db" }

// localPath is what stands behind file://, or behind Java's file:.
func localPath(location string) string {
	return strings.TrimPrefix(strings.TrimPrefix(location, "file:"), "//")
}
