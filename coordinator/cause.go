package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// abortedOutcome says why a unit was aborted and whether it is worth re-running.
// That it was is proved, also where the cause is an answer that was lost.
func (c *Coordinator) abortedOutcome(ctx context.Context, u *Unit, cause error) Outcome {
	cause = known(cause)
	aborted := &Aborted{DatTxn: u.Txn, Kind: kind(ctx, cause), Err: cause}
	if e, ok := errors.AsType[*partError](cause); ok {
		aborted.Store, aborted.Err = e.part.Name, e.err
		if _, told := errors.AsType[*StoreFull](cause); aborted.Kind == branches.StoreFull && !told {
			aborted.Err = &StoreFull{Store: e.part.Name, Free: -1, err: e.err}
		}
	}
	return Outcome{DatTxn: u.Txn, DatTxTime: u.txTime, Verdict: VerdictAborted, Journaled: u.recorded, Err: aborted}
}

// kind classifies the cause of an abort. With the caller gone there is nobody
// to try again for, and what its end has cut short looks transient.
func kind(ctx context.Context, cause error) branches.Kind {
	k := kindOf(cause)
	if k == branches.Transient && ctx.Err() != nil {
		return branches.Permanent
	}
	return k
}

// kindOf asks whoever cause came from. A journal that did not answer before the
// decision, or that recovery has been to first, is worth another try (presumed
// abort); one that lacks its tables or has no room for the record is not.
func kindOf(cause error) branches.Kind {
	var own interface{ Kind() branches.Kind }
	var fromStore *partError
	var fromJournal *journalError
	switch {
	case errors.As(cause, &fromStore):
		return branches.Classify(fromStore.part.Store, fromStore.err)
	case errors.As(cause, &own):
		return own.Kind()
	case errors.Is(cause, branches.ErrNotInstalled), errors.Is(cause, journal.ErrFull):
		return branches.Permanent
	case errors.As(cause, &fromJournal):
		return branches.Transient
	}
	return branches.Permanent
}

// partError is an error with the store it came from.
type partError struct {
	part *Part
	err  error
}

func (e *partError) Error() string { return e.err.Error() }
func (e *partError) Unwrap() error { return e.err }

// partOf finds the part an error came from; nil for the journal's or our own.
func partOf(err error) *Part {
	if e, ok := errors.AsType[*partError](err); ok {
		return e.part
	}
	return nil
}

// journalError marks what came from the journal.
type journalError struct{ err error }

func (e *journalError) Error() string { return fmt.Sprintf("journal: %v", e.err) }
func (e *journalError) Unwrap() error { return e.err }

// journalAnswer marks err as the journal's, and remembers a refusal.
func (c *Coordinator) journalAnswer(u *Unit, err error) error {
	if err == nil {
		return nil
	}
	_, refused := errors.AsType[*journal.Conflict](err)
	_, fenced := errors.AsType[*journal.Fenced](err)
	_, superseded := errors.AsType[*journal.Superseded](err)
	u.conflict = u.conflict || refused || fenced || superseded
	return &journalError{err}
}
