package recovery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// A heuristic branch is ended by resolve and the record becomes DONE, who and
// why kept.
func TestHeuristicIsReportedUntilAPersonResolvesIt(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	u := d.abandon(t, atCommitted)
	d.cluster.Exec(t, d.stores["b"], fmt.Sprintf("ROLLBACK PREPARED 'dat:%s:b'", u.txn)) // an operator did it
	w := d.worker(t, nil)
	for range 3 {
		r, err := w.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Heuristic != 1 || r.ExitCode() != recovery.ExitPerson || !strings.Contains(textOf(r, recovery.KindHeuristic), "no marker") {
			t.Fatalf("heuristic %d, exit %d, text %q; want 1, 4, the evidence", r.Heuristic, r.ExitCode(), textOf(r, recovery.KindHeuristic))
		}
	}
	if d.rowsIn(t, "a", u) != 1 {
		t.Error("the other branch was not rolled forward")
	}
	if got := d.state(t, u.txn); got != "COMMITTED" {
		t.Errorf("the record is %s before a person has spoken", got)
	}
	story, err := w.Show(t.Context(), u.txn)
	if err != nil || !strings.Contains(story.Next, "resolve "+u.txn.String()+" --store b") {
		t.Errorf("show: %v: %q does not name the way out", err, story.Next)
	}

	said := recovery.Resolution{Txn: u.txn, Store: "b", As: journal.OutcomeSkipped, Who: "ann", Reason: "booked by hand in ticket 42"}
	for _, wrong := range []struct {
		change func(*recovery.Resolution)
		want   error
	}{
		{func(r *recovery.Resolution) { r.Store = "z" }, recovery.ErrNoBranch},
		{func(r *recovery.Resolution) { r.Reason = " " }, recovery.ErrIncomplete},
		{func(r *recovery.Resolution) { r.Who = "" }, recovery.ErrIncomplete},
		{func(r *recovery.Resolution) { r.As = journal.OutcomeHeuristic }, recovery.ErrIncomplete},
		{func(r *recovery.Resolution) { r.Store = "a" }, recovery.ErrProof}, // a's marker stands
	} {
		r := said
		wrong.change(&r)
		if _, err := w.Resolve(t.Context(), r); !errors.Is(err, wrong.want) {
			t.Errorf("resolve %+v: %v, want %v", r, err, wrong.want)
		}
	}
	got, err := w.Resolve(t.Context(), said)
	if err != nil || got.State != journal.StateDone {
		t.Fatalf("resolve: %+v, %v; want DONE", got, err)
	}
	kept := strings.Join(d.cluster.Strings(t, d.journal, "SELECT branches || note FROM dat_journal"), "")
	for _, word := range []string{`"skipped"`, "ann", "ticket 42", "no marker"} {
		if !strings.Contains(kept, word) {
			t.Errorf("the record does not keep %q: %s", word, kept)
		}
	}
	if r, err := w.Once(t.Context()); err != nil || r.ExitCode() != 0 {
		t.Errorf("exit %d (%v) after the decision: %+v", r.ExitCode(), err, r.Items)
	}
	said.As = journal.OutcomeApplied
	if _, err := w.Resolve(t.Context(), said); !errors.Is(err, recovery.ErrResolved) {
		t.Errorf("resolved the other way afterwards: %v", err)
	}
}

