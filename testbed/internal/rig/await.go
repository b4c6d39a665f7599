package rig

import (
	"context"
	"fmt"
	"time"
)

const (
	patience  = 30 * time.Second
	glanceGap = 5 * time.Millisecond
)

// Await looks until ok is true, for half a minute at most.
func Await(ctx context.Context, what string, ok func() (bool, error)) error {
	return AwaitWithin(ctx, patience, what, ok)
}

// AwaitWithin is Await with another bound.
func AwaitWithin(ctx context.Context, bound time.Duration, what string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for {
		done, err := ok()
		if done || err != nil {
			return err
		}
		if Pause(ctx, glanceGap) != nil {
			return fmt.Errorf("await %s: not within %s", what, bound)
		}
	}
}

// Pause waits, or returns the context's error when that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
