package coordinator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

// later is what a coordinator still does after Commit has returned: DONE in
// batches, and its own unfinished branches, beside recovery. Losing any of it
// loses nothing: recovery finds it in the journal.
type later struct {
	c *Coordinator

	mu       sync.Mutex
	owed     []branches.TxnID // S10
	flushing bool
	retrying int
	closed   bool
	stop     context.CancelFunc // ends the retries
	stopped  context.Context    //nolint:containedctx // the life of the coordinator, not of a call
	work     sync.WaitGroup
}

const (
	// maxRetrying bounds the units this process retries at once, and with them
	// the memory their payloads take. The others are recovery's alone.
	maxRetrying = 256
	// abortTries is how often a gid whose PREPARE was not answered is looked
	// for again: the lost request may still land.
	abortTries = 4
	// slowest delay between two tries of a pending branch.
	slowest = 30 * time.Second
	// flushTries is how often a batch of DONE is written before it is left to
	// recovery.
	flushTries = 3
)

func newLater(c *Coordinator) *later {
	l := &later{c: c}
	//nolint:forbidigo // the root of the coordinator's own life, which no call's context governs
	l.stopped, l.stop = context.WithCancel(context.Background())
	return l
}

// done owes txn its DONE. Nobody waits for it, and there is no timer: what has
// gathered while one write is under way goes with the next.
func (l *later) done(ctx context.Context, txn branches.TxnID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.owed = append(l.owed, txn)
	if l.flushing {
		return
	}
	l.flushing = true
	l.work.Go(func() { l.flush(context.WithoutCancel(ctx)) })
}

func (l *later) flush(ctx context.Context) {
	for {
		l.mu.Lock()
		batch := l.owed
		l.owed = nil
		if len(batch) == 0 {
			l.flushing = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		l.writeDone(ctx, batch)
	}
}

// writeDone is S10.
func (l *later) writeDone(ctx context.Context, batch []branches.TxnID) {
	ctx, cancel := context.WithTimeout(ctx, l.c.cfg.FinishTimeout)
	defer cancel()
	l.observe(ctx, batch, Before, nil)
	var err error
	for delay, try := firstDelay, 0; try < flushTries; delay, try = next(delay), try+1 {
		if _, err = l.c.cfg.Journal.Finish(ctx, batch); err == nil || l.c.wall.Sleep(ctx, delay) != nil {
			break
		}
	}
	l.observe(ctx, batch, After, err)
	if err != nil {
		l.c.log.InfoContext(ctx, "rhizodat: DONE left to recovery", "records", len(batch), "error", err)
	}
}

func (l *later) observe(ctx context.Context, batch []branches.TxnID, m Moment, err error) {
	if l.c.cfg.Observer == nil {
		return
	}
	for _, txn := range batch {
		l.c.observe(ctx, StepEvent{Txn: txn, Step: S10, Moment: m, Err: err})
	}
}

// finish keeps trying the pending branches of a decided unit.
func (l *later) finish(ctx context.Context, txn branches.TxnID, pending []*ending) {
	l.retry(ctx, func(ctx context.Context) bool {
		for _, e := range pending {
			e.branch = nil // its session is the application's again
			e.end(ctx, l.c, false)
		}
		var heuristics []*branches.Heuristic
		for _, e := range pending {
			if e.heuristic != nil {
				heuristics = append(heuristics, e.heuristic)
			}
		}
		if len(heuristics) > 0 && l.c.remember(ctx, txn, heuristics) != nil {
			return false
		}
		settled := func(e *ending) bool { return e.err == nil || e.heuristic != nil }
		pending = slices.DeleteFunc(pending, settled)
		if len(pending) > 0 {
			return false
		}
		if len(heuristics) == 0 {
			l.done(ctx, txn)
		}
		return true
	})
}

// abort keeps looking for a branch of an aborted unit.
func (l *later) abort(ctx context.Context, store branches.Store, ref branches.Ref) {
	tries := 0
	l.retry(ctx, func(ctx context.Context) bool {
		tries++
		return store.Abort(ctx, ref) == nil && tries >= abortTries
	})
}

// retry calls f with growing delays until it reports success or the
// coordinator is closed.
func (l *later) retry(ctx context.Context, f func(context.Context) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.retrying >= maxRetrying {
		return
	}
	l.retrying++
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(l.stopped, cancel)
	l.work.Go(func() {
		defer func() {
			unhook()
			cancel()
			l.mu.Lock()
			l.retrying--
			l.mu.Unlock()
		}()
		for delay := 10 * firstDelay; ; delay = min(2*delay, slowest) {
			if l.c.wall.Sleep(ctx, delay) != nil {
				return
			}
			try, done := context.WithTimeout(ctx, l.c.cfg.FinishTimeout)
			ok := f(try)
			done()
			if ok {
				return
			}
		}
	})
}

// close writes what is owed and ends the retries.
func (l *later) close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.work.Wait() // bounded: every request in it has FinishTimeout
	return nil
}
