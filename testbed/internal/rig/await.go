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
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		done, err := ok()
		if done || err != nil {
			return err
		}
		if Pause(ctx, glanceGap) != nil {
			return fmt.Errorf("await %s: not within %s", what, patience)
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
