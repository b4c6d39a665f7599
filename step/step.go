// Package step runs an effect once for each key, and gives every caller the value
// that was recorded.
//
//	charge, err := step.Do(ctx, db, step.Key{Execution: orderID, Label: "charge", Input: amount},
//		func(ctx context.Context) (Charge, error) { return bank.Charge(ctx, amount) })
//
// The first caller claims the key and runs the effect; callers beside it wait for
// the value, and callers after it read it. Where the effect fails the claim is
// released, and the next caller runs it.
//
// INVARIANT I5: a key has at most one recorded value, and it never changes while
// the row is kept.
//
// # The value exactly once, the effect at least once
//
// A crash between the effect and its record leaves a claim that lapses with its
// owner, and the next caller runs the effect again. So whatever the effect sends
// out has to carry [IdempotencyKey], which is the same each time; [Transport]
// does that for HTTP. An owner that was stopped for so long that another has
// taken over must not send anything any more: ask [Standing] as the last thing
// before each request, which Transport also does.
//
// Where the effect is a transaction of this library, [DoTx] makes it exactly once:
// the value is recorded by the decision itself.
package step

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/keeper"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Superseded means that another owner has the step now; see journal.Superseded.
type Superseded = journal.Superseded

// Do returns the value of the step that key names. It runs effect where nobody
// has recorded one, and waits for whoever is running it, as long as ctx allows.
//
// effect's context ends with ctx, and when the claim is another's or may be before
// long; Standing and Transport know the step by it. An error of effect is
// returned as it is and releases the claim. *Superseded when another owner has
// taken the step over meanwhile: this call has recorded nothing, and the value
// will be the other's. *TooLarge when the value cannot be recorded. After any
// other error of the record the step may be recorded or not; call Do again.
func Do[T any](ctx context.Context, db *sql.DB, key Key, effect func(ctx context.Context) (T, error), opts ...Option) (T, error) {
	r, err := newRunner(ctx, db, key, opts)
	if err != nil {
		var none T
		return none, err
	}
	return once(ctx, r, effect)
}

func once[T any](ctx context.Context, r *runner, effect func(ctx context.Context) (T, error)) (T, error) {
	return do[T](ctx, r, func(ctx context.Context, c *claim) ([]byte, error) {
		defer c.drop()
		done := false
		defer func() {
			if !done { // it failed, or panicked: the next caller need not wait for the claim to lapse
				c.release(ctx)
			}
		}()
		v, err := effect(c.under(ctx))
		if err != nil {
			return nil, err
		}
		value, err := r.encode(v)
		if err != nil {
			return nil, err
		}
		done = true
		return value, c.record(ctx, value)
	})
}

// DoTx is Do for an effect that is one transaction: it is begun on db, committed
// when effect has returned, and its decision records the value. Both happen or
// neither does, so the effect takes place exactly once. The transaction is
// journaled however few branches it has. effect neither commits nor rolls back.
//
// A commit that is decided and not finished yet counts: the value is recorded,
// and rhizodat.Track tells the rest. The error of a commit that was refused is
// returned as it is; rhizodat.Retry around DoTx tries a transient one again.
func DoTx[T any](ctx context.Context, db *sql.DB, key Key, effect func(ctx context.Context, tx *sql.Tx) (T, error), opts ...Option) (T, error) {
	r, err := newRunner(ctx, db, key, opts)
	if err != nil {
		var none T
		return none, err
	}
	return do[T](ctx, r, func(ctx context.Context, c *claim) ([]byte, error) {
		defer c.drop()
		under := c.under(ctx)
		rec := journal.StepRecord{Key: c.key, Token: c.token}
		tx, err := db.BeginTx(journal.UnderStep(under, &rec), r.txOptions)
		if err != nil {
			c.release(ctx)
			return nil, err
		}
		decided := false
		defer func() {
			if !decided {
				_ = tx.Rollback()
				c.release(ctx)
			}
		}()
		v, err := effect(under, tx)
		if err != nil {
			return nil, err
		}
		if rec.Value, err = r.encode(v); err != nil {
			return nil, err
		}
		decided = true
		return rec.Value, c.decided(ctx, tx.Commit())
	})
}

