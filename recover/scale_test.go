package recovery_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// Issue, "Show": recovery of 1,000 in-doubt transactions, half decided.
func TestThousandInDoubt(t *testing.T) {
	if testing.Short() {
		pgtest.Skip(t, "-short: make bench measures it")
	}
	c := pgtest.Own(t, "max_prepared_transactions=2100", "shared_buffers=128MB")
	d := two(t, c)
	units := d.abandonMany(t, 1000)
	if n := d.prepared(t, units...); n != 2000 {
		t.Fatalf("%d branches prepared, want 2000", n)
	}
	began := time.Now()
	r, err := d.worker(t, nil).Once(t.Context())
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	figure(t, "in_doubt_rolled_back", r.RolledBack, "=500", r.RolledBack == 500)
	figure(t, "in_doubt_rolled_forward", r.RolledForward, "=500", r.RolledForward == 500)
	figure(t, "in_doubt_exit_code", r.ExitCode(), "=0", r.ExitCode() == 0)
	left := len(c.Prepared(t, d.stores["a"])) + len(c.Prepared(t, d.stores["b"]))
	figure(t, "in_doubt_prepared_left", left, "=0", left == 0)
	t.Logf("1,000 in-doubt transactions took %s", took)
	if n := c.Int(t, d.stores["a"], "SELECT count(*) FROM item"); n != 500 {
		t.Errorf("%d rows in a, want 500", n)
	}
	if a, b := items(t, d, "a"), items(t, d, "b"); a != b {
		t.Error("the stores hold different units")
	}
}

func items(t *testing.T, d *deployment, store string) string {
	t.Helper()
	return strings.Join(d.cluster.Strings(t, d.stores[store], "SELECT id::text FROM item ORDER BY id"), " ")
}

// Many workers at once, on the same units, are safe and end all of them.
func TestManyWorkersAtOnce(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	units := d.abandonMany(t, 30)
	var wg sync.WaitGroup
	for range 5 {
		w := d.worker(t, nil)
		wg.Go(func() {
			for range 3 {
				r, err := w.Once(t.Context())
				if err != nil {
					t.Errorf("pass: %v", err)
				}
				if r.Heuristic+r.Unexplained+r.Stuck != 0 {
					t.Errorf("workers raised a false alarm: %+v", r.Items)
				}
				for _, s := range r.Stores {
					if s.Standing != recovery.StandingOK {
						t.Errorf("store %s: %s %s", s.Store, s.Standing, s.Problem)
					}
				}
			}
		})
	}
	wg.Wait()
	if r := d.pass(t); r.ExitCode() != 0 {
		t.Errorf("left: %+v", r.Items)
	}
	for i, u := range units {
		want := "ABORTED"
		if i%2 == 0 {
			want = "DONE"
		}
		if got := d.state(t, u.txn); got != want {
			t.Errorf("unit %d is %s, want %s", i, got, want)
		}
	}
	if a, b := items(t, d, "a"), items(t, d, "b"); a != b || len(strings.Fields(a)) != 15 {
		t.Errorf("a holds %s, b holds %s; want the 15 decided ones", a, b)
	}
}

// A store that goes down and comes back: one warning, no waiting for a backoff
// once it is there again, and the other branches are not kept waiting.
func TestStoreDownAndUpAgain(t *testing.T) {
	t.Parallel()
	c, other := pgtest.Server(t), pgtest.Own(t, "fsync=off")
	d := deployTwoServers(t, c, other)
	u := d.abandon(t, atCommitted)
	other.Stop(t, true)
	log := &countingLog{}
	w := d.worker(t, func(cfg *recovery.Config) {
		cfg.Interval, cfg.StoreTimeout, cfg.Logger = 10*time.Millisecond, 2*time.Second, log.logger()
	})
	ctx, stop := context.WithCancel(t.Context())
	var reports atomic.Int64
	var last atomic.Pointer[recovery.Report]
	running := make(chan struct{})
	go func() {
		defer close(running)
		for ctx.Err() == nil {
			if r, err := w.Once(ctx); err == nil {
				last.Store(&r)
				reports.Add(1)
			}
		}
	}()
	defer func() { stop(); <-running }()
	await.Until(t, "passes over a store that is down", func() bool { return reports.Load() > 20 })
	if r := last.Load(); r.ExitCode() != recovery.ExitWorkLeft || r.Stores[1].Standing != recovery.StandingDown || r.Pending == 0 {
		t.Errorf("exit %d, store %s, pending %d; want 3, down, some", r.ExitCode(), r.Stores[1].Standing, r.Pending)
	}
	if d.rowsIn(t, "a", u) != 1 {
		t.Error("the branch in the store that is up was not finished")
	}
	if n := log.count("store is down"); n != 1 {
		t.Errorf("%d warnings that the store is down, want 1", n)
	}
	other.Start(t)
	await.Until(t, "the record to be DONE", func() bool { return d.state(t, u.txn) == "DONE" })
	if n := log.count("store is back"); n != 1 {
		t.Errorf("%d lines that the store is back, want 1", n)
	}
	if n := other.Int(t, d.stores["b"], "SELECT count(*) FROM item"); n != 1 {
		t.Errorf("%d rows in b, want 1", n)
	}
}

