package recovery_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// R1: every listing before the journal is read.
func TestListingsComeBeforeTheJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pass(t, w.worker(t, nil))
	scan := w.trace.index("journal scan")
	for _, list := range []string{"list a", "list b"} {
		if at := w.trace.index(list); at < 0 || at > scan {
			t.Errorf("%q is event %d, the journal's scan %d", list, at, scan)
		}
	}
}

// R2: ABORTED is forced before a branch is rolled back, in each of the ways there.
func TestAbortedIsForcedBeforeAnythingIsRolledBack(t *testing.T) {
	t.Parallel()
	for _, state := range []journal.State{journal.StateActive, journal.StatePrepared, journal.StateAborted} {
		w := newWorld(t)
		txn := w.leave(t, state, "")
		r := w.pass(t, w.worker(t, nil))
		forced, back := w.trace.index("journal forced ABORTED"), w.trace.index("abort a")
		if forced < 0 || back < 0 || forced > back {
			t.Errorf("%s: forced is event %d, roll back %d", state, forced, back)
		}
		if w.a.holds(txn) || w.b.holds(txn) || w.state(t, txn) != journal.StateAborted || r.ExitCode() != 0 {
			t.Errorf("%s: not ended: %s, exit %d", state, w.state(t, txn), r.ExitCode())
		}
	}
}

// R3: the journal is hardened before anything is rolled forward.
func TestJournalIsHardenedBeforeRollingForward(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	txn := w.leave(t, journal.StateCommitted, "")
	w.journal.harden = errFake
	worker := w.worker(t, nil)
	if _, err := worker.Once(t.Context()); err == nil {
		t.Error("a journal that could not be hardened is no error")
	}
	if w.trace.count("finish a") != 0 {
		t.Error("rolled forward on a COMMITTED that was only read")
	}
	w.journal.harden = nil
	w.pass(t, worker)
	if hard, finish := w.trace.index("journal harden"), w.trace.index("finish a"); hard > finish || finish < 0 {
		t.Errorf("hardened at event %d, finished at %d", hard, finish)
	}
	if got := w.state(t, txn); got != journal.StateDone {
		t.Errorf("the record is %s", got)
	}
}

// R3: a decision that a crash of the journal took back before it was hardened is
// not acted upon; the record is then what it was before.
func TestDecisionLostBeforeItWasHardened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	txn := w.leave(t, journal.StateCommitted, "")
	w.journal.crash = func() {
		w.tamper(t, "UPDATE dat_journal SET state = 'PREPARED' WHERE dat_txn = ?", txn.String())
	}
	worker := w.worker(t, nil)
	w.pass(t, worker)
	if n := w.trace.count("finish a"); n != 0 {
		t.Errorf("rolled forward %d times on a COMMITTED that is gone", n)
	}
	w.journal.crash = nil
	w.pass(t, worker)
	if got := w.state(t, txn); got != journal.StateAborted || w.a.holds(txn) || w.b.holds(txn) {
		t.Errorf("the record is %s, a holds it: %t, b: %t; want it aborted and gone", got, w.a.holds(txn), w.b.holds(txn))
	}
}

// R4: a listing that failed, even if it brought something, concludes nothing.
func TestFailedListingConcludesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lost, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	w.a.hold(lost)
	w.b.hold(lost)
	w.a.set(func(s *fakeStore) { s.listErr = errFake })
	r := w.pass(t, w.worker(t, nil))
	if !w.a.holds(lost) || w.b.holds(lost) {
		t.Errorf("a holds it: %v, want true; b holds it: %v, want false", w.a.holds(lost), w.b.holds(lost))
	}
	if r.Stores[0].Standing != recovery.StandingDown || r.Stores[0].Listed != 0 || r.ExitCode() != recovery.ExitWorkLeft {
		t.Errorf("store a is %s with %d listed, exit %d; want down, 0, 3", r.Stores[0].Standing, r.Stores[0].Listed, r.ExitCode())
	}
}

