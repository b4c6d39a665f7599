package iceberg_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
)

// What a unit cannot hold is refused with the reason, and the unit goes on.
func TestRefusedInUnit(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "CREATE NAMESPACE other", "CREATE TABLE other.t (k string)", "INSERT INTO t VALUES (1, 'oslo')")
	u := b.begin(b.store)
	execOn(t, u.session, "INSERT INTO t VALUES (2, 'riga')")
	for text, reason := range map[string]string{
		"CREATE TABLE x (k string)":          "could not take it back",
		"DROP TABLE t":                       "could not take it back",
		"CREATE NAMESPACE n":                 "could not take it back",
		"INSERT INTO other.t VALUES ('a')":   "not in the store's namespace",
		"INSERT INTO t VALUES ('x', 'y')":    "id",
		"INSERT INTO t (nothing) VALUES (1)": "nothing",
		"INSERT INTO missing VALUES (1)":     "missing",
		"UPDATE t SET nothing = 1":           "nothing",
		"SELECT nothing FROM t":              "nothing",
		"this is no statement":               "line 1, column 1",
	} {
		_, err := u.session.Exec(t.Context(), text, nil)
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want %q", text, err, reason)
		}
		if kind := branches.Classify(b.store, err); kind != branches.Permanent {
			t.Errorf("%s is %s, want permanent", text, kind)
		}
	}
	if err := u.Doomed(); err != nil {
		t.Errorf("a refused statement has doomed the unit: %v", err)
	}
	if err := u.try(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	b.want("SELECT id FROM t", "1", "2")
	if got := rowsOn(t, b.session(b.store), "SELECT k FROM other.t"); len(got) != 0 {
		t.Errorf("other.t holds %q", got)
	}
}

