package catalogs_test

import (
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/catalogs"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/files"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// kinds are catalogs whose properties are changed by compare-and-set, and one whose
// are not.
var kinds = []struct {
	name   string
	atomic bool
	config func(t *testing.T) catalogs.Config
}{
	{"sqlite", true, func(t *testing.T) catalogs.Config {
		t.Helper()
		return catalogs.Config{Kind: catalogs.SQLite, Path: t.TempDir() + "/c.db", Name: "c"}
	}},
	{"dir", true, func(t *testing.T) catalogs.Config {
		t.Helper()
		return catalogs.Config{Kind: catalogs.Dir, Path: t.TempDir() + "/wh"}
	}},
	{"postgres", true, func(t *testing.T) catalogs.Config {
		t.Helper()
		config, err := pgx.ParseConfig(pgtest.Server(t).Database(t, "catalog"))
		if err != nil {
			t.Fatal(err)
		}
		return catalogs.Config{Kind: catalogs.Postgres, Postgres: config, Name: "c"}
	}},
	{"rest", false, func(t *testing.T) catalogs.Config {
		t.Helper()
		behind := open(t, catalogs.Config{Kind: catalogs.SQLite, Path: t.TempDir() + "/c.db", Name: "c"})
		made, err := behind.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(icetest.NewREST(t, made).URL)
		if err != nil {
			t.Fatal(err)
		}
		return catalogs.Config{Kind: catalogs.REST, URI: u}
	}},
}

func open(t *testing.T, config catalogs.Config) *catalogs.Catalog {
	t.Helper()
	config.Files, config.Props = files.New(), iceberg.Properties{}
	c := catalogs.New(config)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		config.Files.Close()
	})
	return c
}

func TestProperty(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			config := kind.config(t)
			c := open(t, config)
			namespace := table.Identifier{"ns"}
			if kind.name != "rest" {
				if _, err := c.Get(t.Context()); !errors.Is(err, catalogs.ErrMissing) {
					t.Errorf("get of a catalog that is not there = %v", err)
				}
			}
			for range 2 {
				if err := c.MakeNamespace(t.Context(), namespace); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Property(t.Context(), table.Identifier{"none"}, "k"); !errors.Is(err, catalog.ErrNoSuchNamespace) {
				t.Errorf("property of no namespace: %v", err)
			}
			for _, step := range []struct {
				old, value string
				changed    bool
			}{{"x", "y", false}, {"", "a", true}, {"", "b", false}, {"b", "c", false}, {"a", "it's \"b\"", true}, {"it's \"b\"", "c", true}} {
				changed, err := c.ChangeProperty(t.Context(), namespace, "dat.k", step.old, step.value)
				if err != nil || changed != step.changed {
					t.Errorf("%q to %q = %t, %v", step.old, step.value, changed, err)
				}
			}
			if got, err := c.Property(t.Context(), namespace, "dat.k"); err != nil || got != "c" {
				t.Errorf("property = %q, %v", got, err)
			}
			if !kind.atomic {
				return
			}
			var won atomic.Int32
			var wg sync.WaitGroup
			for _, value := range []string{"1", "2", "3", "4"} {
				other := open(t, config)
				wg.Go(func() {
					changed, err := other.ChangeProperty(t.Context(), namespace, "dat.k", "c", value)
					if err != nil {
						t.Error(err)
					}
					if changed {
						won.Add(1)
					}
				})
			}
			wg.Wait()
			if won.Load() != 1 {
				t.Errorf("%d of 4 have changed it", won.Load())
			}
		})
	}
}

// Two spellings of one catalog are one; two catalogs are two.
func TestIdentity(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			config := kind.config(t)
			c := open(t, config)
			if err := c.MakeNamespace(t.Context(), table.Identifier{"ns"}); err != nil {
				t.Fatal(err)
			}
			one, err := c.Identity(t.Context())
			if err != nil || one == "" {
				t.Fatal(one, err)
			}
			other, err := open(t, config).Identity(t.Context())
			if err != nil || other != one {
				t.Errorf("%q and %q, %v", one, other, err)
			}
			second := open(t, kind.config(t))
			if err := second.MakeNamespace(t.Context(), table.Identifier{"ns"}); err != nil {
				t.Fatal(err)
			}
			if other, err = second.Identity(t.Context()); err != nil || other == one {
				t.Errorf("two catalogs are both %q, %v", other, err)
			}
		})
	}
}

// A role whose commits are not forced commits to the catalog all the same.
func TestForced(t *testing.T) {
	cluster := pgtest.Server(t)
	dsn := cluster.Database(t, "catalog")
	cluster.Exec(t, dsn, "ALTER DATABASE "+pgtest.Name(dsn)+" SET synchronous_commit = off")
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, catalogs.Config{Kind: catalogs.Postgres, Postgres: config, Name: "c"})
	if _, err := c.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := c.Setting(t.Context(), "synchronous_commit")
	if err != nil || got != "on" {
		t.Errorf("synchronous_commit = %q, %v", got, err)
	}
}
