package iceberg_test

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/files"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
)

// written says what kind of file a path of a warehouse is.
func written(path string) string {
	base := filepath.Base(path)
	switch {
	case strings.HasSuffix(base, ".parquet"):
		return "data"
	case strings.HasPrefix(base, "snap-"):
		return "manifest list"
	case strings.HasSuffix(base, ".avro"):
		return "manifest"
	case strings.HasSuffix(base, ".metadata.json"):
		return "metadata"
	}
	return base
}

// The disk is full at each kind of write, and at each place of it. Nothing becomes
// visible, the error says STORE_FULL, and with room again the same unit goes on.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	kinds := []icetest.Kind{{Name: "sqlite", Make: icetest.SQLite}, {Name: "dir", Make: icetest.Dir}}
	for _, kind := range kinds {
		for _, where := range []string{"data", "manifest", "manifest list", "metadata"} {
			for _, op := range []files.Op{files.OpCreate, files.OpWrite, files.OpSync} {
				t.Run(kind.Name+" "+where+" "+string(op), func(t *testing.T) {
					t.Parallel()
					b := newBed(t, kind.Make, "CREATE TABLE t (k string)", "INSERT INTO t (k) VALUES ('z')")
					b.testFull(where, op)
				})
			}
		}
	}
}

func (b *bed) testFull(where string, op files.Op) {
	b.Helper()
	hit := false
	full := func(at files.Op, path string) error {
		if at == op && written(path) == where {
			hit = true
			return &filesError{path}
		}
		return nil
	}
	u := b.begin(b.store)
	execOn(b.T, u.session, "INSERT INTO t (k) VALUES ('a')")
	if where == "data" {
		b.store.SetFault(full)
		b.isFull("stage", u.try(b.Context()))
		if err := u.Rollback(b.Context()); err != nil {
			b.Error(err)
		}
		b.store.SetFault(nil)
		if got := b.glob("t/data/*.parquet"); len(got) != 1 {
			b.Errorf("a failed write leaves files: %q", got)
		}
		u = b.staged("INSERT INTO t (k) VALUES ('a')")
	} else if err := u.try(b.Context()); err != nil {
		b.Fatal(err)
	} else {
		b.store.SetFault(full)
		b.isFull("finish", b.store.Finish(b.Context(), u.ref()))
		b.store.SetFault(nil)
	}
	if !hit {
		b.Fatal("no such write was made")
	}
	b.want("SELECT k FROM t", "z")
	if err := b.store.Finish(b.Context(), u.ref()); err != nil {
		b.Fatal(err)
	}
	b.want("SELECT k FROM t", "a", "z")
	if n := b.snapshotsOf("t", u.txn); n != 1 {
		b.Errorf("%d snapshots, want 1", n)
	}
}

func (b *bed) isFull(doing string, err error) {
	b.Helper()
	if kind := branches.Classify(b.store, err); err == nil || kind != branches.StoreFull || !errors.Is(err, syscall.ENOSPC) {
		b.Errorf("%s = %v (%s), want store full", doing, err, kind)
	}
}

// filesError is what a full disk answers.
type filesError struct{ path string }

func (e *filesError) Error() string { return "write " + e.path + ": " + syscall.ENOSPC.Error() }
func (e *filesError) Unwrap() error { return syscall.ENOSPC }

// A one-phase commit on a full disk has certainly not happened: its files go.
func TestDiskFullInOnePhase(t *testing.T) {
	for _, where := range []string{"manifest", "manifest list", "metadata"} {
		b := newBed(t, icetest.SQLite, "CREATE TABLE t (k string)")
		b.store.SetFault(func(_ files.Op, path string) error {
			if written(path) == where {
				return &filesError{path}
			}
			return nil
		})
		_, err := b.session(b.store).Exec(t.Context(), "INSERT INTO t (k) VALUES ('a')", nil)
		b.isFull(where, err)
		if branches.IsUnknown(err) {
			t.Errorf("%s: %v, want a certain answer", where, err)
		}
		b.store.SetFault(nil)
		if got := b.glob("t/data/*.parquet"); len(got) != 0 {
			t.Errorf("%s: staged files stay behind: %q", where, got)
		}
		b.want("SELECT k FROM t")
	}
}

// A file warehouse tells the room on its disk, also before it is there; an object
// store has none to tell.
func TestFree(t *testing.T) {
	b := newBed(t, icetest.SQLite)
	if n, ok, err := b.store.Free(t.Context()); n <= 0 || !ok || err != nil {
		t.Errorf("free = %d, %t, %v", n, ok, err)
	}
	b = newBed(t, icetest.SQLiteS3)
	if n, ok, err := b.store.Free(t.Context()); n != 0 || ok || err != nil {
		t.Errorf("free of an object store = %d, %t, %v", n, ok, err)
	}
}
