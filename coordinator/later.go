package coordinator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// later is what a coordinator still does after Commit has returned: DONE in
// batches, and its own unfinished branches, beside recovery. Losing any of it
// loses nothing: recovery finds it in the journal.
type later struct {
	c *Coordinator

	// The life of the coordinator, not of a call: stop ends the retries when it
	// is closed, cut ends its last batch of DONE when that takes too long.
	life, retrying context.Context //nolint:containedctx // see above
	cut, stop      context.CancelFunc
	work           sync.WaitGroup

	mu       sync.Mutex
	owed     []branches.TxnID // S10
	flushing bool
	retries  int
	closed   bool
}

const (
	// maxRetries bounds the units this process retries at once. The others are
	// recovery's alone.
	maxRetries = 256
	// abortTries is how often a gid whose PREPARE was not answered is looked
	// for again: the lost request may still land.
	abortTries = 4
	// slowest delay between two tries of a pending branch.
	slowest = 30 * time.Second
	// flushTries is how often a batch of DONE is written before it is left to
	// recovery.
	flushTries = 3
	// gather is how long DONEs are waited for before a batch of them is
	// written. It is the journal's second busiest write, and nobody waits for it.
	gather = 20 * time.Millisecond
)

func newLater(c *Coordinator) *later {
	l := &later{c: c}
	//nolint:forbidigo // the root of the coordinator's own life, which no call's context governs
	l.life, l.cut = context.WithCancel(context.Background())
	l.retrying, l.stop = context.WithCancel(l.life)
	return l
}

// within has ctx's values and ends with life.
func within(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(life, cancel)
	return ctx, func() {
		unhook()
		cancel()
	}
}

// done owes txn its DONE. Commit does not wait for it: what gathers for a moment,
// or while one write is under way, goes with the next.
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
	ctx, cancel := within(ctx, l.life)
	l.work.Go(func() {
		defer cancel()
		l.flush(ctx)
	})
}

func (l *later) flush(ctx context.Context) {
	for {
		_ = l.c.wall.Sleep(l.retrying, gather) //nolint:contextcheck // the coordinator's life: not at all once it is closed
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

func (l *later) writeDone(ctx context.Context, batch []branches.TxnID) {
	ctx, cancel := context.WithTimeout(ctx, l.c.cfg.FinishTimeout)
	defer cancel()
	tries, last := 0, error(nil)
	_ = l.c.insist(ctx, func() error {
		tries++
		if last = l.c.done(ctx, batch); tries == flushTries {
			return nil
		}
		return last
	})
	if last != nil {
		l.c.log.InfoContext(ctx, "rhizodat: DONE left to recovery", "records", len(batch), "error", last)
	}
}

// finish keeps trying the branches of a decided unit that Commit could not end.
// The record is read before each try: another process may have ended them, and
// a branch that a person has given up meanwhile must not come back.
func (l *later) finish(ctx context.Context, u *Unit) {
	stores := u.stores()
	l.retry(ctx, func(ctx context.Context) bool {
		rec, err := l.c.read(ctx, u.Txn)
		if err != nil {
			return errors.Is(err, journal.ErrNotFound) // ended, and compacted away
		}
		if rec.State.Final() {
			return true
		}
		p, err := l.c.RollForward(ctx, rec, stores)
		return err == nil && len(p.Pending) == 0
	})
}

// abort keeps looking for a branch of an aborted unit.
func (l *later) abort(ctx context.Context, store branches.Store, ref branches.Ref) {
	tries := 0
	l.retry(ctx, func(ctx context.Context) bool {
		tries++
		err := store.Abort(ctx, ref)
		if h := heuristicOf(err, ref); h != nil {
			l.c.log.ErrorContext(ctx, "rhizodat: a store resolved its branch against the decision", "dat_txn", ref.Txn, "error", h)
			return l.c.remembered(ctx, ref.Txn, []*branches.Heuristic{h})
		}
		return err == nil && tries >= abortTries
	})
}

// retry calls f with growing delays until it reports success or the
// coordinator is closed.
func (l *later) retry(ctx context.Context, f func(context.Context) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.retries >= maxRetries {
		return
	}
	l.retries++
	ctx, cancel := within(ctx, l.retrying)
	l.work.Go(func() {
		defer func() {
			cancel()
			l.mu.Lock()
			l.retries--
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
	bound := time.AfterFunc(l.c.cfg.FinishTimeout, l.cut)
	l.work.Wait()
	bound.Stop()
	l.cut()
	return nil
}
