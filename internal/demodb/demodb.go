// Package demodb is the deployment of the documentation's examples: a store in
// memory and a journal in a file, which need no server.
package demodb

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/memory"
)

var opened atomic.Int64

// Open makes a database, and the store in which an example sees what it wrote.
// end closes and removes both.
func Open() (db *sql.DB, store *memory.Server, end func()) {
	store = memory.NewServer()
	scheme := fmt.Sprintf("demo%d", opened.Add(1)) // each example has a store of its own
	rhizodat.RegisterStore(scheme, func(context.Context, string, rhizodat.StoreConfig, rhizodat.StoreEnv) (branches.Store, error) {
		return memory.Store{Server: store}, nil
	})
	folder, err := os.MkdirTemp("", "rhizodat")
	if err != nil {
		panic(err)
	}
	db = OpenDSN("mem=" + scheme + "://memory journal=file://" + filepath.Join(folder, "journal.db"))
	return db, store, func() {
		_ = db.Close()
		_ = os.RemoveAll(folder)
	}
}

// OpenDSN opens and installs a deployment that logs nothing.
func OpenDSN(dsn string) *sql.DB {
	cfg, err := rhizodat.ParseDSN(dsn)
	if err != nil {
		panic(err)
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	connector, err := rhizodat.NewConnector(cfg)
	if err != nil {
		panic(err)
	}
	if err := connector.Install(context.Background()); err != nil {
		panic(err)
	}
	return sql.OpenDB(connector)
}
