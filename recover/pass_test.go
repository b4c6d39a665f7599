package recovery_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// Seeds, "Recovery": the table of states.
func TestEveryStateIsEnded(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	active, prepared, committed := d.abandon(t, atActive), d.abandon(t, atPrepared), d.abandon(t, atCommitted)
	r := d.pass(t)
	d.want(t, "ABORTED", active, prepared)
	d.want(t, "DONE", committed)
	if r.RolledBack != 2 || r.RolledForward != 1 || r.ExitCode() != recovery.ExitClean {
		t.Errorf("rolled back %d, forward %d, exit %d; want 2, 1, 0", r.RolledBack, r.RolledForward, r.ExitCode())
	}
	if again := d.pass(t); again.RolledBack+again.RolledForward+len(again.Items) != 0 || again.ExitCode() != 0 {
		t.Errorf("second pass did or left something: %+v", again)
	}
}

// S4 is not forced: a crash of the journal's server may lose an ACTIVE whose
// branches are prepared.
func TestMissingRecordIsAbortedAtOnce(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	u := d.abandon(t, atActive)
	d.cluster.Exec(t, d.journal, "DELETE FROM dat_journal")
	w := d.worker(t, func(c *recovery.Config) { c.StaleAfter = time.Hour })
	r, err := w.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.want(t, "ABORTED", u)
	if r.ExitCode() != 0 || r.RolledBack != 1 {
		t.Errorf("exit %d, rolled back %d; want 0 and 1", r.ExitCode(), r.RolledBack)
	}
	// Its coordinator, had it been alive, cannot decide any more.
	session, err := d.config.Journal.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Release()
	err = session.Decide(t.Context(), journal.Decision{Txn: u.txn, WithPrepare: true, TxTime: d.config.Clock.Now()})
	if err == nil || !strings.Contains(err.Error(), "ABORTED") {
		t.Errorf("S7 after the sweep: %v, want a conflict that finds ABORTED", err)
	}
}

// A gid from before the horizon may be of a unit whose DONE was compacted.
func TestMissingRecordBeforeHorizonIsNotTouched(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	u := d.abandon(t, atActive)
	later := d.abandon(t, atActive)
	d.pass(t)
	old := d.abandonAs(t, u.txn) // prepared again, as after a restore of the store
	if n := d.prepared(t, old); n != 2 {
		t.Fatalf("%d branches prepared, want 2", n)
	}
	compactor := d.config.Journal.(journal.Compactor)
	if n, err := compactor.Remove(t.Context(), []branches.TxnID{u.txn, later.txn}); err != nil || n != 2 {
		t.Fatalf("remove: %d, %v", n, err)
	}
	r := d.pass(t)
	if n := d.prepared(t, old); n != 2 {
		t.Errorf("%d branches are prepared after the pass, want both", n)
	}
	if r.Unexplained != 2 || r.ExitCode() != recovery.ExitPerson {
		t.Errorf("unexplained %d, exit %d; want 2 and 4", r.Unexplained, r.ExitCode())
	}
	if d.state(t, u.txn) != "" {
		t.Error("a record was written of a unit that nobody can explain")
	}

	// A person's decision ends it: ABORTED is inserted, and the sweep goes on from there.
	w := d.worker(t, nil)
	if _, err := w.Resolve(t.Context(), recovery.Resolution{Txn: u.txn, Store: "a", As: journal.OutcomeApplied, Who: "ann", Reason: "x"}); err == nil {
		t.Error("a unit without a record was called applied")
	}
	got, err := w.Resolve(t.Context(), recovery.Resolution{Txn: u.txn, Store: "a", As: journal.OutcomeSkipped, Who: "ann", Reason: "its store was restored"})
	if err != nil || !got.Absent || got.State != journal.StateAborted {
		t.Fatalf("resolve: %+v, %v; want an inserted ABORTED", got, err)
	}
	if r := d.pass(t); r.ExitCode() != 0 {
		t.Errorf("exit %d after the decision: %+v", r.ExitCode(), r.Items)
	}
	d.want(t, "ABORTED", old)
}

