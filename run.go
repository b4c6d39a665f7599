package rhizodat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Policy says how often and how long a unit is run again after a transient
// failure. The zero Policy is a good one.
type Policy struct {
	Attempts int           // at most; 0 is 10
	Deadline time.Duration // for all attempts together; 0 is 30s
	Base     time.Duration // the first backoff's bound; 0 is 10ms
	Max      time.Duration // every backoff's bound; 0 is 1s
	// Options of the transactions that Run begins.
	Options *sql.TxOptions
	// Validate runs last before Commit: invariants and references across
	// stores. Its error aborts the unit as Invalid and is never retried.
	Validate func(ctx context.Context, tx *sql.Tx) error
	// OnRetry is told of each failed attempt that is followed by another.
	OnRetry func(ctx context.Context, attempt int, err error)
	// Wall is the clock of the backoff; nil is the system's.
	Wall hlc.Wall
}

func (p Policy) filled() Policy {
	if p.Attempts == 0 {
		p.Attempts = 10
	}
	if p.Deadline == 0 {
		p.Deadline = 30 * time.Second
	}
	if p.Base == 0 {
		p.Base = 10 * time.Millisecond
	}
	if p.Max == 0 {
		p.Max = time.Second
	}
	if p.Wall == nil {
		p.Wall = hlc.System
	}
	return p
}

// backoff is the wait before attempt n+1: full jitter, evenly from [0, bound),
// the bound doubling up to Max. Without jitter writers that failed at the same
// moment would fail at the same moment again.
func (p Policy) backoff(n int) time.Duration {
	bound := p.Max
	if n < 31 && p.Base<<(n-1) < p.Max && p.Base<<(n-1) > 0 {
		bound = p.Base << (n - 1)
	}
	return rand.N(bound) //nolint:gosec // jitter, not a secret
}

// Run runs f as one unit, and the whole of it again, with a new dat_txn and
// dat_tx_time, while it fails transiently: f must have no effect outside its
// transaction. f must not commit or roll back.
//
// A nil error means committed; Outcome.Pending then names stores that recovery
// still finishes. After the decision nothing is run again: *InDoubt and
// *Heuristic are returned as they are.
func Run(ctx context.Context, db *sql.DB, policy Policy, f func(ctx context.Context, tx *sql.Tx) error) (Outcome, error) {
	var out Outcome
	err := policy.attempts(ctx, func(ctx context.Context, h *Handle) (err error) {
		out, err = attempt(ctx, db, policy, h, f)
		return err
	})
	return out, err
}

// Retry runs f again under the same rules, for code that begins and commits its
// own transactions (GORM, bun, ent). f must begin them with the context it is
// given: that is how its store's errors are told apart.
func Retry(ctx context.Context, policy Policy, f func(ctx context.Context) error) error {
	return policy.attempts(ctx, func(ctx context.Context, h *Handle) error {
		err := f(ctx)
		if IsCommitted(err) {
			return nil
		}
		return mapDone(ctx, h, err)
	})
}

// attempts calls one until it succeeds, fails for good, or the policy ends.
func (p Policy) attempts(ctx context.Context, one func(context.Context, *Handle) error) error {
	p = p.filled()
	limit, cancel := context.WithTimeout(ctx, p.Deadline)
	defer cancel()
	for n := 1; ; n++ {
		tracked, h := Track(limit)
		err := one(tracked, h)
		if err == nil || !h.retryable(err) {
			return err
		}
		if limit.Err() != nil || n >= p.Attempts {
			return fmt.Errorf("rhizodat: run unit: given up after %d attempts: %w", n, err)
		}
		if p.OnRetry != nil {
			p.OnRetry(ctx, n, err)
		}
		if p.Wall.Sleep(limit, p.backoff(n)) != nil {
			return fmt.Errorf("rhizodat: run unit: given up after %d attempts: %w", n, err)
		}
	}
}

// retryable reports whether the unit behind h took no effect and may succeed
// next time. A unit whose end is unknown, or decided, is never run again.
func (h *Handle) retryable(err error) bool {
	switch h.Outcome().Verdict {
	case VerdictCommitted, VerdictPending, VerdictInDoubt, VerdictHeuristic:
		return false
	case VerdictNone, VerdictAborted:
	}
	return IsRetryable(err) || h.kindOf(err) == branches.Transient
}

// attempt is one run of f in one transaction.
func attempt(ctx context.Context, db *sql.DB, p Policy, h *Handle, f func(context.Context, *sql.Tx) error) (Outcome, error) {
	tx, err := db.BeginTx(ctx, p.Options)
	if err != nil {
		return h.Outcome(), err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it answers ErrTxDone
	if err := f(ctx, tx); err != nil {
		_ = tx.Rollback()
		return h.rolledBack(), err
	}
	if p.Validate != nil {
		if err := p.Validate(ctx, tx); err != nil {
			_ = tx.Rollback()
			if h.kindOf(err) == branches.Transient {
				return h.rolledBack(), err // the store failed, not the rule
			}
			return h.rolledBack(), &Aborted{DatTxn: h.Outcome().DatTxn, Kind: Invalid, Err: err}
		}
	}
	err = tx.Commit()
	if IsCommitted(err) {
		return h.Outcome(), nil
	}
	return h.rolledBack(), mapDone(ctx, h, err)
}

// rolledBack is the outcome of a unit that has ended or was never asked to
// commit. When the context ended, database/sql rolls back in a goroutine of its
// own, which may still run: the unit is aborted all the same.
func (h *Handle) rolledBack() Outcome {
	out := h.Outcome()
	if out.Verdict == VerdictNone && !out.DatTxn.IsZero() {
		out.Verdict = VerdictAborted
	}
	return out
}

// mapDone puts the context's error in the place of database/sql's ErrTxDone,
// where that is only how it says that our rollback ran first.
func mapDone(ctx context.Context, h *Handle, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return &Aborted{DatTxn: h.Outcome().DatTxn, Kind: Permanent, Err: context.Cause(ctx)}
	}
	return err
}