// A store that is ahead of the journal makes the journal suspect for every
// store: what is final in it is acted upon, and nothing is presumed.
func TestNothingIsPresumedFromARestoredJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.worker(t, nil)
	w.pass(t, worker)
	lost, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	w.a.hold(lost)
	open, aborted := w.leave(t, journal.StatePrepared, ""), w.leave(t, journal.StateAborted, "")
	w.b.set(func(s *fakeStore) { s.meta.Sweeps = 99 })
	counted := w.a.meta.Sweeps
	r := w.pass(t, worker)
	if !w.a.holds(lost) || !w.a.holds(open) || w.state(t, open) != journal.StatePrepared || w.state(t, lost) != "" {
		t.Error("something was presumed aborted")
	}
	if w.a.holds(aborted) || !w.b.holds(aborted) {
		t.Error("what is ABORTED is rolled back in a, and b is not touched")
	}
	if w.a.meta.Sweeps != counted || r.ExitCode() != recovery.ExitPerson {
		t.Errorf("a's counter went from %d to %d, exit %d; want no change and 4", counted, w.a.meta.Sweeps, r.ExitCode())
	}
}

// Other deployments' gids are looked up once, not on every pass.
func TestForeignIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	gid := branches.NewGID(foreign, "a")
	w.a.set(func(s *fakeStore) { s.prepared[gid] = branches.Prepared{GID: gid, MayFinish: true} })
	worker := w.worker(t, nil)
	for range 5 {
		if r := w.pass(t, worker); r.Foreign != 1 || r.ExitCode() != 0 || r.Stores[0].Foreign != 1 {
			t.Errorf("foreign %d, exit %d; want 1 and 0", r.Foreign, r.ExitCode())
		}
	}
	if n := w.trace.count("journal read"); n != 1 {
		t.Errorf("%d look-ups, want 1", n)
	}
	// A person forbids it after all.
	if _, err := worker.Resolve(t.Context(), recovery.Resolution{Txn: foreign, Store: "a", As: journal.OutcomeSkipped, Who: "ann", Reason: "ours, from before"}); err != nil {
		t.Fatal(err)
	}
	w.wall.Advance(time.Hour)
	if w.pass(t, worker); w.a.holds(foreign) {
		t.Error("it is never looked up again")
	}
}

// cases.md A14, A34: a commit that ends while the journal is read looks like a
// branch that is still prepared under DONE.
func TestCommitThatEndsDuringThePassRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	txn := w.leave(t, journal.StateDone, "")
	for _, s := range []*fakeStore{w.a, w.b} {
		s.set(func(s *fakeStore) {
			s.onList = func(n int) {
				if n == 2 {
					clear(s.prepared)
				}
			}
		})
	}
	r := w.pass(t, w.worker(t, nil))
	if len(r.Items) != 0 || r.ExitCode() != 0 {
		t.Errorf("a false alarm: %+v", r.Items)
	}
	if w.trace.count("finish a")+w.trace.count("abort a") != 0 || w.state(t, txn) != journal.StateDone {
		t.Error("a branch was touched")
	}
}

// cases.md A11: no failure, not hidden, not touched.
func TestBranchOfAnotherOwnerIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lost, aborted := w.leave(t, journal.StateActive, ""), w.leave(t, journal.StateAborted, "")
	w.a.set(func(s *fakeStore) {
		for gid, p := range s.prepared {
			p.MayFinish = false
			s.prepared[gid] = p
		}
	})
	r := w.pass(t, w.worker(t, func(c *recovery.Config) { c.StaleAfter = time.Hour }))
	if r.NoRight != 1 || r.ExitCode() != recovery.ExitWorkLeft || r.Stores[0].Standing != recovery.StandingOK {
		t.Errorf("no right %d, exit %d, store %s; want 1, 3, ok: %+v", r.NoRight, r.ExitCode(), r.Stores[0].Standing, r.Items)
	}
	if !w.a.holds(aborted) || w.b.holds(aborted) || !w.a.holds(lost) {
		t.Error("only b's branch of the aborted unit is this worker's to end")
	}
}