// A fresh record is its coordinator's, whatever the worker's host thinks of the time.
func TestFreshRecordsAreLeftAlone(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	u, decided := d.abandon(t, atPrepared), d.abandon(t, atCommitted)
	w := d.worker(t, func(c *recovery.Config) { c.StaleAfter, c.MaxClockDrift = time.Hour, time.Hour })
	for range 3 {
		r, err := w.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.RolledBack+r.RolledForward != 0 || r.ExitCode() != recovery.ExitWorkLeft || r.Left[journal.StatePrepared] != 1 {
			t.Fatalf("a fresh record was touched: %+v", r)
		}
	}
	if n := d.prepared(t, u, decided); n != 4 {
		t.Errorf("%d branches prepared, want 4", n)
	}
	d.older(t, 90*time.Minute) // less than stale_after + max_clock_drift
	if r, err := w.Once(t.Context()); err != nil || r.RolledBack != 0 {
		t.Errorf("rolled back %d (%v) although the record's clock may be ahead", r.RolledBack, err)
	}
	d.older(t, 31*time.Minute)
	if r, err := w.Once(t.Context()); err != nil || r.RolledBack != 1 || r.RolledForward != 1 {
		t.Errorf("rolled back %d, forward %d (%v); want 1 and 1", r.RolledBack, r.RolledForward, err)
	}
	d.want(t, "ABORTED", u)
	d.want(t, "DONE", decided)
}

// A worker that has itself watched a record needs nobody's clock.
func TestWatchedRecordIsTakenAfterStaleAfter(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	u := d.abandon(t, atPrepared)
	w := d.worker(t, func(c *recovery.Config) { c.StaleAfter, c.MaxClockDrift = 200*time.Millisecond, time.Hour })
	began := time.Now()
	await.Until(t, "the record to be taken", func() bool {
		r, err := w.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r.RolledBack == 1
	})
	if waited := time.Since(began); waited < 200*time.Millisecond {
		t.Errorf("taken after %s, before stale_after", waited)
	}
	d.want(t, "ABORTED", u)
}

// A person's row in the journal that names another store.
func TestRecordOfUnknownStoreIsReportedAndLeftAlone(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	u := d.abandon(t, atCommitted)
	d.older(t, time.Hour)
	before := d.cluster.Strings(t, d.journal, "SELECT dat_journal::text FROM dat_journal")
	only := connect(t, d.cluster, d.journal, map[string]string{"a": d.stores["a"]})
	for range 2 {
		r := only.pass(t)
		if r.NotConfigured != 1 || r.Stuck != 1 || r.ExitCode() != recovery.ExitPerson {
			t.Errorf("not configured %d, stuck %d, exit %d; want 1, 1, 4", r.NotConfigured, r.Stuck, r.ExitCode())
		}
	}
	after := d.cluster.Strings(t, d.journal, "SELECT dat_journal::text FROM dat_journal")
	if len(after) != 1 || after[0] != before[0] {
		t.Errorf("the record was changed:\n%v\n%v", before, after)
	}
	d.pass(t)
	d.want(t, "DONE", u)
}

// DONE with a branch still prepared: the store was restored from an older copy.
func TestRestoredStoreIsRolledForwardWithAnAlert(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	u := d.abandon(t, atCommitted)
	d.pass(t)
	d.want(t, "DONE", u)
	for _, url := range d.stores {
		d.cluster.Exec(t, url, "DELETE FROM item; DELETE FROM dat_applied")
	}
	d.abandonAs(t, u.txn)
	r := d.pass(t)
	if r.Restored != 2 || r.ExitCode() != recovery.ExitPerson {
		t.Errorf("restored %d, exit %d; want 2 and 4", r.Restored, r.ExitCode())
	}
	d.want(t, "DONE", unit{u.txn, d.rows.Load()})
}

// abandonAs prepares branches under an id that the journal may know already.
func (d *deployment) abandonAs(t *testing.T, txn branches.TxnID) unit {
	t.Helper()
	u := unit{txn, d.rows.Add(1)}
	for name := range d.config.Stores {
		d.prepare(t, branches.Ref{Txn: txn, Store: name, GID: branches.NewGID(txn, name), TxTime: d.config.Clock.Now()}, u.row)
	}
	return u
}
