package clickhouse

import (
	"context"
	"errors"
	"testing"
	"time"
)

// What does not end within the patience of Close is cut off, and nothing is
// begun afterwards.
func TestErrandsAreCutOff(t *testing.T) {
	e := newErrands()
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		<-begun
		cancel()
	}()
	err := e.run(ctx, time.Hour, func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, errRunning) {
		t.Errorf("a call that was left = %v", err)
	}
	select {
	case err := <-ended:
		t.Fatalf("cut off with its call: %v", err)
	default:
	}
	for range 2 {
		e.end(time.Millisecond)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("its context ended with %v", err)
	}
	if err := e.run(t.Context(), time.Hour, func(context.Context) error { return nil }); !errors.Is(err, errClosed) {
		t.Errorf("begun after the end: %v", err)
	}
}
