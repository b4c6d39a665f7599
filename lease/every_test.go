package lease

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/memjournal"
	"github.com/rhizodat/rhizodat-go/journal"
)

// every is RunEvery without a pool to find the journal in.
func every(ctx context.Context, j journal.Journal, node string, interval time.Duration, f func(context.Context) error, opts ...Option) error {
	s, err := settingsOf("p", append([]Option{WithHolder(node)}, opts...))
	if err != nil {
		return err
	}
	return repeat(ctx, j, s, interval, f)
}

// Two nodes: each turn is run by one of them, the other skips it.
func TestRunEvery(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute-time.Second)
		defer cancel()
		type run struct {
			node  string
			fence Fence
		}
		var runs []run
		var skips []error
		ended := make(chan error, 2)
		busy := false
		for _, node := range []string{"a", "b"} {
			go func() {
				ended <- every(ctx, j, node, time.Minute, func(ctx context.Context) error {
					if busy {
						t.Error("two nodes run at once")
					}
					busy = true
					defer func() { busy = false }()
					l, ok := FromContext(ctx)
					if !ok {
						t.Error("the run does not know its lease")
						return nil
					}
					runs = append(runs, run{node, l.Fence()})
					return hlc.System.Sleep(ctx, 40*time.Second)
				}, OnSkip(func(err error) { skips = append(skips, err) }))
			}()
			pass(t, time.Second)
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("RunEvery: %v", err)
			}
		}
		if len(runs) != 10 || len(skips) != 10 {
			t.Fatalf("%d runs and %d skips in 10 minutes, want 10 of each", len(runs), len(skips))
		}
		for i, r := range runs {
			if r.fence != Fence(i+1) {
				t.Errorf("run %d had fence %v", i, r.fence)
			}
		}
		for _, err := range skips {
			if held, ok := errors.AsType[*Held](err); !ok || held.Holder == "" {
				t.Errorf("skipped because of %v", err)
			}
		}
	})
}

func TestRunEveryEndsWithTheFirstFailure(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		broken := errors.New("broken")
		n := 0
		err := every(t.Context(), j, "a", time.Minute, func(context.Context) error {
			if n++; n == 3 {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) || n != 3 {
			t.Errorf("got %v after %d runs", err, n)
		}
		must(t, j, "b", 4) // it was released
	})
}

// A panic of f leaves nothing that is renewed for ever.
func TestRunEveryPanics(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = every(t.Context(), j, "a", time.Minute, func(context.Context) error { panic("f") })
		}()
		pass(t, 30*time.Second)
		must(t, j, "b", 2)
	})
}

// A lease that is lost during the run ends f's context; the next turn is taken.
func TestRunEveryLosesItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var skips []error
		n := 0
		err := every(ctx, j, "a", time.Minute, func(ctx context.Context) error {
			switch n++; n {
			case 1:
				j.Spoil(func(op memjournal.Op) memjournal.Fault {
					if op == memjournal.Renew {
						return memjournal.LostBefore
					}
					return memjournal.None
				})
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, ErrLapsed) {
					t.Errorf("f's context ended by %v", cause)
				}
				j.Spoil(nil)
				return ctx.Err()
			case 2:
				return &Fenced{Lease: "p", Fence: 2, Current: 3} // as a late commit says
			}
			cancel()
			return ctx.Err()
		}, OnSkip(func(err error) { skips = append(skips, err) }))
		if !errors.Is(err, context.Canceled) || n != 3 {
			t.Errorf("got %v after %d runs", err, n)
		}
		fenced := (*Fenced)(nil)
		if len(skips) != 2 || !errors.Is(skips[0], ErrLapsed) || !errors.As(skips[1], &fenced) {
			t.Errorf("skipped: %v", skips)
		}
	})
}

// Turns that a long run has missed are left out.
func TestRunEveryKeepsItsBeat(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		began := hlc.System.Now()
		var at []time.Duration
		_ = every(ctx, j, "a", time.Minute, func(ctx context.Context) error {
			at = append(at, hlc.System.Now().Sub(began))
			return hlc.System.Sleep(ctx, 150*time.Second)
		})
		if want := []time.Duration{0, 3 * time.Minute, 6 * time.Minute, 9 * time.Minute}; !slices.Equal(at, want) {
			t.Errorf("ran at %v, want %v", at, want)
		}
	})
}

// An error of the journal that may pass is one skipped turn; a wrong set-up ends it.
func TestRunEveryWithoutAJournal(t *testing.T) {
	bubble(t, func(t *testing.T, j *memjournal.Journal) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var skips []error
		down := true
		j.Spoil(func(op memjournal.Op) memjournal.Fault {
			if op == memjournal.Acquire && down {
				return memjournal.LostBefore
			}
			return memjournal.None
		})
		err := every(ctx, passing{j}, "a", time.Minute, func(context.Context) error {
			cancel()
			return nil
		}, OnSkip(func(err error) { skips, down = append(skips, err), len(skips) < 2 }))
		if !errors.Is(err, context.Canceled) || len(skips) != 3 || !errors.Is(skips[0], memjournal.ErrLost) {
			t.Errorf("got %v, skipped %v", err, skips)
		}
		if err := every(t.Context(), j, "a", time.Minute, nil, WithTTL(1)); err == nil {
			t.Error("a TTL of 1 ns went through")
		}
		if err := every(t.Context(), struct{ journal.Journal }{}, "a", time.Minute, nil); !errors.Is(err, journal.ErrNoLease) {
			t.Errorf("a journal without leases: %v", err)
		}
		if err := every(t.Context(), j, "a", 0, nil); err == nil {
			t.Error("an interval of 0 went through")
		}
	})
}

// passing is a journal whose lost answers may pass.
type passing struct{ *memjournal.Journal }

func (passing) Classify(error) branches.Kind { return branches.Transient }
