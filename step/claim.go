package step

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/keeper"
	"github.com/rhizodat/rhizodat-go/journal"
)

// ErrLapsed is why an owner may send nothing any more: its claim could not be
// renewed in time, and others may take the step over.
var ErrLapsed = keeper.ErrLapsed

var (
	errEnded  = errors.New("rhizodat: run step: it is over")
	errNoStep = errors.New("rhizodat: check step: the context is not that of a step's effect")
)

// claim is a step that is this caller's. It belongs to one goroutine, but for
// standing.
type claim struct {
	steps journal.Steps
	key   journal.StepKey
	token string
	held  *keeper.Held
}

type claimKey struct{}

// under is the effect's context. It ends with ctx and with the claim.
func (c *claim) under(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, claimKey{}, c))
	c.held.OnEnd(cancel)
	return ctx
}

// drop ends the effect's context and stops the renewals.
func (c *claim) drop() { c.held.Drop(errEnded) }

// Standing says whether the step whose effect runs in ctx is still this
// caller's: nil, or *Superseded, or ErrLapsed. Ask it last before each request
// that goes out: whoever does not stand any more sends nothing. An error of the
// journal is no permission either.
func Standing(ctx context.Context) error {
	c, ok := ctx.Value(claimKey{}).(*claim)
	if !ok {
		return errNoStep
	}
	return c.standing(ctx)
}

func (c *claim) standing(ctx context.Context) error {
	if over := c.held.Cause(); over != nil {
		return over
	}
	stands, err := c.steps.Get(ctx, c.key)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return &Superseded{Key: c.key}
	case err != nil:
		return err
	case stands.Token != c.token || stands.Recorded:
		return &Superseded{Key: c.key}
	case stands.Lapsed:
		return ErrLapsed
	}
	return nil
}

// recordWithin bounds the record of an effect that is done: its caller's context
// may have ended, and the value must not be lost for that.
const recordWithin = 10 * time.Second

// record records the value, and insists while the answer is not known: sent
// again, the same record changes nothing.
func (c *claim) record(ctx context.Context, value []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	for delay := firstDelay; ; delay = min(2*delay, lastDelay) {
		answer, err := c.steps.Record(ctx, journal.StepRecord{Key: c.key, Token: c.token, Value: value})
		switch answer {
		case journal.AnswerWon:
			return nil
		case journal.AnswerLost:
			return c.settled(ctx, &Superseded{Key: c.key}) // or it is the second delivery of one that won
		case journal.AnswerUnknown:
		}
		if hlc.System.Sleep(ctx, delay) != nil {
			return err
		}
	}
}

// settled is nil where the recorded value is this claim's.
func (c *claim) settled(ctx context.Context, otherwise error) error {
	stands, err := c.steps.Get(ctx, c.key)
	switch {
	case err == nil && stands.Recorded && stands.Token == c.token:
		return nil
	case err != nil && !errors.Is(err, journal.ErrNotFound):
		return errors.Join(otherwise, err)
	}
	return otherwise
}

// release gives the step back, unless it is recorded, also for a caller whose
// context has ended. Where that fails the claim lapses by itself.
func (c *claim) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	_, _ = c.steps.Release(ctx, c.key, c.token)
}

// decided turns the answer to a Commit that was to record the value into the
// step's. Whatever Commit could not tell, the release does: it waits for a
// decision that is under way, and once it has applied none can record any more.
func (c *claim) decided(ctx context.Context, commit error) error {
	if commit == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	answer, err := c.steps.Release(ctx, c.key, c.token)
	switch {
	case answer == journal.AnswerWon:
		return commit
	case err != nil:
		commit = errors.Join(commit, err)
	}
	return c.settled(ctx, commit)
}

// jitter spreads the looks of many callers that wait for one step.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // jitter, not a secret
}
