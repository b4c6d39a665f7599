package coordinator_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/journal"
)

// orphan is a scene whose program died after S7 or before it, and a worker.
type orphan struct {
	*scene
	proc   *fake.Process
	worker *coordinator.Coordinator
}

// orphaned REQUIRES a bubble. died is the point at which the program died.
func orphaned(t *testing.T, parts []part, died string) *orphan {
	t.Helper()
	var names []string
	for _, p := range parts {
		names = append(names, p.store)
	}
	s := newScene(t.Context(), names, coordinator.Config{}, 1)
	s.on(died, func(s *scene) { s.app.Kill() })
	s.commit(t.Context(), s.begin(1, parts))
	if err := s.coord.Close(); err != nil {
		t.Fatal(err)
	}
	o := &orphan{scene: s, proc: s.world.NewProcess("worker")}
	o.worker = coordinator.New(coordinator.Config{Journal: s.world.Journal.Client(o.proc, 1), Clock: s.clock})
	return o
}

func (o *orphan) stores(name string) branches.Store { return o.world.Store(name).Client(o.proc) }

// record reads the record as a worker has to.
func (o *orphan) record(t *testing.T) journal.Record {
	t.Helper()
	j := o.world.Journal.Client(o.proc, 1)
	if _, err := readRecord(o.ctx, j, txnOf(1)); err != nil {
		t.Fatal(err)
	}
	if err := j.Harden(o.ctx); err != nil {
		t.Fatal(err)
	}
	rec, err := readRecord(o.ctx, j, txnOf(1))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// sent lists what the worker has sent to stores.
func (o *orphan) sent() []string {
	var list []string
	for _, e := range o.world.Log.Events() {
		if e.What == trace.Sent && e.Proc == "worker" && e.Actor != trace.Journal {
			list = append(list, e.Actor+" "+e.Op)
		}
	}
	return list
}

func (o *orphan) expectState(t *testing.T, want journal.State) {
	t.Helper()
	if rec, _ := o.world.Journal.Record(txnOf(1)); rec.State != want {
		t.Errorf("the record is %s, want %s", rec.State, want)
	}
}

func TestRollForwardIsIdempotent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, abc, "S7.after")
		for range 2 {
			p, err := o.worker.RollForward(o.ctx, o.record(t), o.stores)
			if err != nil || p.State != journal.StateDone || len(p.Pending)+len(p.Heuristics) > 0 {
				t.Fatalf("RollForward: %+v, %v", p, err)
			}
		}
		o.expectState(t, journal.StateDone)
		expectNone(t, o.violations())
	})
}

// TestRollForwardOfPreparedRecord is refused: the worker has mistaken it.
func TestRollForwardOfPreparedRecord(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, ab, "S7.before")
		rec := o.record(t)
		if p, err := o.worker.RollForward(o.ctx, rec, o.stores); err == nil || p.State != rec.State {
			t.Errorf("RollForward of %s: %+v, %v", rec.State, p, err)
		}
		if got := o.sent(); len(got) > 0 {
			t.Errorf("it sent %v", got)
		}
	})
}

// TestRollForwardWithoutPayload: what a list query left out must not be applied
// as nothing.
func TestRollForwardWithoutPayload(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, abc, "S7.after")
		rec := o.record(t)
		for i := range rec.Branches {
			rec.Branches[i].Payload = nil
		}
		p, err := o.worker.RollForward(o.ctx, rec, o.stores)
		if err != nil || p.Pending["c"] == nil || len(p.Pending) != 1 {
			t.Errorf("RollForward: %+v, %v", p, err)
		}
		o.expectState(t, journal.StateCommitted)
		if got := o.world.Store("c").State(txnOf(1)); got == fake.Committed {
			t.Errorf("c is %s", got)
		}
	})
}

func TestRollForwardOfStoreNotConfigured(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, ab, "S7.after")
		p, err := o.worker.RollForward(o.ctx, o.record(t), func(name string) branches.Store {
			if name == "b" {
				return nil
			}
			return o.stores(name)
		})
		if err != nil || !errors.Is(p.Pending["b"], coordinator.ErrNotConfigured) || len(p.Pending) != 1 {
			t.Errorf("RollForward: %+v, %v", p, err)
		}
		if got := o.world.Store("a").State(txnOf(1)); got != fake.Committed {
			t.Errorf("a is %s, want committed: one store's absence must not stop the others", got)
		}
		o.expectState(t, journal.StateCommitted)
	})
}

