package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

// inTime runs a step between S4 and S7, unless the caller has given up or
// CommitTimeout is over: S7 sent too late for its answer would turn a clean
// abort into a doubt.
func (c *Coordinator) inTime(ctx, limit context.Context, step func() error) error {
	if err := gaveUp(ctx); err != nil {
		return err
	}
	err := limit.Err()
	if err == nil {
		err = step()
	}
	if limit.Err() == nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	late := &timeoutError{after: c.cfg.CommitTimeout, err: err}
	if p := partOf(err); p != nil {
		return &partError{part: p, err: late}
	}
	return late
}

// timeoutError: CommitTimeout ended the unit, not its caller.
type timeoutError struct {
	after time.Duration
	err   error
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("rhizodat: commit: commit_timeout=%s is over: %v", e.after, e.err)
}

func (e *timeoutError) Unwrap() error { return e.err }

// Kind: the next try may find less to wait for.
func (e *timeoutError) Kind() branches.Kind { return branches.Transient }

// gaveUp returns why the caller's context has ended, or nil.
func gaveUp(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); err != nil && !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// both is ctx, and ends with limit too.
func both(ctx, limit context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := limit.Deadline(); ok {
		return context.WithDeadline(ctx, deadline)
	}
	return context.WithCancel(ctx)
}

// insist calls f until it succeeds or ctx ends.
func (c *Coordinator) insist(ctx context.Context, f func() error) error {
	for delay := firstDelay; ; delay = next(delay) {
		if err := f(); err == nil || c.wall.Sleep(ctx, delay) != nil {
			return err
		}
	}
}

// The delays between two tries of one request inside a commit.
const (
	firstDelay = 10 * time.Millisecond
	lastDelay  = time.Second
)

func next(delay time.Duration) time.Duration { return min(2*delay, lastDelay) }
