package recovery

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

// errPaused stands for a store that is not asked again in this pass.
var errPaused = errors.New("rhizodat: finish branch: the store has failed several times in this pass")

// pauseAfter is how many failures in a row pause a store.
const pauseAfter = 5

// paced is a store whose requests are bounded, and which is left in peace for
// the rest of the pass once it has failed again and again: a thousand records
// must not wait a thousand timeouts for one store that hangs.
type paced struct {
	branches.Store
	timeout  time.Duration
	failures atomic.Int32 // in a row
}

func newPaced(s branches.Store, timeout time.Duration) *paced {
	return &paced{Store: s, timeout: timeout}
}

// Finish is the store's own, bounded.
func (p *paced) Finish(ctx context.Context, ref branches.Ref) error {
	return p.bounded(ctx, ref, p.Store.Finish)
}

// Abort is the store's own, bounded.
func (p *paced) Abort(ctx context.Context, ref branches.Ref) error {
	return p.bounded(ctx, ref, p.Store.Abort)
}

func (p *paced) bounded(ctx context.Context, ref branches.Ref, end func(context.Context, branches.Ref) error) error {
	if p.failures.Load() >= pauseAfter {
		return errPaused
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	err := end(ctx, ref)
	switch {
	case err == nil:
		p.failures.Store(0)
	case ctx.Err() != nil || branches.Classify(p.Store, err) == branches.Transient:
		p.failures.Add(1)
	}
	// What is refused for one branch alone (its owner's role) says nothing about
	// the others.
	return err
}
