package coordinator_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// batching is a journal that notes the batches of S10.
type batching struct {
	journal.Journal
	mu      sync.Mutex
	batches [][]branches.TxnID
}

func (b *batching) Finish(ctx context.Context, txns []branches.TxnID) (int, error) {
	b.mu.Lock()
	b.batches = append(b.batches, slices.Clone(txns))
	b.mu.Unlock()
	return b.Journal.Finish(ctx, txns)
}

// newBatchingScene REQUIRES a bubble.
func newBatchingScene(ctx context.Context, stores ...string) (*scene, *batching) {
	s := newScene(ctx, stores, coordinator.Config{}, 1)
	b := &batching{}
	config := coordinator.Config{Journal: b, Clock: s.clock, Observer: s.obs}
	b.Journal = s.world.Journal.Client(s.app, 4)
	s.coord = coordinator.New(config)
	return s, b
}

// commitAll commits units first..last at once.
func commitAll(s *scene, first, last int, parts []part) {
	var all sync.WaitGroup
	for n := first; n <= last; n++ {
		p := s.begin(n, parts)
		all.Go(func() { s.commit(s.ctx, p) })
	}
	all.Wait()
}

func (s *scene) states(first, last int) map[journal.State]int {
	found := map[journal.State]int{}
	for n := first; n <= last; n++ {
		rec, _ := s.world.Journal.Record(txnOf(n))
		found[rec.State]++
	}
	return found
}

// TestDoneIsBatchedAndNeverWaitedFor: what has finished while one DONE is under
// way goes with the next one, and nobody waits for either.
func TestDoneIsBatchedAndNeverWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		s, b := newBatchingScene(t.Context(), "a", "b")
		s.world.Play(fake.Script{call(trace.Journal, trace.Done, 0): {Kind: fake.Slow, D: time.Second}})
		commitAll(s, 1, 1, ab)
		sleep(s, 30*time.Millisecond) // its DONE is under way
		commitAll(s, 2, 4, ab)
		for _, e := range s.ended {
			if e.Took >= time.Second {
				t.Errorf("a Commit took %s: it waited for a DONE of one second", e.Took)
			}
		}
		if err := s.settle(); err != nil {
			t.Error(err)
		}
		if len(b.batches) != 2 || len(b.batches[0]) != 1 || len(b.batches[1]) != 3 {
			t.Errorf("batches of DONE: %v, want one of 1 and one of 3", b.batches)
		}
		if got := s.states(1, 4); got[journal.StateDone] != 4 {
			t.Errorf("records %v, want 4 DONE", got)
		}
		expectNone(t, s.violations())
	})
}

// TestDoneGathersForAMoment: what finishes within it is one write, and no Commit
// waits for it.
func TestDoneGathersForAMoment(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		s, b := newBatchingScene(t.Context(), "a", "b")
		for n := 1; n <= 3; n++ {
			commitAll(s, 2*n-1, 2*n-1, ab)
			sleep(s, 5*time.Millisecond)
			commitAll(s, 2*n, 2*n, ab)
			if got := s.states(2*n-1, 2*n); got[journal.StateCommitted] != 2 {
				t.Errorf("at once after commit %d: records %v, want both COMMITTED", n, got)
			}
			sleep(s, 25*time.Millisecond)
			if got := s.states(2*n-1, 2*n); got[journal.StateDone] != 2 || len(b.batches) != n {
				t.Errorf("25ms after commit %d: records %v, %d batches", n, got, len(b.batches))
			}
		}
		for _, e := range s.ended {
			if e.Took >= 20*time.Millisecond {
				t.Errorf("a Commit took %s", e.Took)
			}
		}
		if err := s.settle(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseWritesWhatIsOwed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		s, _ := newBatchingScene(t.Context(), "a", "b")
		commitAll(s, 1, 8, ab)
		if err := s.coord.Close(); err != nil {
			t.Error(err)
		}
		if got := s.states(1, 8); got[journal.StateDone] != 8 {
			t.Errorf("records after Close %v, want 8 DONE", got)
		}
	})
}

// TestCloseIsBounded: however many batches are owed, a journal that hangs holds
// Close up for one finish_timeout.
func TestCloseIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		s, _ := newBatchingScene(t.Context(), "a", "b")
		s.world.Play(fake.Script{call(trace.Journal, trace.Done, 0): {Kind: fake.Hang}})
		commitAll(s, 1, 1, ab)
		commitAll(s, 2, 4, ab)
		begun := hlc.System.Now()
		if err := s.coord.Close(); err != nil {
			t.Error(err)
		}
		if took := hlc.System.Now().Sub(begun); took > 5*time.Second+10*time.Millisecond {
			t.Errorf("Close took %s, want at most finish_timeout=5s", took)
		}
		if got := s.states(1, 4); got[journal.StateCommitted] != 4 {
			t.Errorf("records after Close %v, want 4 COMMITTED", got)
		}
		s.world.Play(nil)
		if err := s.recovery("recovery"); err != nil {
			t.Error(err)
		}
		if got := s.states(1, 4); got[journal.StateDone] != 4 {
			t.Errorf("records after recovery %v, want 4 DONE", got)
		}
	})
}

// TestCloseEndsTheRetries at once: they are recovery's from then on, and so is
// the DONE of a commit that ends after Close.
func TestCloseEndsTheRetries(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		s, b := newBatchingScene(t.Context(), "a", "b")
		s.world.Play(down("b", trace.Finish))
		commitAll(s, 1, 1, ab)
		sleep(s, time.Second)
		begun := hlc.System.Now()
		if err := s.coord.Close(); err != nil {
			t.Error(err)
		}
		if took := hlc.System.Now().Sub(begun); took > 100*time.Millisecond {
			t.Errorf("Close took %s", took)
		}
		s.world.Play(nil)
		commitAll(s, 2, 2, ab)
		commitAll(s, 3, 3, []part{writer("a")})
		sleep(s, time.Minute)
		if got := s.states(1, 2); got[journal.StateCommitted] != 2 || len(b.batches) != 0 {
			t.Errorf("after Close: records %v, batches %v", got, b.batches)
		}
		if err := s.coord.Close(); err != nil { // again
			t.Error(err)
		}
		if err := s.recovery("recovery"); err != nil {
			t.Error(err)
		}
		if got := s.states(1, 2); got[journal.StateDone] != 2 {
			t.Errorf("records after recovery %v, want 2 DONE", got)
		}
		expectNone(t, s.violations())
	})
}

// TestRetriesAreBounded: a store that is down for long does not fill the memory
// of the program; what is beyond the bound is recovery's alone.
func TestRetriesAreBounded(t *testing.T) {
	const units, bound = 300, 256
	inBubble(t, func(t *testing.T) {
		t.Helper()
		s, _ := newBatchingScene(t.Context(), "a", "b")
		s.world.Play(down("b", trace.Finish))
		commitAll(s, 1, units, ab)
		s.world.Play(nil)
		sleep(s, 5*time.Minute)
		if got := s.states(1, units); got[journal.StateDone] != bound || got[journal.StateCommitted] != units-bound {
			t.Errorf("records %v, want %d DONE, the rest COMMITTED", got, bound)
		}
		if err := s.settle(); err != nil {
			t.Error(err)
		}
		expectNone(t, s.violations())
	})
}

func sleep(s *scene, d time.Duration) { _ = hlc.System.Sleep(s.ctx, d) }

func expectNone(t *testing.T, found []trace.Violation) {
	t.Helper()
	for _, v := range found {
		t.Errorf("violation %v", v)
	}
}