func TestReadOnlyUnit(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities)
	session := b.session(b.store)
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Begin(t.Context(), branches.BeginOptions{Txn: txn, ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Exec(t.Context(), "INSERT INTO t VALUES (1, 'a')", nil); !errors.Is(err, branches.ErrReadOnlyUnit) {
		t.Errorf("insert = %v", err)
	}
	if _, err := session.(branches.Copier).CopyFrom(t.Context(), "t", nil, nil); !errors.Is(err, branches.ErrReadOnlyUnit) {
		t.Errorf("copy = %v", err)
	}
	rowsOn(t, session, "SELECT id FROM t")
}

// A unit sees each table as it was when it first met it.
func TestUnitSeesOneSnapshot(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo')")
	u := b.begin(b.store)
	rowsOn(t, u.session, "SELECT id FROM t")
	b.exec("INSERT INTO t VALUES (2, 'riga')")
	if got := rowsOn(t, u.session, "SELECT id FROM t"); !equal(got, []string{"1"}) {
		t.Errorf("the unit sees %q", got)
	}
	execOn(t, u.session, "INSERT INTO t VALUES (3, 'bern')")
	if err := u.try(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	b.want("SELECT id FROM t", "1", "2", "3")
}

func TestTravel(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo')")
	first := b.load("t").CurrentSnapshot()
	b.exec("INSERT INTO t VALUES (2, 'riga')")
	b.exec("DELETE FROM t WHERE id = 1")
	if got := b.rows("SELECT id FROM t FOR VERSION AS OF ?", first.SnapshotID); !equal(got, []string{"1"}) {
		t.Errorf("as of the first snapshot: %q", got)
	}
	b.want("SELECT id FROM t", "2")
	if _, err := tryRows(t.Context(), b.session(b.store), "SELECT id FROM t FOR VERSION AS OF 1"); err == nil {
		t.Error("a snapshot that is none was read")
	}
}

func TestShowAndDescribe(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE t (id long NOT NULL, city string) PARTITIONED BY (bucket(4, id))", "CREATE NAMESPACE a", "CREATE TABLE a.x (k string)")
	b.want("SHOW TABLES", "a|x", "ns|t")
	b.want("SHOW TABLES IN ns", "ns|t")
	b.want("SHOW NAMESPACES", "a", "ns")
	got := strings.Join(b.rows("DESCRIBE t"), "\n")
	for _, part := range []string{"column|id|long NOT NULL|", "column|city|string|", "partition|id_bucket", "property|commit.manifest-merge.enabled|true|", "property|commit.manifest.min-count-to-merge|20|"} {
		if !strings.Contains(got, part) {
			t.Errorf("DESCRIBE lacks %q:\n%s", part, got)
		}
	}
	b.exec("DROP TABLE a.x")
	b.exec("DROP NAMESPACE a")
	b.exec("DROP TABLE IF EXISTS a.x")
	b.want("SHOW TABLES", "ns|t")
}

// The snapshot says which unit it is, and when.
func TestSummary(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities)
	u := b.staged("INSERT INTO t VALUES (1, 'oslo')")
	if err := b.store.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	props := b.load("t").CurrentSnapshot().Summary.Properties
	if props["dat.txn"] != u.txn.String() || props["dat.tx_time"] == "" || strings.ContainsAny(props["dat.tx_time"], ":/") {
		t.Errorf("summary %v", props)
	}
}

// Several tables of one unit, in one payload: each is finished by itself, and what a
// crash in between has left is finished by the next call.
func TestSeveralTables(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "CREATE TABLE a (k string)", "CREATE TABLE b (k string)")
	u := b.staged("INSERT INTO t VALUES (1, 'x')", "INSERT INTO a VALUES ('x')", "INSERT INTO b VALUES ('x')")
	changes, err := iceberg.DecodePayload(u.payload)
	if err != nil || len(changes) != 3 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	broken := b.open(iceberg.Options{})
	n := 0
	stop := errors.New("stopped")
	broken.SetInspected(func() {
		if n++; n == 2 {
			panic(stop)
		}
	})
	func() {
		defer func() {
			if caught, ok := recover().(error); !ok || !errors.Is(caught, stop) {
				t.Errorf("recovered %v", caught)
			}
		}()
		_ = broken.Finish(t.Context(), u.ref())
	}()
	b.want("SELECT count(*) FROM a", "1")
	b.want("SELECT count(*) FROM b", "0")
	if err := b.store.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "t"} {
		b.want("SELECT count(*) FROM "+name, "1")
		if n := b.snapshotsOf(name, u.txn); n != 1 {
			t.Errorf("%s: %d snapshots", name, n)
		}
	}
}

// A damaged payload, and one of a later version, is refused.
func TestDamagedPayload(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities)
	u := b.staged("INSERT INTO t VALUES (1, 'x')")
	for _, payload := range []string{"", "{}", "x", `{"v":2,"changes":[{}]}`, `{"v":1,"changes":[null]}`, `{"v":1,"changes":[{"table":["t"]}]}`, string(u.payload[:len(u.payload)-2])} {
		ref := u.ref()
		ref.Payload = []byte(payload)
		if err := b.store.Finish(t.Context(), ref); err == nil {
			t.Errorf("finish of %q = nil", payload)
		}
	}
	if err := u.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	if got := b.glob("t/data/*.parquet"); len(got) != 0 {
		t.Errorf("a rolled back unit leaves files: %q", got)
	}
}

// A payload is told in words: files, sizes, and the snapshot when there is one.
func TestDescribe(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo')")
	u := b.staged("INSERT INTO t VALUES (2, 'riga'), (3, 'bern')", "DELETE FROM t WHERE id = 1")
	for _, want := range [][]string{
		{"table ns.t: adds 1 files of 2 rows", "replaces 1 files of 1 rows", "it began on snapshot ", "not committed yet"},
		{"committed in snapshot "},
	} {
		lines, err := b.store.Describe(t.Context(), u.ref())
		if err != nil || len(lines) != 1 {
			t.Fatalf("%q, %v", lines, err)
		}
		for _, part := range want {
			if !strings.Contains(lines[0], part) {
				t.Errorf("%q lacks %q", lines[0], part)
			}
		}
		if err := b.store.Finish(t.Context(), u.ref()); err != nil {
			t.Fatal(err)
		}
	}
}