// TestRollForwardHonoursWhatAPersonSaid of branch b.
func TestRollForwardHonoursWhatAPersonSaid(t *testing.T) {
	for _, test := range []struct {
		outcome journal.Outcome
		sent    []string
		state   journal.State
	}{
		{journal.OutcomeNormal, []string{"a FINISH", "b FINISH"}, journal.StateDone},
		{journal.OutcomeApplied, []string{"a FINISH"}, journal.StateDone},
		{journal.OutcomeSkipped, []string{"a FINISH", "b ABORT"}, journal.StateDone},
		{journal.OutcomeHeuristic, []string{"a FINISH"}, journal.StateCommitted},
	} {
		t.Run(string("outcome "+test.outcome), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				t.Helper()
				o := orphaned(t, ab, "S7.after")
				o.said("b", test.outcome)
				p, err := o.worker.RollForward(o.ctx, o.record(t), o.stores)
				if err != nil || p.State != test.state {
					t.Errorf("RollForward: %+v, %v", p, err)
				}
				if diff := cmp.Diff(test.sent, o.sent()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				o.expectState(t, test.state)
			})
		})
	}
}

// said makes a person's decision of one branch.
func (o *orphan) said(store string, outcome journal.Outcome) {
	o.world.Journal.Annotated(txnOf(1), func(b *journal.Branch) {
		if b.Store == store {
			b.Outcome, b.Reason = outcome, "a person"
		}
	})
}

// TestRollForwardOfSkippedThatHadCommitted: the store contradicts the person. It
// is reported, and the person's word is not overwritten.
func TestRollForwardOfSkippedThatHadCommitted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, ab, "S7.after")
		o.said("b", journal.OutcomeSkipped)
		o.world.Store("b").Resolve(txnOf(1), fake.Committed)
		p, err := o.worker.RollForward(o.ctx, o.record(t), o.stores)
		if err != nil || len(p.Heuristics) != 1 || p.Heuristics[0].Store != "b" || !p.Heuristics[0].Committed {
			t.Fatalf("RollForward: %+v, %v", p, err)
		}
		rec := o.record(t)
		if rec.State != journal.StateCommitted || rec.Branches[1].Outcome != journal.OutcomeSkipped || rec.Branches[1].Reason != "a person" {
			t.Errorf("record %+v", rec)
		}
	})
}

// TestRollForwardRemembersHeuristic: found by a worker, it is in the record, and
// the record is not DONE until a person has ended it.
func TestRollForwardRemembersHeuristic(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, ab, "S7.after")
		o.world.Store("b").Resolve(txnOf(1), fake.RolledBack)
		p, err := o.worker.RollForward(o.ctx, o.record(t), o.stores)
		if err != nil || len(p.Heuristics) != 1 || p.Heuristics[0].GID != branches.NewGID(txnOf(1), "b") {
			t.Fatalf("RollForward: %+v, %v", p, err)
		}
		rec := o.record(t)
		if rec.Branches[1].Outcome != journal.OutcomeHeuristic || rec.Branches[1].Reason == "" {
			t.Errorf("the record's branch is %+v", rec.Branches[1])
		}
		if p, err := o.worker.RollForward(o.ctx, rec, o.stores); err != nil || p.State != journal.StateCommitted {
			t.Errorf("RollForward again: %+v, %v", p, err)
		}
		o.said("b", journal.OutcomeSkipped)
		if p, err := o.worker.RollForward(o.ctx, o.record(t), o.stores); err != nil || p.State != journal.StateDone {
			t.Errorf("RollForward after resolve: %+v, %v", p, err)
		}
	})
}