// Decided and unfinished: reported on every pass, never dropped.
func TestStuckIsReportedOnEveryPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	txn := w.leave(t, journal.StateCommitted, "")
	w.b.set(func(s *fakeStore) { s.endErr = errFake })
	log := &countingLog{}
	worker := w.worker(t, func(c *recovery.Config) { c.AlertAfter, c.Logger = time.Minute, log.logger() })
	if r := w.pass(t, worker); r.Stuck != 0 || r.ExitCode() != recovery.ExitWorkLeft {
		t.Errorf("stuck %d, exit %d before alert_after; want 0 and 3", r.Stuck, r.ExitCode())
	}
	w.older(t, 2*time.Minute)
	for range 3 {
		r := w.pass(t, worker)
		if r.Stuck != 1 || r.ExitCode() != recovery.ExitPerson || !strings.Contains(textOf(r, recovery.KindStuck), "b") {
			t.Errorf("stuck %d, exit %d, %q; want 1, 4, the store", r.Stuck, r.ExitCode(), textOf(r, recovery.KindStuck))
		}
	}
	if n := log.count("kind=stuck"); n != 3 {
		t.Errorf("%d log lines, want one per pass", n)
	}
	w.b.set(func(s *fakeStore) { s.endErr = nil })
	w.wall.Advance(2 * time.Minute)
	if r := w.pass(t, worker); r.ExitCode() != 0 || w.state(t, txn) != journal.StateDone {
		t.Errorf("exit %d, record %s; want 0 and DONE", r.ExitCode(), w.state(t, txn))
	}
}

// A record that cannot be read hides nothing and is not acted upon.
func TestDamagedRecordHidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad, good := w.leave(t, journal.StateActive, ""), w.leave(t, journal.StateActive, "")
	w.damage(t, bad)
	r := w.pass(t, w.worker(t, nil))
	if r.Damaged == 0 || r.ExitCode() != recovery.ExitPerson {
		t.Errorf("damaged %d, exit %d; want some and 4", r.Damaged, r.ExitCode())
	}
	if !w.a.holds(bad) || !w.b.holds(bad) {
		t.Error("a branch whose record cannot be read was rolled back")
	}
	if w.a.holds(good) || w.state(t, good) != journal.StateAborted {
		t.Error("the other record was not worked on")
	}
}

// A claim spares other workers the work on a payload, and ends with it.
func TestClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	txn := w.leave(t, journal.StateCommitted, "a batch")
	entered, leave := make(chan struct{}), make(chan struct{})
	w.b.set(func(s *fakeStore) {
		s.endErr = errFake
		s.onFinish = func(branches.Ref) { close(entered); <-leave }
	})
	first := w.worker(t, func(c *recovery.Config) { c.Holder = "first" })
	done := make(chan recovery.Report)
	go func() {
		r, _ := first.Once(t.Context())
		done <- r
	}()
	<-entered
	second := w.worker(t, func(c *recovery.Config) { c.Holder = "second" })
	r := w.pass(t, second)
	if got := textOf(r, recovery.KindClaimed); !strings.Contains(got, "first") || w.trace.count("finish b") != 1 {
		t.Errorf("the second worker says %q and finish was called %d times", got, w.trace.count("finish b"))
	}
	w.b.set(func(s *fakeStore) { s.onFinish = nil })
	close(leave)
	<-done
	if claim := w.record(t, txn).Note.Claim; claim == nil || claim.Holder != "first" || claim.UntilMS != 0 {
		t.Errorf("the claim is %+v, want first's, ended", claim)
	}
	w.b.set(func(s *fakeStore) { s.endErr = nil })
	// A worker that has only just started takes it at once: recovery has had it.
	third := w.worker(t, func(c *recovery.Config) { c.Holder, c.StaleAfter = "third", time.Hour })
	if r := w.pass(t, third); r.RolledForward != 1 {
		t.Errorf("the third worker rolled forward %d: %+v", r.RolledForward, r.Items)
	}
	if got := w.b.payloads[txn]; got != "a batch" {
		t.Errorf("b applied %q", got)
	}
	if claim := w.record(t, txn).Note.Claim; claim == nil || claim.Holder != "third" || claim.Fence != 2 {
		t.Errorf("the claim is %+v, want third's with fence 2", claim)
	}
}

