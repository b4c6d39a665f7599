package iceberg_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
)

// expire leaves the last snapshot of a table.
func (b *bed) expire(removeFiles bool) {
	b.Helper()
	for {
		tbl := b.load("t")
		if len(tbl.Metadata().Snapshots()) == 1 {
			return
		}
		// One of this very millisecond is not old enough yet.
		tx := tbl.NewTransaction()
		if err := tx.ExpireSnapshots(table.WithOlderThan(0), table.WithRetainLast(1), table.WithPostCommit(removeFiles)); err != nil {
			b.Fatal(err)
		}
		// Its removal of files may meet one that it has removed before; the commit
		// stands by then.
		if _, err := tx.Commit(b.Context()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.Fatal(err)
		}
	}
}

func (b *bed) rewriteManifests() {
	b.Helper()
	tx := b.load("t").NewTransaction()
	if _, err := tx.RewriteManifests(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// A change is finished, maintenance goes over the table, and another worker
// finishes it again (§5 of the design: each step of the check, and what leads to it).
func TestFinishAfterMaintenance(t *testing.T) {
	t.Parallel()
	steps := []struct {
		name string
		run  func(b *bed)
		want []string
	}{
		{"nothing", func(*bed) {}, []string{"a", "b"}},
		{"a later commit", func(b *bed) { b.exec("INSERT INTO t (k) VALUES ('c')") }, []string{"a", "b", "c"}},
		{"expiry", func(b *bed) {
			b.exec("INSERT INTO t (k) VALUES ('c')")
			b.expire(true)
		}, []string{"a", "b", "c"}},
		{"the rows deleted, expiry", func(b *bed) {
			b.exec("DELETE FROM t WHERE k IN ('a', 'b')")
			b.exec("INSERT INTO t (k) VALUES ('c')")
			b.expire(true)
		}, []string{"c"}},
		{"the file rewritten, expiry, files kept", func(b *bed) {
			b.exec("DELETE FROM t WHERE k = 'b'")
			b.expire(false)
		}, []string{"a"}},
		{"the rows deleted, manifests rewritten, expired twice, files kept", func(b *bed) {
			b.exec("DELETE FROM t WHERE k IN ('a', 'b')")
			b.exec("INSERT INTO t (k) VALUES ('c')")
			b.expire(false)
			b.rewriteManifests()
			b.exec("INSERT INTO t (k) VALUES ('d')")
			b.expire(false)
		}, []string{"c", "d"}},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, icetest.SQLite, "CREATE TABLE t (k string)")
			u := b.staged("INSERT INTO t (k) VALUES ('a'), ('b')")
			if err := b.store.Finish(t.Context(), u.ref()); err != nil {
				t.Fatal(err)
			}
			step.run(b)
			if err := b.store.Finish(t.Context(), u.ref()); err != nil {
				t.Errorf("second finish: %v", err)
			}
			b.want("SELECT k FROM t", step.want...)
			err := b.store.Abort(t.Context(), u.ref())
			if h, ok := errors.AsType[*branches.Heuristic](err); !ok || !h.Committed {
				t.Errorf("abort of what was applied = %v, want a Heuristic", err)
			}
			b.want("SELECT k FROM t", step.want...)
		})
	}
}

// A staged change is finished only after maintenance went over the table: it is not
// taken for applied.
func TestMaintenanceBeforeFinish(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE t (k string)")
	b.exec("INSERT INTO t (k) VALUES ('z')")
	u := b.staged("INSERT INTO t (k) VALUES ('a')")
	b.exec("DELETE FROM t WHERE k = 'z'")
	b.exec("INSERT INTO t (k) VALUES ('c')")
	b.expire(true)
	b.rewriteManifests()
	b.expire(true)
	if err := b.store.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	b.want("SELECT k FROM t", "a", "c")
}

// Orphan cleanup has removed a staged file: a heuristic outcome, and a table that
// can be read.
func TestStagedFileGone(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE t (k string)", "CREATE TABLE s (k string)", "INSERT INTO t (k) VALUES ('z')")
	u := b.staged("INSERT INTO t (k) VALUES ('a')", "INSERT INTO s (k) VALUES ('a')")
	if _, err := b.load("t").DeleteOrphanFiles(t.Context(), table.WithFilesOlderThan(0)); err != nil {
		t.Fatal(err)
	}
	err := b.store.Finish(t.Context(), u.ref())
	if h, ok := errors.AsType[*branches.Heuristic](err); !ok || h.Committed {
		t.Errorf("finish = %v, want a Heuristic", err)
	}
	b.want("SELECT k FROM t", "z")
	b.want("SELECT k FROM s", "a") // the other table is finished all the same
}

// What the snapshots show of a unit by its id alone, as long as they are there, and
// that nothing is claimed afterwards.
func TestFate(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE t (k string)")
	u, open := b.staged("INSERT INTO t (k) VALUES ('a')"), b.staged("INSERT INTO t (k) VALUES ('b')")
	b.fate(u.txn, branches.FateAbsent)
	if err := b.store.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	b.fate(u.txn, branches.FateApplied)
	b.fate(open.txn, branches.FateAbsent)
	b.exec("INSERT INTO t (k) VALUES ('c')")
	b.expire(true)
	// The metadata log still has them.
	b.fate(u.txn, branches.FateApplied)
	b.fate(open.txn, branches.FateAbsent)
	for entry := range b.load("t").Metadata().PreviousFiles() {
		b.remove(entry.MetadataFile)
	}
	b.fate(u.txn, branches.FateUnknown)
	b.fate(open.txn, branches.FateUnknown)
	if fate, err := b.store.Settle(t.Context(), open.txn); err == nil {
		t.Errorf("settle without a history = %s, want an error", fate)
	}
}

func (b *bed) fate(txn branches.TxnID, want branches.Fate) {
	b.Helper()
	got, err := b.store.Applied(b.Context(), txn)
	if err != nil || got != want {
		b.Errorf("fate = %s, %v, want %s", got, err, want)
	}
}

// An UPDATE is never done twice: where nobody can tell whether it was, it waits for
// a person.
func TestUpdateWithoutHistory(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE t (k string, n long)", "INSERT INTO t VALUES ('a', 1)")
	u := b.staged("UPDATE t SET n = n + 1 WHERE k = 'a'")
	if err := b.store.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	b.exec("UPDATE t SET k = 'b' WHERE k = 'a'") // the unit's file leaves the table
	b.exec("UPDATE t SET k = 'a' WHERE k = 'b'")
	b.expire(false)
	b.rewriteManifests()
	b.expire(false)
	for entry := range b.load("t").Metadata().PreviousFiles() {
		b.remove(entry.MetadataFile)
	}
	if err := b.store.Finish(t.Context(), u.ref()); err == nil {
		t.Error("finish = nil without any proof")
	}
	b.want("SELECT k, n FROM t", "a|2")
}

// Finish under an ended context proves nothing and changes nothing.
func TestFinishOfEndedContext(t *testing.T) {
	b := newBed(t, icetest.Dir, "CREATE TABLE t (k string)")
	u := b.staged("INSERT INTO t (k) VALUES ('a')")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.store.Finish(ended, u.ref()); !errors.Is(err, context.Canceled) {
		t.Errorf("finish = %v", err)
	}
	b.want("SELECT k FROM t")
}