// The journal's server goes down: the worker says so once and goes on when it is back.
func TestJournalDownAndUpAgain(t *testing.T) {
	t.Parallel()
	c, other := pgtest.Server(t), pgtest.Own(t, "fsync=off")
	d := connect(t, c, other.Database(t, "j"), map[string]string{"a": c.Database(t, "a"), "b": c.Database(t, "b")})
	if _, err := d.worker(t, nil).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, url := range d.stores {
		c.Exec(t, url, "CREATE TABLE item (id bigint PRIMARY KEY)")
	}
	u := d.abandon(t, atCommitted)
	other.Stop(t, true)
	log := &countingLog{}
	w := d.worker(t, func(cfg *recovery.Config) { cfg.Logger = log.logger() })
	for range 3 {
		if r, err := w.Once(t.Context()); err == nil {
			t.Fatalf("a pass without a journal succeeded: %+v", r)
		}
	}
	if n := log.count("recovery waits"); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
	if n := d.prepared(t, u); n != 2 {
		t.Errorf("%d branches prepared, want 2", n)
	}
	other.Start(t)
	await.Until(t, "a pass", func() bool { _, err := w.Once(t.Context()); return err == nil })
	for _, name := range []string{"a", "b"} {
		if d.rowsIn(t, name, u) != 1 {
			t.Errorf("store %s lacks the unit", name)
		}
	}
	if n := log.count("journal is back"); n != 1 {
		t.Errorf("%d lines that it is back, want 1", n)
	}
}

func TestCompactionKeepsWhatIsNeededAndRemovesTheRest(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	units := d.abandonMany(t, 20)
	d.pass(t)
	held := units[0] // DONE, and prepared again
	for _, url := range d.stores {
		d.cluster.Exec(t, url, fmt.Sprintf("DELETE FROM dat_applied WHERE dat_txn = '%s'", held.txn))
	}
	d.abandonAs(t, held.txn)
	fresh := d.abandon(t, atPrepared)
	w := d.worker(t, nil)
	if done, err := w.Compact(t.Context(), recovery.CompactOptions{}); err != nil || done.Records != 0 {
		t.Fatalf("removed %d records within retain, %v", done.Records, err)
	}
	var told int
	done, err := w.Compact(t.Context(), recovery.CompactOptions{Retain: time.Nanosecond, Batch: 3, Progress: func(recovery.Compacted) { told++ }})
	if err != nil || done.Records != 19 || done.Kept != 1 || told == 0 {
		t.Errorf("compacted %+v (%d times told), %v; want 19 removed and 1 kept", done, told, err)
	}
	if d.state(t, held.txn) != "DONE" || d.state(t, fresh.txn) != "PREPARED" {
		t.Error("a record that is needed was removed")
	}
	if n := d.cluster.Int(t, d.journal, "SELECT count(*) FROM dat_journal"); n != 2 {
		t.Errorf("%d records are left, want 2", n)
	}
	// The pass commits the held one again; then its record and markers go too.
	d.pass(t)
	if _, err := w.Compact(t.Context(), recovery.CompactOptions{Retain: time.Nanosecond}); err != nil {
		t.Fatal(err)
	}
	left := d.cluster.Int(t, d.journal, "SELECT count(*) FROM dat_journal")
	for _, url := range d.stores {
		left += d.cluster.Int(t, url, "SELECT count(*) FROM dat_applied")
	}
	if left != 0 {
		t.Errorf("%d records and markers are left, want none", left)
	}
}

// A store that cannot be listed proves nothing: its records stay.
func TestCompactionNeedsACompleteListing(t *testing.T) {
	t.Parallel()
	c, other := pgtest.Server(t), pgtest.Own(t, "fsync=off")
	d := deployTwoServers(t, c, other)
	d.abandon(t, atCommitted)
	d.pass(t)
	other.Stop(t, true)
	w := d.worker(t, func(cfg *recovery.Config) { cfg.StoreTimeout = 2 * time.Second })
	done, err := w.Compact(t.Context(), recovery.CompactOptions{Retain: time.Nanosecond})
	if err != nil || done.Records != 0 || done.Kept != 1 {
		t.Errorf("compacted %+v, %v; want nothing removed", done, err)
	}
	if n := c.Int(t, d.stores["a"], "SELECT count(*) FROM dat_applied"); n != 1 {
		t.Errorf("%d markers in a, want its one", n)
	}
}