// A claim does not outlive a pass that lost the journal before the end.
func TestClaimOfAPassThatFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	txn := w.leave(t, journal.StateCommitted, "a batch")
	w.journal.finish = errFake
	_, _ = w.worker(t, func(c *recovery.Config) { c.Holder = "first" }).Once(t.Context()) // its error is the journal's
	if claim := w.record(t, txn).Note.Claim; claim == nil || claim.Holder != "first" || claim.UntilMS != 0 {
		t.Errorf("the claim is %+v, want first's, ended", claim)
	}
	w.journal.finish = nil
	second := w.worker(t, func(c *recovery.Config) { c.Holder = "second" })
	if r := w.pass(t, second); r.RolledForward != 1 || r.ExitCode() != 0 {
		t.Errorf("the next worker rolled forward %d, exit %d: %+v", r.RolledForward, r.ExitCode(), r.Items)
	}
}

// A store that hangs does not cost a timeout for each of its records.
func TestHangingStoreIsPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var txns []branches.TxnID
	for range 60 {
		txns = append(txns, w.leave(t, journal.StateCommitted, ""))
	}
	w.b.set(func(s *fakeStore) { s.endErr = errFake })
	r := w.pass(t, w.worker(t, func(c *recovery.Config) { c.Parallel = 4 }))
	if n := w.trace.count("finish b"); n > 12 {
		t.Errorf("b was asked %d times in one pass", n)
	}
	if n := w.trace.count("finish a"); n != 60 {
		t.Errorf("a was asked %d times, want for all 60", n)
	}
	if r.Pending != 60 || r.Left[journal.StateCommitted] != 60 {
		t.Errorf("pending %d, left %v; want 60", r.Pending, r.Left)
	}
	w.b.set(func(s *fakeStore) { s.endErr = nil })
	if r := w.pass(t, w.worker(t, nil)); r.RolledForward != len(txns) || r.ExitCode() != 0 {
		t.Errorf("rolled forward %d, exit %d", r.RolledForward, r.ExitCode())
	}
}

// A record that failed is tried again later and later, but at once when its
// store was down and is back.
func TestBackoffOfOneRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.leave(t, journal.StateCommitted, "")
	w.b.set(func(s *fakeStore) { s.endErr = errFake })
	worker := w.worker(t, nil)
	tries := func(passes int) int {
		before := w.trace.count("finish b")
		for range passes {
			w.wall.Advance(time.Second)
			w.pass(t, worker)
		}
		return w.trace.count("finish b") - before
	}
	if n := tries(1); n != 1 {
		t.Fatalf("first pass: %d tries", n)
	}
	if n := tries(9); n != 0 {
		t.Errorf("%d tries within the interval", n)
	}
	if n := tries(51); n < 1 || n > 3 {
		t.Errorf("%d tries in a minute, want 1 to 3", n)
	}
	w.b.set(func(s *fakeStore) { s.listErr = errFake })
	w.wall.Advance(2 * time.Minute)
	w.pass(t, worker) // down
	w.b.set(func(s *fakeStore) { s.listErr, s.endErr = nil, nil })
	w.wall.Advance(11 * time.Second)
	if r := w.pass(t, worker); r.RolledForward != 1 {
		t.Errorf("not tried at once although the store is back: %+v", r.Items)
	}
}

// A wall clock that steps back makes nothing stale, and nothing fresh for ever.
func TestWallClockStepsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	txn := w.leave(t, journal.StatePrepared, "")
	worker := w.worker(t, func(c *recovery.Config) { c.StaleAfter, c.MaxClockDrift = 30*time.Second, time.Minute })
	w.pass(t, worker)
	w.wall.Set(w.wall.Now().Add(-time.Hour))
	w.pass(t, worker)
	if got := w.state(t, txn); got != journal.StatePrepared {
		t.Fatalf("the record is %s after a step back", got)
	}
	w.wall.Set(w.wall.Now().Add(time.Hour))
	w.wall.Advance(31 * time.Second)
	w.pass(t, worker)
	if got := w.state(t, txn); got != journal.StateAborted {
		t.Errorf("the record is %s, want ABORTED", got)
	}
}