// runner is what one call needs.
type runner struct {
	journal journal.Journal
	steps   journal.Steps
	key     journal.StepKey
	settings
}

func newRunner(ctx context.Context, db *sql.DB, key Key, opts []Option) (*runner, error) {
	k, s, err := prepare(key, opts)
	if err != nil {
		return nil, err
	}
	j, err := journal.Of(ctx, db)
	if err != nil {
		return nil, err
	}
	return open(ctx, j, k, s)
}

func open(ctx context.Context, j journal.Journal, key journal.StepKey, s settings) (*runner, error) {
	keeps, ok := j.(journal.Conditional)
	if !ok {
		return nil, errNoSteps
	}
	steps, err := keeps.Steps(ctx)
	if err != nil {
		return nil, err
	}
	return &runner{journal: j, steps: steps, key: key, settings: s}, nil
}

var errNoSteps = errors.New("rhizodat: run step: this journal keeps no steps")

// do reads the value, or runs the step under a claim, whichever comes first.
// Everybody gets what was recorded, its owner too.
func do[T any](ctx context.Context, r *runner, run func(context.Context, *claim) ([]byte, error)) (v T, err error) {
	var value []byte
	for delay := firstDelay; ; delay = min(2*delay, lastDelay) {
		stands, err := r.steps.Get(ctx, r.key)
		free := errors.Is(err, journal.ErrNotFound)
		if err != nil && !free {
			return v, err
		}
		if !free && stands.Recorded {
			value = stands.Value
			break
		}
		if free || stands.Lapsed {
			c, err := r.claim(ctx, stands.Token)
			if err != nil {
				return v, err
			}
			if c != nil {
				if value, err = run(ctx, c); err != nil {
					return v, err
				}
				break
			}
			delay = firstDelay // somebody was faster: it may not take long
		}
		if err := hlc.System.Sleep(ctx, jitter(delay)); err != nil {
			return v, err
		}
	}
	return v, r.decode(value, &v)
}

// The delays between two looks at a step that another runs.
const (
	firstDelay = 10 * time.Millisecond
	lastDelay  = time.Second
)

// claim makes the step this caller's: where it is free, or by taking over the
// claim it names. It is nil where somebody else was faster.
func (r *runner) claim(ctx context.Context, replaces string) (*claim, error) {
	q := journal.StepRequest{Key: r.key, Holder: r.holder, Token: rand.Text(), TTL: r.ttl, Replaces: replaces}
	began := hlc.System.Now()
	_, answer, err := r.steps.Claim(ctx, q)
	if answer == journal.AnswerUnknown {
		answer, err = r.reread(ctx, q.Token, err)
	}
	switch answer {
	case journal.AnswerLost:
		return nil, nil
	case journal.AnswerUnknown:
		return nil, err
	case journal.AnswerWon:
	}
	return &claim{
		steps: r.steps, key: r.key, token: q.Token,
		held: keeper.Step(ctx, r.journal, journal.StepRenewal{Key: r.key, Token: q.Token, TTL: r.ttl}, began, &Superseded{Key: r.key}),
	}, nil
}

// reread finds out about a claim whose reply was lost: the token that was sent
// is in the row, or it proves nothing. A claim that lands yet is nobody's, and
// lapses. The end of the caller's context may be what lost the reply.
func (r *runner) reread(ctx context.Context, token string, lost error) (journal.Answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.ttl/3)
	defer cancel()
	stands, err := r.steps.Get(ctx, r.key)
	if err == nil && stands.Token == token && !stands.Lapsed {
		return journal.AnswerWon, nil
	}
	if errors.Is(err, journal.ErrNotFound) {
		err = nil
	}
	return journal.AnswerUnknown, errors.Join(lost, err)
}
