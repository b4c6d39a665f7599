package iceberg_test

import (
	"errors"
	"testing"

	lib "github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
)

const cities = "CREATE TABLE t (id long, city string)"

// A unit reads what it has written, in memory and in files, and others do not.
func TestOwnReads(t *testing.T) {
	for _, flush := range []int{1, 1000} {
		b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo'), (2, 'riga'), (3, NULL)")
		u := b.begin(b.open(iceberg.Options{FlushRows: flush}))
		for _, step := range []struct {
			text string
			rows int64
			want []string
		}{
			{"INSERT INTO t VALUES (4, 'oslo'), (5, NULL)", 2, []string{"1|oslo", "2|riga", "3|<nil>", "4|oslo", "5|<nil>"}},
			{"DELETE FROM t WHERE city = 'oslo'", 2, []string{"2|riga", "3|<nil>", "5|<nil>"}},
			{"UPDATE t SET id = id + 10 WHERE city IS NULL", 2, []string{"13|<nil>", "15|<nil>", "2|riga"}},
			{"INSERT INTO t VALUES (6, 'bern')", 1, []string{"13|<nil>", "15|<nil>", "2|riga", "6|bern"}},
			{"UPDATE t SET city = 'bonn' WHERE id > 5", 3, []string{"13|bonn", "15|bonn", "2|riga", "6|bonn"}},
			{"DELETE FROM t WHERE id = 99", 0, []string{"13|bonn", "15|bonn", "2|riga", "6|bonn"}},
		} {
			if n := execOn(t, u.session, step.text); n != step.rows {
				t.Errorf("%s: %d rows, want %d", step.text, n, step.rows)
			}
			if got := rowsOn(t, u.session, "SELECT id, city FROM t"); !equal(got, step.want) {
				t.Errorf("%s: the unit sees %q, want %q", step.text, got, step.want)
			}
		}
		b.want("SELECT id, city FROM t", "1|oslo", "2|riga", "3|<nil>")
		if err := u.try(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.store.Finish(t.Context(), u.ref()); err != nil {
			t.Fatal(err)
		}
		b.want("SELECT id, city FROM t", "13|bonn", "15|bonn", "2|riga", "6|bonn")
		// Files that the unit wrote and did not use are gone: one of the table as it
		// was, and those that the payload names.
		changes, err := iceberg.DecodePayload(u.payload)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.glob("t/data/*.parquet"); len(got) != 1+len(changes[0].Add) {
			t.Errorf("%d data files, want %d", len(got), 1+len(changes[0].Add))
		}
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Savepoints take files and rewrites back.
func TestSavepoints(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo'), (2, 'riga')")
	u := b.begin(b.open(iceberg.Options{FlushRows: 1}))
	sp := u.Branch.(branches.Savepointer)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	execOn(t, u.session, "INSERT INTO t VALUES (3, 'bern')")
	must(sp.Savepoint(t.Context(), "one"))
	execOn(t, u.session, "DELETE FROM t WHERE city = 'oslo'")
	must(sp.Savepoint(t.Context(), "two"))
	execOn(t, u.session, "UPDATE t SET city = 'x'")
	must(sp.RollbackTo(t.Context(), "two"))
	if got := rowsOn(t, u.session, "SELECT id, city FROM t"); !equal(got, []string{"2|riga", "3|bern"}) {
		t.Errorf("after ROLLBACK TO two: %q", got)
	}
	must(sp.RollbackTo(t.Context(), "one"))
	if got := rowsOn(t, u.session, "SELECT id, city FROM t"); !equal(got, []string{"1|oslo", "2|riga", "3|bern"}) {
		t.Errorf("after ROLLBACK TO one: %q", got)
	}
	if sp.RollbackTo(t.Context(), "none") == nil {
		t.Error("ROLLBACK TO of no savepoint = nil")
	}
	must(u.try(t.Context()))
	must(b.store.Finish(t.Context(), u.ref()))
	b.want("SELECT id, city FROM t", "1|oslo", "2|riga", "3|bern")
	if got := b.glob("t/data/*.parquet"); len(got) != 2 {
		t.Errorf("files of what was rolled back stay behind: %q", got)
	}
}

// A peer changes the table between a unit's DELETE and its Stage.
func TestConflictAtStage(t *testing.T) {
	for _, c := range []struct {
		name, peer string
		conflict   bool
	}{
		{"an unrelated append", "INSERT INTO t VALUES (9, 'bern')", false},
		{"an append that matches", "INSERT INTO t VALUES (9, 'oslo')", true},
		{"the same file rewritten", "DELETE FROM t WHERE id = 2", true},
		{"a row of another file moved into the condition", "UPDATE t SET city = 'oslo' WHERE id = 3", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo'), (2, 'riga')", "INSERT INTO t VALUES (3, 'bern')")
			u := b.begin(b.store)
			execOn(t, u.session, "DELETE FROM t WHERE city = 'oslo'")
			b.exec(c.peer)
			err := u.try(t.Context())
			switch {
			case c.conflict && (err == nil || branches.Classify(b.store, err) != branches.Transient):
				t.Errorf("stage = %v, want a transient error", err)
			case !c.conflict && err != nil:
				t.Errorf("stage = %v", err)
			}
			if err := u.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The unit is decided, and then a peer changes what its DELETE and UPDATE stand on:
// the statements are done again on what is there, once, and the inserted rows stay.
func TestConflictAfterDecision(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, peer string
		want       []string
	}{
		{"an append that matches", "INSERT INTO t VALUES (9, 'oslo'), (10, NULL)", []string{"10|<nil>", "12|riga", "3|bern", "7|new"}},
		{"the same file rewritten", "UPDATE t SET city = 'bonn' WHERE id = 1", []string{"12|riga", "1|bonn", "3|bern", "7|new"}},
		{"the rows deleted", "DELETE FROM t WHERE id < 3", []string{"3|bern", "7|new"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo'), (2, 'riga')", "INSERT INTO t VALUES (3, 'bern')")
			u := b.begin(b.store)
			execOn(t, u.session, "INSERT INTO t VALUES (7, 'new'), (8, 'oslo')")
			execOn(t, u.session, "DELETE FROM t WHERE city = ?", "oslo")
			execOn(t, u.session, "UPDATE t SET id = id + 10 WHERE city = $1", "riga")
			if err := u.try(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.exec(c.peer)
			for range 2 {
				if err := b.store.Finish(t.Context(), u.ref()); err != nil {
					t.Fatal(err)
				}
			}
			b.want("SELECT id, city FROM t", c.want...)
			if n := b.snapshotsOf("t", u.txn); n != 1 {
				t.Errorf("%d snapshots, want 1", n)
			}
		})
	}
}

// What a peer has left is nothing that the statements can be done on: a heuristic
// outcome, and nothing of the unit is there.
func TestConflictThatCannotBeRedone(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo')")
	u := b.staged("INSERT INTO t VALUES (7, 'new')", "UPDATE t SET id = 2 WHERE city = 'oslo'")
	change := b.load("t").NewTransaction()
	if err := change.UpdateSchema(true, true).DeleteColumn([]string{"city"}).Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := change.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := b.store.Finish(t.Context(), u.ref())
	if h, ok := errors.AsType[*branches.Heuristic](err); !ok || h.Committed {
		t.Errorf("finish = %v, want a Heuristic", err)
	}
	b.want("SELECT id FROM t", "1")
}

// The snapshots since a unit was staged have expired, but the files that it replaces
// are still there: it was not applied, and its statements may be done again.
func TestConflictAfterExpiry(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE t (k string, n long)", "INSERT INTO t VALUES ('a', 1)")
	u := b.staged("UPDATE t SET n = n + 1 WHERE k = 'a'")
	b.exec("INSERT INTO t VALUES ('a', 5)")
	b.expire(true)
	for entry := range b.load("t").Metadata().PreviousFiles() {
		b.remove(entry.MetadataFile)
	}
	for range 2 {
		if err := b.store.Finish(t.Context(), u.ref()); err != nil {
			t.Fatal(err)
		}
	}
	b.want("SELECT k, n FROM t", "a|2", "a|6")
}

// The schema changes under a staged unit.
func TestSchemaChanged(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo')")
	u := b.staged("INSERT INTO t VALUES (2, 'riga')")
	change := b.load("t").NewTransaction()
	if err := change.UpdateSchema(true, false).AddColumn([]string{"more"}, lib.PrimitiveTypes.Int64, "", false, nil).Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := change.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	b.want("SELECT id, city, more FROM t", "1|oslo|<nil>", "2|riga|<nil>")

	u = b.staged("INSERT INTO t (id) VALUES (3)")
	change = b.load("t").NewTransaction()
	if err := change.UpdateSchema(true, true).AddColumn([]string{"must"}, lib.PrimitiveTypes.Int64, "", true, nil).Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := change.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := b.store.Finish(t.Context(), u.ref())
	if _, final := errors.AsType[*branches.Heuristic](err); err == nil || final || branches.Classify(b.store, err) != branches.Permanent {
		t.Errorf("finish into a table with a new required column = %v, want a permanent error that a person can end", err)
	}
}

// Another table stands under the name.
func TestTableReplaced(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities)
	u := b.staged("INSERT INTO t VALUES (1, 'oslo')")
	b.exec("DROP TABLE t")
	if err := b.store.Finish(t.Context(), u.ref()); err == nil {
		t.Error("finish without a table = nil")
	}
	b.exec(cities)
	err := b.store.Finish(t.Context(), u.ref())
	if _, ok := errors.AsType[*branches.Heuristic](err); !ok {
		t.Errorf("finish into another table = %v, want a Heuristic", err)
	}
	b.want("SELECT id FROM t")
}

// A table of format version 3 takes appends; what would need row ids is refused.
func TestFormatVersion3(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE t (id long, city string) TBLPROPERTIES ('format-version'='3')", "INSERT INTO t VALUES (1, 'oslo')")
	u := b.staged("INSERT INTO t VALUES (2, 'riga')")
	for range 2 {
		if err := b.store.Finish(t.Context(), u.ref()); err != nil {
			t.Fatal(err)
		}
	}
	b.want("SELECT id, city FROM t", "1|oslo", "2|riga")
	for _, text := range []string{"DELETE FROM t", "UPDATE t SET id = 1"} {
		_, err := b.session(b.store).Exec(t.Context(), text, nil)
		if _, ok := errors.AsType[*branches.StatementError](err); !ok {
			t.Errorf("%s = %v, want a StatementError", text, err)
		}
	}
	v := b.begin(b.store)
	if fate, err := b.store.Settle(t.Context(), v.txn); err != nil || fate != branches.FateNever {
		t.Errorf("settle = %s, %v", fate, err)
	}
	b.want("SELECT id, city FROM t", "1|oslo", "2|riga")
}
