package orm_test

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"sync"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/rhizodat/rhizodat-go"
)

//go:embed migrations
var migrations embed.FS

func TestGoose(t *testing.T) {
	exercise(t, "goose",
		item{"up and down", both, gooseUpDown},
		item{"failed migration", both, gooseFails},
		item{"session locker", both, gooseLocker},
		item{"one migration, two stores", onlyUnit, gooseTwoStores},
	)
}

func migrationsOf(t *testing.T, dir string) fs.FS {
	t.Helper()
	files, err := fs.Sub(migrations, "migrations/"+dir)
	must(t, err)
	return files
}

func gooseOpen(t *testing.T, db *sql.DB, dir string, opts ...goose.ProviderOption) *goose.Provider {
	t.Helper()
	p, err := gooseProvider(db, migrationsOf(t, dir), opts...)
	must(t, err)
	return p
}

func gooseProvider(db *sql.DB, files fs.FS, opts ...goose.ProviderOption) (*goose.Provider, error) {
	// docs: goose open
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, opts...)
	// :docs
	return p, err
}

// forget drops what goose keeps, for the item after.
func gooseForget(t *testing.T, d *deployment) {
	t.Helper()
	for _, url := range []string{d.a, d.b} {
		if url != "" {
			d.cluster.Exec(t, url, `DROP TABLE IF EXISTS goose_db_version`)
		}
	}
}

func gooseUpDown(t *testing.T, d *deployment) {
	defer gooseForget(t, d)
	db := d.open(t)
	for _, store := range []struct {
		name string
		url  string
	}{{"a", d.a}, {"b", d.b}} {
		if store.url == "" {
			continue
		}
		p, ctx := gooseOpen(t, db, "each"), t.Context()
		// docs: goose up
		inStore := rhizodat.WithStore(ctx, store.name)
		results, err := p.Up(inStore)
		// :docs
		must(t, err)
		if len(results) != 2 || !d.table(t, store.url, "items") || !d.table(t, store.url, "goose_db_version") {
			t.Errorf("store %s: %d migrations, or no tables", store.name, len(results))
		}
		for version := int64(2); version > 0; version-- {
			at, err := p.GetDBVersion(inStore)
			must(t, err)
			if at != version {
				t.Errorf("store %s is at version %d, want %d", store.name, at, version)
			}
			_, err = p.Down(inStore)
			must(t, err)
		}
		if d.table(t, store.url, "items") {
			t.Errorf("store %s still has the table", store.name)
		}
	}
}

func gooseFails(t *testing.T, d *deployment) {
	defer gooseForget(t, d)
	p := gooseOpen(t, d.open(t), "broken")
	_, err := p.Up(t.Context())
	isState(t, err, "42P01")
	var partial *goose.PartialError
	if !errors.As(err, &partial) || partial.Failed.Source.Version != 1 {
		t.Errorf("error %v, want goose's *PartialError", err)
	}
	if d.table(t, d.a, "items") {
		t.Error("half of a migration was left")
	}
	at, err := p.GetDBVersion(t.Context())
	must(t, err)
	if at != 0 {
		t.Errorf("at version %d, want 0", at)
	}
}

// The locker takes its lock and lets it go on the one connection of goose's
// *sql.Conn, while its transactions come and go there.
func gooseLocker(t *testing.T, d *deployment) {
	defer gooseForget(t, d)
	var wait sync.WaitGroup
	done := make([]int, 4)
	for i := range done {
		db := d.open(t)
		locker, err := gooseLock()
		must(t, err)
		p := gooseOpen(t, db, "each", goose.WithSessionLocker(locker))
		wait.Go(func() {
			results, err := p.Up(t.Context())
			if err != nil {
				t.Errorf("up: %v", err)
			}
			done[i] = len(results)
		})
	}
	wait.Wait()
	if sum := done[0] + done[1] + done[2] + done[3]; sum != 2 {
		t.Errorf("four programs ran %v migrations, want 2 together", done)
	}
	if n := d.cluster.Int(t, d.a, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database =
		(SELECT oid FROM pg_database WHERE datname = current_database())`); n != 0 {
		t.Errorf("%d advisory locks left", n)
	}
}

func gooseLock() (lock.SessionLocker, error) {
	// docs: goose lock
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60)) // goose.WithSessionLocker(locker)
	// :docs
	return locker, err
}

// A migration's text may route: its tables in both stores and its row in
// goose_db_version are one unit.
func gooseTwoStores(t *testing.T, d *deployment) {
	defer gooseForget(t, d)
	db := d.open(t)
	ctx := t.Context()
	locker, err := gooseLock() // a session's lock is no hindrance to PREPARE TRANSACTION
	must(t, err)
	p := gooseOpen(t, db, "both", goose.WithSessionLocker(locker))
	_, err = p.UpByOne(ctx)
	must(t, err)
	if !d.table(t, d.a, "items") || !d.table(t, d.b, "items") {
		t.Error("a table is missing")
	}
	_, err = p.UpByOne(ctx) // it fails in its last statement, in store b
	isState(t, err, "42P01")
	for _, url := range []string{d.a, d.b} {
		if n := d.cluster.Int(t, url, `SELECT count(*) FROM items`); n != 0 {
			t.Errorf("%d items left by a migration that failed", n)
		}
	}
	_, err = p.Down(ctx)
	must(t, err)
	if d.table(t, d.a, "items") || d.table(t, d.b, "items") {
		t.Error("a table is left")
	}
	at, err := p.GetDBVersion(context.WithoutCancel(ctx))
	must(t, err)
	if at != 0 {
		t.Errorf("at version %d, want 0", at)
	}
}
