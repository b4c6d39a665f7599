package step

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/memjournal"
	"github.com/rhizodat/rhizodat-go/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func bubble(t *testing.T, f func(t *testing.T, j *memjournal.Journal)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		f(t, memjournal.New(hlc.System))
		synctest.Wait()
	})
}

var key = Key{Execution: "run 7", Label: "charge", Input: map[string]any{"amount": 5, "to": "x"}}

func runnerOf(t *testing.T, j journal.Journal, opts ...Option) *runner {
	t.Helper()
	k, s, err := prepare(key, opts)
	if err != nil {
		t.Fatal(err)
	}
	r, err := open(t.Context(), j, k, s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// charge is Do without a pool to find the journal in.
func charge(ctx context.Context, r *runner, effect func(context.Context) (string, error)) (string, error) {
	return once(ctx, r, effect)
}

func returns(value string, runs *int) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		*runs++
		return value, nil
	}
}

func pass(t *testing.T, d time.Duration) {
	t.Helper()
	if err := hlc.System.Sleep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// 8 callers on one key: one effect, and the same value for all.
func TestOneEffect(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		var mu sync.Mutex
		runs := 0
		values := map[string]int{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				v, err := charge(t.Context(), runnerOf(t, j.Node(nil)), func(ctx context.Context) (string, error) {
					mu.Lock()
					runs++
					mu.Unlock()
					return "paid", hlc.System.Sleep(ctx, 75*time.Second) // longer than the claim's TTL
				})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				values[v]++
				mu.Unlock()
			})
		}
		wg.Wait()
		if runs != 1 || values["paid"] != 8 {
			t.Errorf("%d effects, values %v", runs, values)
		}
		v, err := charge(t.Context(), runnerOf(t, j), returns("again", &runs))
		if v != "paid" || err != nil || runs != 1 {
			t.Errorf("replayed %q, %v after %d effects", v, err, runs)
		}
	})
}

// While the holder lives, a waiter whose context ends never runs the effect.
func TestWaiterGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		ended := make(chan error, 1)
		go func() {
			_, err := charge(t.Context(), runnerOf(t, j.Node(nil)), func(ctx context.Context) (string, error) {
				return "slow", hlc.System.Sleep(ctx, 10*time.Minute)
			})
			ended <- err
		}()
		pass(t, time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		runs := 0
		if _, err := charge(ctx, runnerOf(t, j.Node(nil)), returns("mine", &runs)); !errors.Is(err, context.DeadlineExceeded) || runs != 0 {
			t.Errorf("the waiter got %v after %d effects", err, runs)
		}
		if err := <-ended; err != nil {
			t.Errorf("the holder: %v", err)
		}
	})
}

// cut is a process that the journal does not hear any more once it is on.
func cut(on *atomic.Bool) func(memjournal.Op) memjournal.Fault {
	return func(memjournal.Op) memjournal.Fault {
		if on.Load() {
			return memjournal.LostBefore
		}
		return memjournal.None
	}
}

// An owner that is cut off stops before its claim can have lapsed; the next
// caller takes the step over and records it; the first sends and records nothing.
func TestTakeOver(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		var off atomic.Bool
		first := make(chan error, 1)
		stood := make(chan error, 2)
		go func() {
			_, err := charge(t.Context(), runnerOf(t, j.Node(cut(&off))), func(ctx context.Context) (string, error) {
				stood <- Standing(ctx)
				off.Store(true)
				<-ctx.Done()
				stood <- Standing(ctx)
				_ = hlc.System.Sleep(context.WithoutCancel(ctx), time.Minute) // it does not look at its context
				off.Store(false)
				return "late", nil
			})
			first <- err
		}()
		if err := <-stood; err != nil {
			t.Errorf("Standing of the owner: %v", err)
		}
		runs := 0
		began := hlc.System.Now()
		v, err := charge(t.Context(), runnerOf(t, j.Node(nil)), returns("second", &runs))
		if took := hlc.System.Now().Sub(began); v != "second" || err != nil || runs != 1 || took < 30*time.Second || took > 32*time.Second {
			t.Errorf("the next caller got %q, %v after %v and %d effects", v, err, took, runs)
		}
		if err := <-stood; !errors.Is(err, ErrLapsed) {
			t.Errorf("Standing once it was cut off: %v", err)
		}
		superseded, ok := errors.AsType[*Superseded](<-first)
		if !ok || superseded.Key.Label != "charge" {
			t.Errorf("the owner that was replaced got %v", superseded)
		}
		if v, err := charge(t.Context(), runnerOf(t, j), returns("third", &runs)); v != "second" || err != nil || runs != 1 {
			t.Errorf("replayed %q, %v", v, err)
		}
	})
}

