package iceberg_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	lib "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
)

// The bugs of iceberg-go v0.7.0 by the letters of the design's §9, each with the
// right value.

// (a) A filtered read of the library drops a row group where exactly half of the
// values are NULL.
func TestBugHalfNull(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (0, 'oslo'), (1, NULL), (2, 'oslo'), (3, NULL), (4, 'oslo'), (5, NULL)")
	b.want("SELECT id FROM t WHERE city = 'oslo'", "0", "2", "4")
	b.want("SELECT id FROM t WHERE city IS NULL", "1", "3", "5")
	b.exec("DELETE FROM t WHERE city = 'oslo'")
	b.want("SELECT id FROM t", "1", "3", "5")
}

// (b) A copy-on-write DELETE of the library loses the rows for which its condition is
// unknown.
func TestBugNullsInDelete(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo'), (2, 'riga'), (3, NULL)")
	if n := b.exec("DELETE FROM t WHERE city = 'oslo'"); n != 1 {
		t.Errorf("%d rows deleted, want 1", n)
	}
	b.want("SELECT id FROM t", "2", "3")
	if n := b.exec("DELETE FROM t WHERE id = 2 AND city <> 'x' OR NOT (city = 'y')"); n != 1 {
		t.Errorf("%d rows deleted, want 1", n)
	}
	b.want("SELECT id FROM t", "3")
}

// (c) A copy-on-write DELETE of the library brings back rows that a merge-on-read one
// has removed (#2042).
func TestBugDeletedRowsReturn(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE t (id long, city string) TBLPROPERTIES ('write.delete.mode'='merge-on-read')",
		"INSERT INTO t VALUES (1, 'oslo'), (2, 'riga'), (3, 'bern'), (4, 'bern')")
	if _, err := b.load("t").Delete(t.Context(), lib.EqualTo(lib.Reference("id"), int64(2)), nil); err != nil {
		t.Fatal(err)
	}
	b.want("SELECT id FROM t", "1", "3", "4")
	b.exec("DELETE FROM t WHERE id = 1")
	b.want("SELECT id FROM t", "3", "4")
	b.exec("UPDATE t SET city = 'bonn' WHERE id = 4")
	b.want("SELECT id, city FROM t", "3|bern", "4|bonn")
}

// (d) and (k): filters on which the library panics, or has no answer.
func TestBugFilters(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE t (id long, d decimal(9,2), s string, l list<long>)",
		"INSERT INTO t (id, d, s) VALUES (1, 1.50, 'abc')", "INSERT INTO t (id) VALUES (2)")
	b.want("SELECT id FROM t WHERE d IS NULL", "2")
	b.want("SELECT id FROM t WHERE d IS NOT NULL", "1")
	b.want("SELECT id FROM t WHERE s LIKE 'ab%'", "1")
	b.want("SELECT id FROM t WHERE l IS NULL", "1", "2")
	b.exec("DELETE FROM t WHERE d IS NULL")
	b.want("SELECT id FROM t", "1")
	b.exec("DELETE FROM t WHERE s LIKE 'a%'")
	b.want("SELECT id FROM t")
}

