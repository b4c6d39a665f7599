package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Resolution is a person's decision about a branch that recovery cannot end.
type Resolution struct {
	Txn    branches.TxnID
	Store  string
	As     journal.Outcome // OutcomeApplied or OutcomeSkipped
	Reason string
	Who    string
}

// Resolved is what Resolve found and did.
type Resolved struct {
	State journal.State `json:"state"` // of the record, afterwards
	// Absent: there was no record. ABORTED was inserted, unless somebody else
	// inserted one in between: State says what came back.
	Absent  bool     `json:"absent"`
	Waiting []string `json:"waiting,omitempty"` // stores that are not ended yet
}

// The refusals of Resolve.
var (
	// ErrUndecided: recovery ends the unit by itself.
	ErrUndecided = errors.New("rhizodat: resolve branch: the unit is not decided yet: recovery aborts it by itself once it is stale")
	// ErrNoBranch: the record has no branch in that store.
	ErrNoBranch = errors.New("rhizodat: resolve branch: the record has no branch in this store")
	// ErrResolved: a person has resolved the branch already, the other way.
	ErrResolved = errors.New("rhizodat: resolve branch: it was resolved the other way before")
	// ErrProof: the store proves the opposite of what was said.
	ErrProof = errors.New("rhizodat: resolve branch: the store proves the opposite")
	// ErrNoRecord: a unit without a record cannot be called applied.
	ErrNoRecord = errors.New("rhizodat: resolve branch: the journal has no record of this unit, so it cannot be called applied; as skipped, it is forbidden for good")
	// ErrIncomplete: not everything was said that the record has to keep.
	ErrIncomplete = errors.New("rhizodat: resolve branch: say applied or skipped, who decides, and why")
)

// Resolve keeps a person's decision in the record of a decided or aborted unit,
// and makes the record DONE when nothing else is left of it. A unit without a
// record is forbidden: ABORTED is inserted, so that nobody can commit it any
// more, and the sweep takes its branch back.
func (w *Worker) Resolve(ctx context.Context, r Resolution) (Resolved, error) {
	if !r.As.Settled() || r.Who == "" || strings.TrimSpace(r.Reason) == "" {
		return Resolved{}, ErrIncomplete
	}
	session, err := w.cfg.Journal.Session(ctx)
	if err != nil {
		return Resolved{}, err
	}
	rec, err := session.Read(ctx, r.Txn)
	if errors.Is(err, journal.ErrNotFound) {
		defer session.Release()
		if r.As == journal.OutcomeApplied {
			return Resolved{Absent: true}, ErrNoRecord
		}
		state, err := session.Abort(ctx, r.Txn, journal.Forced)
		if err == nil {
			w.log.WarnContext(ctx, "rhizodat: unit without a record forbidden by a person", "dat_txn", r.Txn, "who", r.Who, "reason", r.Reason)
		}
		return Resolved{State: state, Absent: true}, err
	}
	session.Release()
	if err != nil {
		return Resolved{}, err
	}
	if err := w.mayResolve(ctx, rec, r); err != nil {
		return Resolved{State: rec.State}, err
	}
	if err := w.keepDecision(ctx, r); err != nil {
		return Resolved{State: rec.State}, err
	}
	w.log.WarnContext(ctx, "rhizodat: branch resolved by a person", "dat_txn", r.Txn, "store", r.Store, "as", r.As, "who", r.Who, "reason", r.Reason)
	return w.endResolved(ctx, r.Txn)
}

// mayResolve refuses what the journal or the store contradicts.
func (w *Worker) mayResolve(ctx context.Context, rec journal.Record, r Resolution) error {
	i := branchIn(rec, r.Store)
	switch {
	case i < 0:
		return fmt.Errorf("%w: it has %s", ErrNoBranch, strings.Join(storeNames(rec), ", "))
	case !rec.State.Final() && !rec.State.Decided():
		return ErrUndecided
	case rec.Branches[i].Outcome.Settled() && rec.Branches[i].Outcome != r.As:
		return ErrResolved
	}
	store := w.cfg.Stores[r.Store]
	if store == nil || r.As != journal.OutcomeSkipped || !rec.State.Decided() {
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, w.cfg.StoreTimeout)
	defer cancel()
	// A store that does not answer is no reason against it: it may be why the
	// person gives the branch up.
	if fate, err := store.Applied(limit, r.Txn); err == nil && fate == branches.FateApplied {
		return fmt.Errorf("%w: its marker says that the branch is committed: resolve it as applied", ErrProof)
	}
	return nil
}

// keepDecision writes outcome, reason and remark into the record, forced.
func (w *Worker) keepDecision(ctx context.Context, r Resolution) error {
	at := w.wall.Now().UnixMilli()
	return w.annotate(ctx, r.Txn, func(rec *journal.Record) bool {
		i := branchIn(*rec, r.Store)
		if i < 0 || rec.Branches[i].Outcome == r.As {
			return false
		}
		was := orDefault(plain(rec.Branches[i].Reason, rec.Branches[i].GID), "no answer")
		rec.Branches[i].Outcome = r.As
		rec.Branches[i].Reason = r.Who + ": " + r.Reason
		rec.Note.Remarks = append(slices.Clone(rec.Note.Remarks), journal.Remark{
			AtMS: at, Who: r.Who, Text: fmt.Sprintf("store %s resolved as %s: %s (before: %s)", r.Store, r.As, r.Reason, was),
		})
		return true
	})
}

// endResolved finishes what a person's decision has made finishable.
func (w *Worker) endResolved(ctx context.Context, txn branches.TxnID) (Resolved, error) {
	stores, err := w.sound(ctx)
	if err != nil {
		return Resolved{State: journal.StateCommitted}, err
	}
	session, err := w.cfg.Journal.Session(ctx)
	if err != nil {
		return Resolved{}, err
	}
	rec, err := session.Read(ctx, txn)
	session.Release()
	if err != nil || rec.State != journal.StateCommitted {
		return Resolved{State: rec.State}, err
	}
	if err := w.cfg.Journal.Harden(ctx); err != nil { // R3
		return Resolved{State: rec.State}, err
	}
	progress, err := w.forward(ctx, rec, func(name string) branches.Store {
		if s, ok := stores[name]; ok {
			return s
		}
		return nil
	})
	resolved := Resolved{State: progress.State}
	if progress.State == journal.StateCommitted {
		resolved.Waiting = waiting(rec, progress)
	}
	return resolved, err
}

func branchIn(rec journal.Record, store string) int {
	return slices.IndexFunc(rec.Branches, func(b journal.Branch) bool { return b.Store == store })
}

func storeNames(rec journal.Record) []string {
	names := make([]string, len(rec.Branches))
	for i, b := range rec.Branches {
		names[i] = b.Store
	}
	return names
}