// The other kind: the unit was aborted, and an operator had committed a branch.
func TestHeuristicCommitOfAbortedUnit(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	u := d.abandon(t, atPrepared)
	d.cluster.Exec(t, d.stores["b"], fmt.Sprintf("COMMIT PREPARED 'dat:%s:b'", u.txn))
	for pass := range 3 { // a new worker each time: it has to find it again
		r := d.pass(t)
		if r.Heuristic != 1 || r.ExitCode() != recovery.ExitPerson {
			t.Fatalf("pass %d: heuristic %d, exit %d; want 1 and 4: %+v", pass, r.Heuristic, r.ExitCode(), r.Items)
		}
	}
	if got := d.state(t, u.txn); got != "ABORTED" {
		t.Errorf("the record is %s", got)
	}
	if d.rowsIn(t, "a", u) != 0 {
		t.Error("the other branch was not rolled back")
	}
	w := d.worker(t, nil)
	done, err := w.Compact(t.Context(), recovery.CompactOptions{Retain: time.Nanosecond})
	if err != nil || done.Records != 0 || done.Kept != 1 {
		t.Errorf("compaction removed what waits for a person: %+v, %v", done, err)
	}
	if _, err := w.Resolve(t.Context(), recovery.Resolution{Txn: u.txn, Store: "b", As: journal.OutcomeApplied, Who: "ann", Reason: "booked back"}); err != nil {
		t.Fatal(err)
	}
	if r := d.pass(t); r.ExitCode() != 0 {
		t.Errorf("exit %d after the decision: %+v", r.ExitCode(), r.Items)
	}
}

// A store that is gone for good: its branch can be given up without it, and is
// rolled back should the store come back.
func TestSkippedBranchOfLostStore(t *testing.T) {
	t.Parallel()
	lost := pgtest.Own(t, "fsync=off")
	c := pgtest.Server(t)
	d := deployTwoServers(t, c, lost)
	u := d.abandon(t, atCommitted)
	lost.Stop(t, true)
	w := d.worker(t, func(c *recovery.Config) { c.StoreTimeout = 2 * time.Second })
	if r, err := w.Once(t.Context()); err != nil || r.ExitCode() != recovery.ExitWorkLeft {
		t.Fatalf("exit %d, %v; want 3", r.ExitCode(), err)
	}
	got, err := w.Resolve(t.Context(), recovery.Resolution{Txn: u.txn, Store: "b", As: journal.OutcomeSkipped, Who: "ann", Reason: "its disk is gone"})
	if err != nil || got.State != journal.StateDone {
		t.Fatalf("resolve: %+v, %v; want DONE although the store does not answer", got, err)
	}
	lost.Start(t)
	r := d.pass(t)
	if r.Restored != 1 || r.ExitCode() != recovery.ExitPerson {
		t.Errorf("restored %d, exit %d; want 1 and 4", r.Restored, r.ExitCode())
	}
	if n := len(lost.Prepared(t, d.stores["b"])); n != 0 {
		t.Errorf("%d branches are still prepared in the store that came back", n)
	}
	if n := lost.Int(t, d.stores["b"], "SELECT count(*) FROM item"); n != 0 {
		t.Error("the branch that a person gave up was committed")
	}
	if r := d.pass(t); r.ExitCode() != 0 {
		t.Errorf("exit %d afterwards: %+v", r.ExitCode(), r.Items)
	}
}

// deployTwoServers has store b on a server of its own.
func deployTwoServers(t *testing.T, c, other *pgtest.Cluster) *deployment {
	t.Helper()
	stores := map[string]string{"a": c.Database(t, "a"), "b": other.Database(t, "b")}
	d := connect(t, c, c.Database(t, "j"), stores)
	if _, err := d.worker(t, nil).Install(t.Context()); err != nil {
		t.Fatalf("install: %v", err)
	}
	c.Exec(t, stores["a"], "CREATE TABLE item (id bigint PRIMARY KEY)")
	other.Exec(t, stores["b"], "CREATE TABLE item (id bigint PRIMARY KEY)")
	return d
}

func TestUndecidedUnitIsNotResolved(t *testing.T) {
	t.Parallel()
	d := two(t, pgtest.Server(t))
	u := d.abandon(t, atPrepared)
	_, err := d.worker(t, nil).Resolve(t.Context(), recovery.Resolution{Txn: u.txn, Store: "a", As: journal.OutcomeSkipped, Who: "ann", Reason: "x"})
	if !errors.Is(err, recovery.ErrUndecided) {
		t.Errorf("resolve: %v, want %v", err, recovery.ErrUndecided)
	}
}