// (e) An empty string in a partition by a string makes every engine skip its file:
// it is refused, wherever it comes from, and a table that has one is read right.
func TestBugEmptyStringPartition(t *testing.T) {
	for _, by := range []string{"s", "truncate(2, s)"} {
		b := newBed(t, icetest.SQLite, "CREATE TABLE t (id long, s string) PARTITIONED BY ("+by+")", "INSERT INTO t VALUES (1, 'ab'), (2, NULL)")
		u := b.begin(b.store)
		execOn(t, u.session, "INSERT INTO t VALUES (3, 'kept')")
		for _, text := range []string{"INSERT INTO t VALUES (4, 'cd'), (5, '')", "UPDATE t SET s = '' WHERE id = 1"} {
			_, err := u.session.Exec(t.Context(), text, nil)
			if e, ok := errors.AsType[*iceberg.ValueError](err); !ok || e.Column != "s" {
				t.Errorf("%s: %s = %v, want a ValueError of column s", by, text, err)
			}
		}
		if _, err := u.session.(branches.Copier).CopyFrom(t.Context(), "t", []string{"s"}, once([]any{""})); err == nil {
			t.Errorf("%s: an empty string was copied", by)
		}
		if err := u.try(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.store.Finish(t.Context(), u.ref()); err != nil {
			t.Fatal(err)
		}
		b.want("SELECT id, s FROM t", "1|ab", "2|<nil>", "3|kept")

		// Another writer of this library puts one in.
		tbl := b.load("t")
		b.append(tbl, []any{int64(6), ""}, []any{int64(7), "ef"})
		b.want("SELECT id FROM t WHERE s = 'ef'", "7")
		b.want("SELECT id FROM t WHERE s = ''", "6")
		if n := b.exec("DELETE FROM t WHERE s = 'ef'"); n != 1 {
			t.Errorf("%s: %d rows deleted, want 1", by, n)
		}
	}
}

// once gives one row to CopyFrom.
func once(row []any) func() ([]any, error) {
	return func() ([]any, error) {
		given := row
		row = nil
		return given, nil
	}
}

// append appends rows of (long, string) by the library's own way.
func (b *bed) append(tbl *table.Table, rows ...[]any) {
	b.Helper()
	schema, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
	if err != nil {
		b.Fatal(err)
	}
	built := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for _, row := range rows {
		built.Field(0).(*array.Int64Builder).Append(row[0].(int64))
		built.Field(1).(*array.StringBuilder).Append(row[1].(string))
	}
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{built.NewRecordBatch()})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := tbl.Append(b.Context(), reader, nil); err != nil {
		b.Fatal(err)
	}
}

