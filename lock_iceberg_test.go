package rhizodat_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/lease"
)

// journalURL is the one of a DSN.
var journalURL = regexp.MustCompile(`journal=(\S+)`)

// locks shows the leases that are table locks: fence, and whether it is held.
func (m *icy) locks(t *testing.T) (name, state string) {
	t.Helper()
	url := journalURL.FindStringSubmatch(m.dsn)[1]
	got := m.pg.Strings(t, pgtest.Name(url), `SELECT name || '|' || fence || ' ' || (coalesce(holder, '') <> '') FROM dat_lease WHERE name LIKE 'iceberg:%'`)
	if len(got) != 1 {
		t.Fatalf("table locks %q, want one", got)
	}
	name, state, _ = strings.Cut(got[0], "|")
	if !strings.HasPrefix(name, "iceberg:sqlite:/") || !strings.HasSuffix(name, "catalog.db/default/erp.history") {
		t.Errorf("the lock is called %q", name)
	}
	return name, state
}

// log writes one row in a unit of its own, of one branch or beside PostgreSQL.
func (m *icy) log(t *testing.T, dsn string, id int, beside bool) error {
	t.Helper()
	tx := begin(t, t.Context(), openDSN(t, dsn))
	exec(t, tx, history, id, "1")
	if beside {
		exec(t, tx, debit, id, 1)
	}
	return tx.Commit()
}

// Commits to one table take turns, over goroutines and processes, and each took the
// lock: its fence counts them.
func TestTableCommitsTakeTurns(t *testing.T) {
	const each = 6
	if dsn := os.Getenv("RHIZODAT_TEST_LOGGER"); dsn != "" {
		var work sync.WaitGroup
		db := openDSN(t, dsn)
		for range each {
			work.Go(func() {
				if _, err := db.ExecContext(t.Context(), history, 1, "1"); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		return
	}
	m := newIcy(t)
	var processes []*process
	for range 2 {
		processes = append(processes, program(t, "^TestTableCommitsTakeTurns$", "RHIZODAT_TEST_LOGGER="+m.dsn))
	}
	for _, p := range processes {
		p.end(t)
	}
	if _, state := m.locks(t); state != fmt.Sprint(2*each, " false") {
		t.Errorf("fence and holder of the lock: %q, want %d and none", state, 2*each)
	}
	m.want(t, "", strings.TrimSpace(strings.Repeat("1 ", 2*each)))
}

// Another holds the lock and does not give it back: before the decision that is an
// answer, after it nothing waits for long.
func TestTableIsLocked(t *testing.T) {
	m := newIcy(t)
	if err := m.log(t, m.dsn, 1, false); err != nil {
		t.Fatal(err)
	}
	name, _ := m.locks(t)
	l := acquire(t, openDSN(t, m.dsn), name, 2, lease.WithHolder("node-8"))

	err := m.log(t, m.dsn+" commit_wait=200ms", 2, false)
	aborted, ok := errors.AsType[*rhizodat.Aborted](err)
	held, found := errors.AsType[*lease.Held](err)
	if !ok || !found || held.Holder != "node-8" || aborted.Kind != rhizodat.Transient || !rhizodat.IsRetryable(err) || !errors.Is(err, iceberg.ErrLocked) {
		t.Errorf("one branch: %v, want a transient *Aborted with *Held", err)
	}
	if err := m.log(t, m.dsn+" commit_wait=200ms", 3, true); err != nil {
		t.Errorf("two branches: %v", err)
	}
	m.want(t, "3", "1 3")
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.log(t, m.dsn, 4, false); err != nil {
		t.Error(err)
	}
	m.want(t, "3", "1 3 4")
}

// A holder that was killed keeps the table until its lease lapses, and no longer.
func TestHolderOfTableDies(t *testing.T) {
	if dsn := os.Getenv("RHIZODAT_TEST_TABLE_HOLDER"); dsn != "" {
		acquire(t, openDSN(t, dsn), os.Getenv("RHIZODAT_TEST_TABLE"), 2, lease.WithTTL(time.Second))
		fmt.Println("holding")
		select {}
	}
	m := newIcy(t)
	if err := m.log(t, m.dsn, 1, false); err != nil {
		t.Fatal(err)
	}
	name, _ := m.locks(t)
	holder := program(t, "^TestHolderOfTableDies$", "RHIZODAT_TEST_TABLE_HOLDER="+m.dsn, "RHIZODAT_TEST_TABLE="+name)
	holder.expect(t, "holding")
	if err := holder.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := m.log(t, m.dsn, 2, false); err != nil {
		t.Error(err)
	}
	if _, state := m.locks(t); state != "3 false" {
		t.Errorf("fence and holder of the lock: %q, want 3 and none", state)
	}
	m.want(t, "", "1 2")
}

// A table whose name is too long for a lease is locked under its hash.
func TestTableOfALongName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 200))
	dsn := "lake=iceberg+sqlite://" + dir + "/catalog.db?warehouse=file://" + dir + "/wh&namespace=erp journal=file://" + dir + "/journal.db"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := connector(t, dsn, nil).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := openDSN(t, dsn)
	for _, text := range []string{"CREATE TABLE history (account int)", "INSERT INTO history VALUES (1)"} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	j, err := journal.Of(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := j.(journal.Conditional).Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := leases.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := slices.ContainsFunc(list, func(l journal.Lease) bool {
		return strings.HasPrefix(l.Name, "iceberg:sha256-") && len(l.Name) == len("iceberg:sha256-")+64 && l.Fence == 1 && l.Lapsed
	})
	if !found {
		t.Errorf("leases %+v", list)
	}
}

// A commit of one branch needs no journal, and one that is down costs it its lock
// alone.
func TestTableWithoutAJournal(t *testing.T) {
	m := newIcy(t)
	down := journalURL.ReplaceAllString(m.dsn, "journal=postgres://127.0.0.1:1/nowhere")
	if err := m.log(t, down, 1, false); err != nil {
		t.Error(err)
	}
	m.want(t, "", "1")
}
