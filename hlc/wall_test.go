package hlc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
)

// bounded is a context that ends a test that hangs.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestManualSleepWakesOnAdvance(t *testing.T) {
	ctx := bounded(t)
	wall := hlc.NewManual(at(1000))
	woken := make(chan time.Duration, 2)
	for _, d := range []time.Duration{time.Second, 2 * time.Second} {
		go func() {
			if wall.Sleep(ctx, d) == nil {
				woken <- d
			}
		}()
	}
	if err := wall.AwaitSleepers(ctx, 2); err != nil {
		t.Fatal(err)
	}
	wall.Advance(time.Second - 1)
	wall.Set(at(99_000)) // a step of the time of day is no passing of time
	select {
	case d := <-woken:
		t.Fatalf("the sleeper of %v woke early", d)
	default:
	}
	wall.Advance(1)
	if d := <-woken; d != time.Second {
		t.Errorf("the sleeper of %v woke first", d)
	}
	wall.Set(at(0))
	wall.Advance(time.Second)
	if d := <-woken; d != 2*time.Second {
		t.Errorf("the sleeper of %v woke second", d)
	}
	if want := at(1000); !wall.Now().Equal(want) {
		t.Errorf("Now() = %v, want %v", wall.Now(), want)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	manual := hlc.NewManual(at(0))
	for name, wall := range map[string]hlc.Wall{"system": hlc.System, "manual": manual} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(bounded(t))
			done := make(chan error, 1)
			go func() { done <- wall.Sleep(ctx, time.Hour) }()
			if name == "manual" {
				if err := manual.AwaitSleepers(ctx, 1); err != nil {
					t.Fatal(err)
				}
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Sleep = %v, want context.Canceled", err)
			}
			for _, d := range []time.Duration{-1, 0, time.Hour} {
				if err := wall.Sleep(ctx, d); !errors.Is(err, context.Canceled) {
					t.Errorf("Sleep(%v) on an ended context = %v", d, err)
				}
			}
			for _, d := range []time.Duration{-1, 0} {
				if err := wall.Sleep(t.Context(), d); err != nil {
					t.Errorf("Sleep(%v) = %v", d, err)
				}
			}
		})
	}
	if err := manual.AwaitSleepers(bounded(t), 0); err != nil {
		t.Error(err)
	}
}

func TestAwaitSleepersEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := hlc.NewManual(at(0)).AwaitSleepers(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("AwaitSleepers = %v, want context.Canceled", err)
	}
}

func TestSystemWall(t *testing.T) {
	before := time.Now()
	if err := hlc.System.Sleep(bounded(t), 2*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := hlc.System.Now(); got.Sub(before) < 2*time.Millisecond {
		t.Errorf("only %v passed", got.Sub(before))
	}
}

func TestManualAdvanceRefusesThePast(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Advance(-1) did not panic")
		}
	}()
	hlc.NewManual(at(0)).Advance(-1)
}
