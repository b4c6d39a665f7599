package clickhouse

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errands are attempts at decided branches. They go on when the call that began
// one has ended: cancelled, an insert is torn; the next call would have to take
// its rows back and begin anew; and one that takes longer than a call may would
// never come to its end. Whoever comes meanwhile waits for it, as for anybody's
// (Store.quiet).
type errands struct {
	once sync.Once
	cut  chan struct{} // closed: those that run are cut off

	mu      sync.Mutex
	over    bool // no more are begun
	running sync.WaitGroup
}

var errClosed = errors.New("the store is closed")

func newErrands() *errands { return &errands{cut: make(chan struct{})} }

// run runs f for limit at most, and waits for it until ctx ends.
func (e *errands) run(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	ended := make(chan error, 1)
	if !e.begin(own, cancel, func() { ended <- f(own) }) {
		cancel()
		return errClosed
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), errRunning)
	}
}

func (e *errands) begin(own context.Context, cancel context.CancelFunc, f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return false
	}
	e.running.Go(func() {
		defer cancel()
		f()
	})
	e.running.Go(func() {
		select {
		case <-e.cut:
			cancel()
		case <-own.Done():
		}
	})
	return true
}

// end waits until none runs any more. What takes longer than patience is cut off.
func (e *errands) end(patience time.Duration) {
	e.mu.Lock()
	e.over = true
	e.mu.Unlock()
	timer := time.AfterFunc(patience, func() { e.once.Do(func() { close(e.cut) }) })
	e.running.Wait()
	timer.Stop()
}