// (f) A SQL catalog reports a moved head in a bare error.
func TestBugBareConflict(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities)
	tbl := b.load("t")
	b.exec("INSERT INTO t VALUES (1, 'oslo')")
	tx := tbl.NewTransaction()
	if err := tx.SetProperties(lib.Properties{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	if err := tx.AssertRefSnapshotID(""); err != nil {
		t.Fatal(err)
	}
	_, err := tx.Commit(t.Context())
	if err == nil {
		t.Fatal("a commit on an old head = nil")
	}
	if kind := b.store.Classify(err); kind != branches.Transient {
		t.Errorf("%v is %s, want transient", err, kind)
	}
}

// (g) Several programs open one new PostgreSQL catalog at once.
func TestBugCatalogTablesAtOnce(t *testing.T) {
	place := icetest.Postgres(t)
	var wg sync.WaitGroup
	for range 8 {
		store, err := iceberg.Open("s", dsn(place), iceberg.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := store.Install(t.Context()); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// (h) is TestStagedFileGone, (i) TestDiskFull.

// (j) Two writes with one id overwrite each other's files.
func TestBugSameFileTwice(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities)
	u := b.begin(b.open(iceberg.Options{FlushRows: 1}))
	for _, city := range []string{"a", "b", "c"} {
		execOn(t, u.session, "INSERT INTO t VALUES (1, ?)", city)
	}
	if err := u.try(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	b.want("SELECT city FROM t", "a", "b", "c")
	if got := b.glob("t/data/*.parquet"); len(got) != 3 {
		t.Errorf("%d files of three writes", len(got))
	}
}

// (l) NULL and the text "null" are printed alike in a path.
func TestBugNullText(t *testing.T) {
	for _, by := range []string{"s", "truncate(4, s)", "s, truncate(3, s)"} {
		b := newBed(t, icetest.SQLite, "CREATE TABLE t (id long, s string) PARTITIONED BY ("+by+")")
		b.exec("INSERT INTO t VALUES (1, NULL), (2, 'null'), (3, 'a'), (4, 'nullify'), (5, NULL)")
		io, err := b.load("t").FS(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		nulls := int64(0)
		for m, err := range b.load("t").AllManifests(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range m.Entries(io, true) {
				if err != nil {
					t.Fatal(err)
				}
				for _, value := range e.DataFile().Partition() {
					if value == nil {
						nulls += e.DataFile().Count()
						break
					}
				}
			}
		}
		if nulls != 2 {
			t.Errorf("%s: %d rows are in the partition of NULL, want 2", by, nulls)
		}
		b.want("SELECT id FROM t WHERE s IS NULL", "1", "5")
		b.want("SELECT id FROM t WHERE s = 'null'", "2")
	}
}

// (m) What follows file:// is the path itself.
func TestBugPercentInPath(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE t (id long, s string) PARTITIONED BY (s)", "INSERT INTO t VALUES (1, 'a/b'), (2, 'c d:é')")
	b.want("SELECT id, s FROM t", "1|a/b", "2|c d:é")
	got := b.glob("t/data/*/*.parquet")
	if len(got) != 2 || !strings.Contains(got[0], "/s=a%2Fb/") {
		t.Errorf("files %q, want them under the escaped names", got)
	}
	// Metadata and disk agree, which is what other engines read by.
	for m, err := range b.load("t").AllManifests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		io, _ := b.load("t").FS(t.Context())
		for e, err := range m.Entries(io, true) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(strings.TrimPrefix(e.DataFile().FilePath(), "file://")); err != nil {
				t.Error(err)
			}
		}
	}
}

// (n) A filtered plan leaves out the equality deletes that its bounds exclude.
func TestBugEqualityDeletes(t *testing.T) {
	b := newBed(t, icetest.SQLite, cities, "INSERT INTO t VALUES (1, 'oslo'), (2, 'riga'), (3, 'bern')")
	b.equalityDelete("riga")
	b.want("SELECT id FROM t", "1", "3")
	if n := b.exec("DELETE FROM t WHERE city = 'oslo'"); n != 1 {
		t.Errorf("%d rows deleted, want 1", n)
	}
	b.want("SELECT id FROM t", "3")
	b.exec("INSERT INTO t VALUES (4, 'riga')") // after the delete: it stays
	b.exec("UPDATE t SET id = 30 WHERE city = 'bern'")
	b.want("SELECT id, city FROM t", "30|bern", "4|riga")
}

// equalityDelete deletes the rows of a city as a stream engine does.
func (b *bed) equalityDelete(city string) {
	b.Helper()
	tbl := b.load("t")
	field, _ := tbl.Schema().FindFieldByName("city")
	schema, err := table.SchemaToArrowSchema(lib.NewSchema(0, field), nil, true, false)
	if err != nil {
		b.Fatal(err)
	}
	built := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	built.Field(0).(*array.StringBuilder).Append(city)
	batch := built.NewRecordBatch()
	tx := tbl.NewTransaction()
	deletes, err := tx.WriteEqualityDeletes(b.Context(), []int{field.ID}, func(yield func(arrow.RecordBatch, error) bool) { yield(batch, nil) })
	if err == nil {
		err = tx.NewRowDelta(nil).AddDeletes(deletes...).Commit(b.Context())
	}
	if err == nil {
		_, err = tx.Commit(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
}

// (o) An object store's client rewrites "..": such a text is refused there, and a
// warehouse with // too.
func TestBugDotsInKeys(t *testing.T) {
	b := newBed(t, icetest.SQLiteS3, "CREATE TABLE t (id long, s string) PARTITIONED BY (s)")
	_, err := b.session(b.store).Exec(t.Context(), "INSERT INTO t VALUES (1, 'a..')", nil)
	if _, ok := errors.AsType[*iceberg.ValueError](err); !ok {
		t.Errorf("insert = %v, want a ValueError", err)
	}
	b.exec("INSERT INTO t VALUES (1, '..a'), (2, 'a.b')")
	b.want("SELECT id FROM t", "1", "2")
	if _, err := iceberg.Open("s", "iceberg+sqlite:///x.db?warehouse=s3://lake//wh", iceberg.Options{}); err == nil {
		t.Error("a warehouse with // was taken")
	}
}

// A catalog of Java's old layout has no column iceberg_type.
func TestOldCatalogLayout(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "catalog.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL," +
			" metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name))",
		"CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255)," +
			" property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))",
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, func(testing.TB) *icetest.Place {
		return &icetest.Place{Dir: dir + "/wh", DSN: "iceberg+sqlite://" + dir + "/catalog.db?warehouse=file://" + dir + "/wh"}
	}, cities, "INSERT INTO t VALUES (1, 'oslo')")
	b.want("SELECT id FROM t", "1")
}