// An owner whose claim was taken while it was stopped finds out by asking.
func TestStandingIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		s, err := j.Steps(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := runnerOf(t, j)
		_, err = charge(t.Context(), r, func(ctx context.Context) (string, error) {
			stands, err := s.Get(ctx, r.key)
			if err != nil {
				return "", err
			}
			if a, err := s.Release(ctx, r.key, stands.Token); err != nil || a != journal.AnswerWon {
				t.Errorf("Release: %v, %v", a, err)
			}
			gone := Standing(ctx)
			if _, a, err := s.Claim(ctx, journal.StepRequest{Key: r.key, Holder: "b", Token: "b", TTL: time.Hour}); err != nil || a != journal.AnswerWon {
				t.Errorf("Claim: %v, %v", a, err)
			}
			for _, err := range []error{gone, Standing(ctx)} {
				if superseded, ok := errors.AsType[*Superseded](err); !ok || superseded.Key != r.key {
					t.Errorf("Standing: %v, want *Superseded", err)
				}
			}
			return "late", nil
		})
		if _, ok := errors.AsType[*Superseded](err); !ok {
			t.Errorf("got %v, want *Superseded", err)
		}
		if err := Standing(t.Context()); err == nil {
			t.Error("Standing outside of a step is nil")
		}
	})
}

// A failure or a panic releases the claim: the next caller enters once, at once,
// and then everyone replays.
func TestFailureAndPanic(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		began := hlc.System.Now()
		broken := errors.New("broken")
		runs := 0
		if _, err := charge(t.Context(), runnerOf(t, j), func(context.Context) (string, error) {
			runs++
			return "", broken
		}); err != broken { //nolint:errorlint // as it is
			t.Errorf("got %v, want the effect's own error", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_, _ = charge(t.Context(), runnerOf(t, j), func(context.Context) (string, error) {
				runs++
				panic("between effect and record")
			})
		}()
		for range 3 {
			if v, err := charge(t.Context(), runnerOf(t, j), returns("paid", &runs)); v != "paid" || err != nil {
				t.Errorf("got %q, %v", v, err)
			}
		}
		if runs != 3 || !hlc.System.Now().Equal(began) {
			t.Errorf("%d runs, and it took %v", runs, hlc.System.Now().Sub(began))
		}
	})
}

// Lost replies: what took effect is found, what did not is tried again.
func TestLostReplies(t *testing.T) {
	for name, tc := range map[string]struct {
		op    memjournal.Op
		fault memjournal.Fault
		fails bool
	}{
		"claim that arrived":         {memjournal.Claim, memjournal.LostAfter, false},
		"claim that did not arrive":  {memjournal.Claim, memjournal.LostBefore, true},
		"record that arrived":        {memjournal.Record, memjournal.LostAfter, false},
		"record that did not arrive": {memjournal.Record, memjournal.LostBefore, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, j *memjournal.Journal) {
				t.Helper()
				times := 0
				node := j.Node(func(op memjournal.Op) memjournal.Fault {
					if op != tc.op || times > 0 {
						return memjournal.None
					}
					times++
					return tc.fault
				})
				runs := 0
				v, err := charge(t.Context(), runnerOf(t, node), returns("paid", &runs))
				if tc.fails {
					if !errors.Is(err, memjournal.ErrLost) || runs != 0 {
						t.Errorf("got %q, %v after %d effects", v, err, runs)
					}
					v, err = charge(t.Context(), runnerOf(t, node), returns("paid", &runs))
				}
				if v != "paid" || err != nil || runs != 1 {
					t.Errorf("got %q, %v after %d effects", v, err, runs)
				}
			})
		})
	}
}

// The effect is done and the journal is away for good: the error says so, and the
// claim is not given back, since the record may have arrived.
func TestRecordIsNeverAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		var off atomic.Bool
		runs := 0
		_, err := charge(t.Context(), runnerOf(t, j.Node(cut(&off))), func(context.Context) (string, error) {
			runs++
			off.Store(true)
			return "paid", nil
		})
		if !errors.Is(err, memjournal.ErrLost) {
			t.Errorf("got %v", err)
		}
		began := hlc.System.Now()
		if v, err := charge(t.Context(), runnerOf(t, j), returns("again", &runs)); v != "again" || err != nil || runs != 2 {
			t.Errorf("got %q, %v after %d effects", v, err, runs)
		}
		if hlc.System.Now().Equal(began) {
			t.Error("the next caller did not wait for the claim to lapse")
		}
	})
}

// The caller's end does not lose the value of an effect that is done.
func TestCallerEndsBeforeTheRecord(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		v, err := charge(ctx, runnerOf(t, j), func(context.Context) (string, error) {
			runs++
			cancel()
			return "paid", nil
		})
		if v != "paid" || err != nil {
			t.Errorf("got %q, %v", v, err)
		}
		if v, err := charge(t.Context(), runnerOf(t, j), returns("again", &runs)); v != "paid" || err != nil || runs != 1 {
			t.Errorf("replayed %q, %v", v, err)
		}
	})
}
