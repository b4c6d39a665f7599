package recovery_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// bystander leaves A's units prepared, lets the other worker pass several times
// with no patience at all, and prints what A has prepared before and after.
// Then A's own recovery has to finish them.
func bystander(t *testing.T, name string, a *deployment, other func()) {
	t.Helper()
	units := []unit{a.abandon(t, atPrepared), a.abandon(t, atCommitted), a.abandon(t, atActive)}
	lost := a.abandon(t, atActive) // the journal's crash took its record
	units = append(units, lost)
	a.cluster.Exec(t, a.journal, fmt.Sprintf("DELETE FROM dat_journal WHERE dat_txn = '%s'", lost.txn))
	states := a.cluster.Strings(t, a.journal, "SELECT dat_txn || state FROM dat_journal ORDER BY dat_txn")
	before := a.prepared(t, units...)
	other()
	after := a.prepared(t, units...)
	figure(t, name+"_prepared_before", before, ">0", before > 0)
	figure(t, name+"_prepared_after", after, fmt.Sprint("=", before), after == before)
	if now := a.cluster.Strings(t, a.journal, "SELECT dat_txn || state FROM dat_journal ORDER BY dat_txn"); strings.Join(now, " ") != strings.Join(states, " ") {
		t.Errorf("the other deployment changed A's journal: %v, was %v", now, states)
	}
}

// finish runs A's own recovery and checks the units of bystander.
func finish(t *testing.T, name string, a *deployment) {
	t.Helper()
	r := a.pass(t)
	left := 0
	for _, dsn := range a.stores {
		for _, gid := range a.cluster.Prepared(t, dsn) {
			if a.stores[branches.GID(gid).Store()] == dsn {
				left++
			}
		}
	}
	figure(t, name+"_left_by_own_recovery", left, "=0", left == 0)
	if r.RolledBack != 3 || r.RolledForward != 1 || r.ExitCode() != 0 {
		t.Errorf("A's own recovery: rolled back %d, forward %d, exit %d; want 3, 1, 0: %+v", r.RolledBack, r.RolledForward, r.ExitCode(), r.Items)
	}
}

// impatient passes three times with another deployment's DSN and returns the last report.
func impatient(t *testing.T, d *deployment) recovery.Report {
	t.Helper()
	w := d.worker(t, nil)
	var r recovery.Report
	for range 3 {
		r = passOf(t, w)
	}
	return r
}

func TestTwoDeploymentsOnOneServer(t *testing.T) {
	t.Parallel()
	c := pgtest.Server(t)
	a, b := two(t, c), two(t, c)
	bystander(t, "other_databases", a, func() {
		mine := b.abandon(t, atPrepared)
		if r := impatient(t, b); r.ExitCode() != 0 {
			t.Errorf("B's exit code %d: %+v", r.ExitCode(), r.Items)
		}
		b.want(t, "ABORTED", mine)
	})
	finish(t, "other_databases", a)
}

func TestTwoDeploymentsInOneDatabase(t *testing.T) {
	t.Parallel()
	c := pgtest.Server(t)
	shared := c.Database(t, "shared")
	in := func(schema string) string { return shared + separator(shared) + "schema=" + schema }
	for _, schema := range []string{"a_a", "a_b", "b_a", "b_b"} {
		c.Exec(t, shared, "CREATE SCHEMA "+schema)
	}
	make1 := func(one string) *deployment {
		return deploySchemas(t, c, c.Database(t, "j"), map[string]string{"a": in(one + "_a"), "b": in(one + "_b")})
	}
	a, b := make1("a"), make1("b")
	bystander(t, "other_schemas", a, func() {
		mine := b.abandon(t, atPrepared)
		r := impatient(t, b)
		if r.ExitCode() != 0 || r.Foreign == 0 {
			t.Errorf("B's exit code %d, foreign %d; want 0 and some: %+v", r.ExitCode(), r.Foreign, r.Items)
		}
		if b.state(t, mine.txn) != "ABORTED" || b.prepared(t, mine) != 0 {
			t.Error("B did not end its own unit")
		}
	})
	finish(t, "other_schemas", a)
}

// deploySchemas is deploy for stores that lie in schemas of one database.
func deploySchemas(t *testing.T, c *pgtest.Cluster, journalURL string, stores map[string]string) *deployment {
	t.Helper()
	d := connect(t, c, journalURL, stores)
	if _, err := d.worker(t, nil).Install(t.Context()); err != nil {
		t.Fatalf("install: %v", err)
	}
	for _, dsn := range stores {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		schema := u.Query().Get("schema")
		c.Exec(t, pgtest.Name(dsn), "CREATE TABLE "+schema+".item (id bigint PRIMARY KEY)")
	}
	return d
}

func separator(dsn string) string {
	if strings.Contains(dsn, "?") {
		return "&"
	}
	return "?"
}

