package keeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// ErrLapsed is why a holder has stopped trusting what it held: the time it could
// answer for is over, and it could not be renewed. Others may have it now.
var ErrLapsed = errors.New("rhizodat: keep lease: it could not be renewed in time and may be another's now")

// Held is what this process holds in a journal until it is dropped, lost, or
// not trusted any more. It is safe for concurrent use.
type Held struct {
	journal journal.Conditional
	keeper  *keeper
	lease   *journal.LeaseRenewal // either this
	step    *journal.StepRenewal  // or that
	ttl     time.Duration
	lost    error // the cause when the journal says that it is another's

	ctx    context.Context //nolint:containedctx // ends with what is held; it is handed out, not used
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer // ends the trust
	due   time.Time
}

// Lease keeps a grant that was asked for at began. lost is the cause of the end
// of its context when another grant stands. The context has the values of ctx
// and not its end.
func Lease(ctx context.Context, j journal.Journal, r journal.LeaseRenewal, began time.Time, lost error) *Held {
	return keep(ctx, j, &Held{lease: &r, ttl: r.TTL, lost: lost}, began)
}

// Step is Lease for the claim of a step.
func Step(ctx context.Context, j journal.Journal, r journal.StepRenewal, began time.Time, lost error) *Held {
	return keep(ctx, j, &Held{step: &r, ttl: r.TTL, lost: lost}, began)
}

func keep(ctx context.Context, j journal.Journal, h *Held, began time.Time) *Held {
	h.journal, _ = j.(journal.Conditional) // it has granted what is held
	h.ctx, h.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	h.due = began.Add(h.period())
	add(j, h) //nolint:contextcheck // the keeper's life is its own, not this caller's
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(h.trust(began), func() { h.Drop(ErrLapsed) })
	return h
}

// Context ends when it is not held any more; its cause says why.
func (h *Held) Context() context.Context { return h.ctx }

// Cause says why it is not held any more; nil while it is.
func (h *Held) Cause() error { return context.Cause(h.ctx) }

// OnEnd calls f with the cause once it is not held any more, unless stop comes first.
func (h *Held) OnEnd(f func(cause error)) (stop func() bool) {
	return context.AfterFunc(h.ctx, func() { f(h.Cause()) })
}

// Drop stops keeping it. The first cause stands.
func (h *Held) Drop(cause error) {
	h.cancel(cause)
	h.mu.Lock()
	if h.timer != nil { // nil while it is only being handed to the keeper
		h.timer.Stop()
	}
	h.mu.Unlock()
	h.keeper.drop(h)
}

func (h *Held) period() time.Duration { return h.ttl / renewals }

// trust is how long, from now, the holder may rely on a grant that it asked for
// at began: it was given then at the earliest, so it lapses a TTL later at the
// earliest. Both times are monotonic.
func (h *Held) trust(began time.Time) time.Duration {
	return began.Add(h.ttl - h.ttl/margin).Sub(hlc.System.Now())
}

func (h *Held) dueAt() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.due
}

// renewed: what has ended meanwhile stays ended.
func (h *Held) renewed(began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.due = began.Add(h.period())
	if h.ctx.Err() == nil && h.timer != nil {
		h.timer.Reset(h.trust(began))
	}
}

func (h *Held) again() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.due = hlc.System.Now().Add(h.period() / retries)
}
