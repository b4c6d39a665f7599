package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// raw opens the file beside the journal, as the sqlite3 shell would.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatal(err)
	}
}

// columnsOf describes the tables and indexes of a database.
func columnsOf(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT m.name || '.' || i.name || ' ' || i.type || ' ' || i."notnull" || i.pk
			FROM sqlite_master m, pragma_table_info(m.name) i WHERE m.type = 'table'
		UNION ALL SELECT name || ' on ' || tbl_name FROM sqlite_master WHERE type = 'index' ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		list = append(list, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestUpgrade upgrades a stored dump of every earlier layout.
func TestUpgrade(t *testing.T) {
	newest := filepath.Join(t.TempDir(), "new.db")
	install(t, open(t, "file://"+newest, journal.Options{}))
	dumps, err := os.ReadDir("testdata")
	if err != nil || len(dumps) == 0 {
		t.Fatalf("no dumps: %v", err)
	}
	for i, file := range dumps {
		t.Run(file.Name(), func(t *testing.T) {
			dump, err := os.ReadFile("testdata/" + file.Name())
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "journal.db")
			exec(t, raw(t, path), string(dump))
			j := open(t, "file://"+path, journal.Options{})
			layout, ok := errors.AsType[*journal.Layout](j.Harden(t.Context()))
			if !ok || layout.Found != i+1 || layout.Known != 3 {
				t.Fatalf("before the upgrade: %+v", layout)
			}
			install(t, j)
			install(t, j)
			if diff := cmp.Diff(columnsOf(t, raw(t, newest)), columnsOf(t, raw(t, path))); diff != "" {
				t.Errorf("upgraded tables differ from new ones (-new +upgraded):\n%s", diff)
			}
			var states []journal.State
			if err := j.Scan(t.Context(), journal.Filter{States: journal.States}, func(rec journal.Record) error {
				states = append(states, rec.State)
				return nil
			}); err != nil || !slices.Equal(states, journal.States) {
				t.Errorf("Scan: %v, %v", states, err)
			}
		})
	}
}

func TestLayoutNewerThanTheProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	install(t, open(t, "file://"+path, journal.Options{}))
	exec(t, raw(t, path), `UPDATE dat_journal_meta SET layout = 4`)
	j := open(t, "file://"+path, journal.Options{})
	for name, err := range map[string]error{"Harden": j.Harden(t.Context()), "Install": j.(branches.Installer).Install(t.Context())} {
		if layout, ok := errors.AsType[*journal.Layout](err); !ok || layout.Found != 4 || layout.Known != 3 {
			t.Errorf("%s: %v, want *Layout with both numbers", name, err)
		}
	}
}

// The SQL that is printed makes what Install makes.
func TestInstallSQL(t *testing.T) {
	folder := t.TempDir()
	byInit := open(t, "file://"+folder+"/init.db", journal.Options{})
	install(t, byInit)
	exec(t, raw(t, folder+"/dba.db"), byInit.(branches.Installer).InstallSQL())
	if diff := cmp.Diff(columnsOf(t, raw(t, folder+"/init.db")), columnsOf(t, raw(t, folder+"/dba.db"))); diff != "" {
		t.Errorf("-init +DBA:\n%s", diff)
	}
	made := open(t, "file://"+folder+"/dba2.db", journal.Options{})
	exec(t, raw(t, folder+"/dba2.db"), made.(branches.Installer).InstallSQL())
	id, err := made.(journal.Registry).Identify(t.Context())
	if err != nil || id.Moved() || id.ID == "" {
		t.Errorf("Identify: %+v, %v", id, err)
	}
}

// S4 stamps itself above the read fence.
func TestFence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, "file://"+path, journal.Options{})
	install(t, j)
	fence := hlc.FromMillis(time.Now().UnixMilli() + 1000)
	exec(t, raw(t, path), `UPDATE dat_journal_meta SET fence = ?`, int64(fence))
	s, err := j.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	rec := journal.Record{Txn: branches.TxnID{1}, TxTime: 5}
	if err := s.Create(t.Context(), &rec); err != nil || rec.TxTime != fence+1 {
		t.Errorf("S4 stamped %v, %v, want %v", rec.TxTime, err, fence+1)
	}
}

// A writer that holds the file too long makes the unit fail, not the journal.
func TestBusyFileIsTransient(t *testing.T) {
	t.Parallel() // it waits for busy_timeout
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, "file://"+path, journal.Options{})
	install(t, j)
	holder, err := raw(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if _, err := holder.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- j.Harden(t.Context()) }()
	if err := <-waiting; err == nil || j.(branches.Classifier).Classify(err) != branches.Transient {
		t.Errorf("a busy file: %v, want a transient error", err)
	}
	if _, err := holder.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := j.Harden(t.Context()); err != nil {
		t.Error(err)
	}
}