// copyJournal is pg_dump and restore of a journal, as far as recovery can see.
func copyJournal(t *testing.T, c *pgtest.Cluster, from, to string) {
	t.Helper()
	c.Disconnect(t, from) // a template must not be in use
	c.Exec(t, "", fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", pgtest.Name(to)))
	await.Until(t, "the journal's sessions to end", func() bool { return c.Backends(t, from) == 0 })
	c.Exec(t, "", fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", pgtest.Name(to), pgtest.Name(from)))
}

func TestCopiedJournalInStagingTouchesNothing(t *testing.T) {
	t.Parallel()
	c := pgtest.Server(t)
	a := two(t, c)
	staging := c.Database(t, "staging")
	bystander(t, "copied_journal", a, func() {
		copyJournal(t, c, a.journal, staging)
		copied := connect(t, c, staging, a.stores)
		r := impatient(t, copied)
		refused(t, r, "a copy")
		if r.ExitCode() != recovery.ExitPerson {
			t.Errorf("exit %d, want 4", r.ExitCode())
		}
	})
	finish(t, "copied_journal", a)
}

// refused checks that both stores are left alone, with a way out.
func refused(t *testing.T, r recovery.Report, why string) {
	t.Helper()
	for _, s := range r.Stores {
		if s.Standing != recovery.StandingRefused || !strings.Contains(s.Problem, why) || !strings.Contains(s.Way, "adopt --store "+s.Store) {
			t.Errorf("store %s is %s (%s; %s), want refused as %q with the way out", s.Store, s.Standing, s.Problem, s.Way, why)
		}
	}
	if len(r.Stores) != 2 {
		t.Errorf("%d stores in the report", len(r.Stores))
	}
}

// A journal restored from a dump in its own place has its own id and place.
func TestRestoredJournalNeverSweeps(t *testing.T) {
	t.Parallel()
	c := pgtest.Server(t)
	a := two(t, c)
	a.pass(t)
	dump := c.Database(t, "dump")
	copyJournal(t, c, a.journal, dump)
	a.pass(t) // the deployment goes on after the dump
	lost := a.abandon(t, atCommitted)
	current := a.abandon(t, atPrepared)
	present := c.Database(t, "present")
	copyJournal(t, c, a.journal, present)
	copyJournal(t, c, dump, a.journal)

	before := a.prepared(t, lost, current)
	r := impatient(t, a)
	refused(t, r, "restored")
	after := a.prepared(t, lost, current)
	figure(t, "restored_journal_prepared_before", before, ">0", before > 0)
	figure(t, "restored_journal_prepared_after", after, fmt.Sprint("=", before), after == before)
	if n := c.Int(t, a.journal, "SELECT count(*) FROM dat_journal"); n != 0 {
		t.Errorf("%d records were written into a restored journal", n)
	}
	// A person finds the journal of today and brings it back.
	copyJournal(t, c, present, a.journal)
	own := a.pass(t)
	a.want(t, "DONE", lost)
	a.want(t, "ABORTED", current)
	left := a.prepared(t, lost, current)
	figure(t, "restored_journal_left_by_own_recovery", left, "=0", left == 0 && own.ExitCode() == 0)
}

// A journal set back while its workers run on.
func TestJournalSetBackWhileWorkersRun(t *testing.T) {
	t.Parallel()
	c := pgtest.Server(t)
	a := two(t, c)
	for range 12 {
		a.pass(t)
	}
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	seen := []*lastReport{{}, {}, {}}
	for _, last := range seen {
		w := a.worker(t, func(cfg *recovery.Config) { cfg.Interval, cfg.Observer = 5*time.Millisecond, last })
		workers.Go(func() { _ = w.Run(ctx) })
	}
	defer workers.Wait()
	defer stop()
	c.Exec(t, a.journal, "UPDATE dat_store SET sweeps = sweeps - 10")
	await.Until(t, "each worker to see it", func() bool { // a pass that had begun may end
		return !slices.ContainsFunc(seen, func(l *lastReport) bool { return !l.refused.Load() })
	})
	counters := func() string {
		return strings.Join(c.Strings(t, a.journal, "SELECT sweeps::text FROM dat_store ORDER BY name"), " ")
	}
	counted := counters()
	bystander(t, "set_back_journal", a, func() {
		refused(t, impatient(t, a), "restored")
	})
	if now := counters(); now != counted {
		t.Errorf("the counters went from %s to %s: a worker raised what it must not", counted, now)
	}
	stop()
	workers.Wait()
	adopt(t, a)
	finish(t, "set_back_journal", a)
}

// lastReport tells whether a worker's last pass was refused by every store.
type lastReport struct{ refused atomic.Bool }

func (l *lastReport) Pass(_ context.Context, r recovery.Report, err error) {
	l.refused.Store(err == nil && len(r.Stores) == 2 &&
		r.Stores[0].Standing == recovery.StandingRefused && r.Stores[1].Standing == recovery.StandingRefused)
}

// adopt is a person's yes to both stores.
func adopt(t *testing.T, d *deployment) {
	t.Helper()
	w := d.worker(t, nil)
	for name := range d.stores {
		if _, err := w.Adopt(t.Context(), name); err != nil {
			t.Fatalf("adopt %s: %v", name, err)
		}
		if _, err := w.PlanAdopt(t.Context(), name); err == nil {
			t.Errorf("store %s is still to be adopted", name)
		}
	}
}

// Adopting a copy makes it the stores' journal, and the first one a stranger.
func TestAdoptedCopyTakesOver(t *testing.T) {
	t.Parallel()
	c := pgtest.Server(t)
	a := two(t, c)
	u := a.abandon(t, atCommitted)
	moved := c.Database(t, "moved")
	copyJournal(t, c, a.journal, moved)
	d := connect(t, c, moved, a.stores)
	refused(t, d.pass(t), "a copy")
	adopt(t, d)
	refused(t, a.pass(t), "its copy")
	d.journal = moved
	if r := d.pass(t); r.ExitCode() != 0 || r.RolledForward != 1 {
		t.Errorf("exit %d, rolled forward %d; want 0 and 1: %+v", r.ExitCode(), r.RolledForward, r.Items)
	}
	d.want(t, "DONE", u)
}

func TestSwappedAndForeignStoresAreRefused(t *testing.T) {
	t.Parallel()
	c := pgtest.Server(t)
	a := two(t, c)
	u := a.abandon(t, atPrepared)
	swapped := connect(t, c, a.journal, map[string]string{"a": a.stores["b"], "b": a.stores["a"]})
	refused(t, swapped.pass(t), "the journal knows it as")
	other := two(t, c)
	refused(t, connect(t, c, other.journal, a.stores).pass(t), "belongs to journal")
	if n := a.prepared(t, u); n != 2 {
		t.Errorf("%d branches prepared, want 2", n)
	}
	a.pass(t)
	a.want(t, "ABORTED", u)
}

func TestSharedPlaceIsRefused(t *testing.T) {
	t.Parallel()
	c := pgtest.Server(t)
	one := c.Database(t, "one")
	// The text does not show it: only the server knows its default schema.
	d := connect(t, c, c.Database(t, "j"), map[string]string{"a": one, "b": one + separator(one) + "schema=public"})
	w := d.worker(t, nil)
	_, _ = w.Install(t.Context()) // it may refuse already
	r, err := w.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Stores {
		if s.Standing != recovery.StandingRefused || !strings.Contains(s.Problem, "same place") {
			t.Errorf("store %s: %s %s", s.Store, s.Standing, s.Problem)
		}
	}
}

// cases.md A8 to A10: one scan, no error, no extra time.
func TestForeignGIDsOfOtherDatabases(t *testing.T) {
	t.Parallel()
	c := pgtest.Own(t, "max_prepared_transactions=400", "fsync=off")
	a := two(t, c)
	for _, dsn := range []string{c.Database(t, "x"), c.Database(t, "y"), a.stores["a"]} {
		c.Exec(t, dsn, "CREATE TABLE foreign_item (n int)")
		if dsn == a.stores["a"] { // with markers of its own, in the same database
			c.Exec(t, dsn, "CREATE SCHEMA other; CREATE TABLE other.dat_applied (dat_txn uuid PRIMARY KEY, dat_tx_time bigint NOT NULL)")
		}
		for i := range 100 {
			txn, err := branches.NewTxnID()
			if err != nil {
				t.Fatal(err)
			}
			c.Exec(t, dsn, fmt.Sprintf("BEGIN; INSERT INTO foreign_item VALUES (%d); PREPARE TRANSACTION '%s'", i, branches.NewGID(txn, "a")))
		}
	}
	began := time.Now()
	r := a.pass(t)
	took := time.Since(began)
	figure(t, "foreign_gids_listed", r.Foreign, "=100", r.Foreign == 100)
	figure(t, "foreign_exit_code", r.ExitCode(), "=0", r.ExitCode() == 0)
	figure(t, "time_foreign_pass_seconds", fmt.Sprintf("%.3f", took.Seconds()), "<5", took < 5*time.Second)
	if n := c.Int(t, "", "SELECT count(*) FROM pg_prepared_xacts"); n != 300 {
		t.Errorf("%d prepared transactions are left of 300", n)
	}
	for _, s := range r.Stores {
		if s.Standing != recovery.StandingOK {
			t.Errorf("store %s: %s %s", s.Store, s.Standing, s.Problem)
		}
	}
}
