package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// RunEvery runs f at once and then every interval, each time under the lease of
// that name, until ctx ends or f fails. Where another holds the lease, or has
// taken it meanwhile, the turn is skipped and the next one comes at its time:
// there is no queue and no retry in between. Turns that a long run has missed
// are left out.
//
// f's context ends with ctx and with the lease, and carries the lease: what f
// begins with it commits under the fence. RunEvery returns ctx's error, f's, or
// an error of the set-up that no later turn can mend. An error of the journal
// that may pass is told to OnSkip.
func RunEvery(ctx context.Context, db *sql.DB, name string, interval time.Duration, f func(ctx context.Context) error, opts ...Option) error {
	s, err := settingsOf(name, opts)
	if err != nil {
		return err
	}
	j, err := journal.Of(ctx, db)
	if err != nil {
		return err
	}
	return repeat(ctx, j, s, interval, f)
}

func repeat(ctx context.Context, j journal.Journal, s settings, interval time.Duration, f func(context.Context) error) error {
	if interval <= 0 {
		return fmt.Errorf("rhizodat: run every %s: the interval must be positive", interval)
	}
	next := hlc.System.Now()
	for {
		if err := turn(ctx, j, s, f); err != nil {
			return err
		}
		next = next.Add(interval)
		if missed := hlc.System.Now().Sub(next); missed > 0 {
			next = next.Add(missed.Truncate(interval) + interval)
		}
		if err := hlc.System.Sleep(ctx, next.Sub(hlc.System.Now())); err != nil {
			return err
		}
	}
}

// turn is one run, or none.
func turn(ctx context.Context, j journal.Journal, s settings, f func(context.Context) error) error {
	l, err := acquire(ctx, j, s)
	if err == nil {
		err = l.run(ctx, f)
	} else if _, held := errors.AsType[*Held](err); !held && !passes(j, err) {
		return err
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	var skipped *skipError
	switch {
	case err == nil:
		return nil
	case l != nil && !errors.As(err, &skipped):
		return err
	}
	if s.skipped != nil {
		s.skipped(err)
	}
	return nil
}

// run runs f under l. An error of f that comes from the loss of the lease is no
// failure of the pipeline: another runs it.
func (l *Lease) run(ctx context.Context, f func(context.Context) error) error {
	under, cancel := context.WithCancelCause(NewContext(ctx, l))
	defer cancel(nil)
	unhook := l.held.OnEnd(cancel)
	defer unhook()
	defer l.held.Drop(ErrReleased) // also when f panics: the lease must not be renewed for ever
	err := f(under)
	lost := l.held.Cause()
	if released := l.Release(ctx); err == nil && lost == nil && released != nil {
		return &skipError{released} // the run is done; the lease lapses by itself
	}
	var fenced *Fenced
	switch {
	case err == nil:
		return nil
	case lost != nil:
		return &skipError{errors.Join(lost, err)}
	case errors.As(err, &fenced) && fenced.Lease == l.Name():
		return &skipError{err}
	}
	return err
}

// skipError is why a turn counts as skipped though it was begun.
type skipError struct{ err error }

func (e *skipError) Error() string { return e.err.Error() }
func (e *skipError) Unwrap() error { return e.err }

// passes reports whether a later turn may succeed where this one has met err.
func passes(j journal.Journal, err error) bool {
	c, ok := j.(branches.Classifier)
	return ok && c.Classify(err) == branches.Transient
}