// TestRollBackOfDecidedRecord touches nothing and tells what stands.
func TestRollBackOfDecidedRecord(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, ab, "S7.after")
		rec := o.record(t)
		rec.State = journal.StatePrepared // as it was a moment ago
		p, err := o.worker.RollBack(o.ctx, rec, o.stores)
		if err != nil || p.State != journal.StateCommitted {
			t.Errorf("RollBack: %+v, %v", p, err)
		}
		if got := o.sent(); len(got) > 0 {
			t.Errorf("it sent %v", got)
		}
	})
}

// TestRollBackWithoutProof: no acknowledged ABORTED, no branch is touched.
func TestRollBackWithoutProof(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, ab, "S7.before")
		o.world.Play(fake.Script{{Proc: "worker", Actor: trace.Journal, Op: trace.Forbid}: {Kind: fake.LostAfter}})
		if p, err := o.worker.RollBack(o.ctx, o.record(t), o.stores); err == nil {
			t.Errorf("RollBack: %+v", p)
		}
		if got := o.sent(); len(got) > 0 {
			t.Errorf("it sent %v", got)
		}
		o.world.Play(nil)
		for range 2 { // ABORTED is found now, and idempotent
			if p, err := o.worker.RollBack(o.ctx, o.record(t), o.stores); err != nil || p.State != journal.StateAborted || len(p.Pending) > 0 {
				t.Errorf("RollBack: %+v, %v", p, err)
			}
		}
		expectNone(t, o.violations())
	})
}

// TestRollBackOfGIDWithoutRecord: what a sweep does with a gid whose record the
// journal has lost, or never had.
func TestRollBackOfGIDWithoutRecord(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, ab, "S5.after")
		o.world.Journal.Crash() // ACTIVE was not forced
		gid := branches.NewGID(txnOf(1), "b")
		p, err := o.worker.RollBack(o.ctx, journal.Record{
			Txn: txnOf(1), Branches: []journal.Branch{{Store: "b", GID: gid, TwoPhase: true}},
		}, o.stores)
		if err != nil || p.State != journal.StateAborted {
			t.Errorf("RollBack: %+v, %v", p, err)
		}
		o.expectState(t, journal.StateAborted)
		if got := o.world.Store("b").State(txnOf(1)); got != fake.RolledBack {
			t.Errorf("b is %s", got)
		}
	})
}

func TestRollBackOfStoreNotConfiguredOrDown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, []part{writer("a"), writer("b"), writer("c")}, "S7.before")
		o.world.Play(fake.Script{{Proc: "worker", Actor: "a", Op: trace.Abort}: {Kind: fake.LostBefore}})
		p, err := o.worker.RollBack(o.ctx, o.record(t), func(name string) branches.Store {
			if name == "b" {
				return nil
			}
			return o.stores(name)
		})
		if err != nil || len(p.Pending) != 2 || !errors.Is(p.Pending["b"], coordinator.ErrNotConfigured) || p.Pending["a"] == nil {
			t.Errorf("RollBack: %+v, %v", p, err)
		}
		if got := o.world.Store("c").State(txnOf(1)); got != fake.RolledBack {
			t.Errorf("c is %s, want rolled back: one store's absence must not stop the others", got)
		}
	})
}

// TestRollBackRemembersHeuristic: somebody had committed a branch by hand.
func TestRollBackRemembersHeuristic(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		o := orphaned(t, ab, "S7.before")
		o.world.Store("b").Resolve(txnOf(1), fake.Committed)
		p, err := o.worker.RollBack(o.ctx, o.record(t), o.stores)
		if err != nil || len(p.Heuristics) != 1 || !p.Heuristics[0].Committed {
			t.Fatalf("RollBack: %+v, %v", p, err)
		}
		rec := o.record(t)
		if rec.State != journal.StateAborted || rec.Branches[1].Outcome != journal.OutcomeHeuristic {
			t.Errorf("record %+v", rec)
		}
		before := len(o.sent())
		if p, err := o.worker.RollBack(o.ctx, rec, o.stores); err != nil || len(p.Heuristics) > 0 {
			t.Errorf("RollBack again: %+v, %v", p, err)
		}
		if diff := cmp.Diff([]string{"a ABORT"}, o.sent()[before:]); diff != "" {
			t.Errorf("what is a person's was touched (-want +got):\n%s", diff)
		}
	})
}
