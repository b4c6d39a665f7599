package branchtest

import (
	"context"

	"github.com/rhizodat/rhizodat-go/branches"
)

func markerFates(r *Run) {
	store := r.Store()
	u := r.Begin(r.Session(store)).Wrote()
	r.Fate(store, u.Txn, branches.FateAbsent, "before Commit")
	u.Committed()
	r.Fate(store, u.Txn, branches.FateApplied, "after Commit")
	r.Fate(r.Store(), u.Txn, branches.FateApplied, "seen by another process")
}

func markerOfPrepared(r *Run) {
	u := r.orphan()
	store := r.Store()
	r.Fate(store, u.Txn, branches.FateAbsent, "before Finish")
	r.Must("finish", store.Finish(r.Ctx, u.Ref()))
	r.Fate(store, u.Txn, branches.FateApplied, "after Finish")
}

// A unit that comes twice (a proxy that repeats a request, two stores over one
// place) is refused, not merged.
func markerTwice(r *Run) {
	store := r.Store()
	first := r.Begin(r.Session(store)).Wrote().Committed()
	second := r.BeginAs(r.Session(store), first.Txn).Wrote()
	err := second.try(true)
	if err == nil {
		err = second.Commit(r.Ctx)
	}
	r.Failed("second commit under one dat_txn", err)
	second.Rows(0, "of the second commit")
	first.Rows(1, "of the first commit")
}

func settleAfterCommit(r *Run) {
	u := r.Begin(r.Session(r.Store())).Wrote()
	store := r.Store()
	r.Fate(store, u.Txn, branches.FateAbsent, "before Commit")
	u.Committed()
	r.settled(store, u.Txn, branches.FateApplied)
	r.Fate(store, u.Txn, branches.FateApplied, "after Settle")
	u.Rows(1, "after Settle")
}

func (r *Run) settled(store branches.Store, txn branches.TxnID, want branches.Fate) {
	fate, err := store.Settle(r.Ctx, txn)
	r.Must("settle", err)
	if fate != want {
		r.Errorf("settle = %s, want %s", fate, want)
	}
}

func settleWithoutCommit(r *Run) {
	store := r.Store()
	u := r.never()
	r.Fate(store, u.Txn, branches.FateAbsent, "before Settle")
	r.settled(store, u.Txn, branches.FateNever)
	r.Fate(r.Store(), u.Txn, branches.FateNever, "after Settle")
}

// The answer of a commit was lost, and its backend is still at work: nothing
// is known until it is done. Where a branch is not at its store before Commit is
// sent there is nothing to wait for; but then it must not commit any more.
func settleWhileRunning(r *Run) {
	u := r.Begin(r.Session(r.Store())).Wrote().Staged()
	answer := r.settling(u.Txn)
	err := u.Commit(r.Ctx)
	fate := <-answer
	if fate == branches.FateNever {
		if err == nil {
			r.Errorf("commit of what was settled as never = nil")
		}
		u.Rows(0, "after Settle")
		return
	}
	r.Must("commit", err)
	if fate != branches.FateApplied {
		r.Errorf("settle = %s, want applied", fate)
	}
	u.Rows(1, "after Settle")
}

func settleBeforeRollback(r *Run) {
	u := r.Begin(r.Session(r.Store())).Wrote().Staged()
	answer := r.settling(u.Txn)
	r.Must("rollback", u.Rollback(r.Ctx))
	if fate := <-answer; fate != branches.FateNever {
		r.Errorf("settle = %s, want never", fate)
	}
	u.Rows(0, "after Settle")
	r.same(u)
}

// settling asks until it is answered, as a coordinator does. An answer that
// comes before the commit is sent must not be that it was applied.
func (r *Run) settling(txn branches.TxnID) <-chan branches.Fate {
	store := r.Store()
	answer := make(chan branches.Fate, 1)
	go func() {
		var fate branches.Fate
		// An error proves nothing; a store that cannot wait answers with one.
		_ = insist(r.Ctx, func() (err error) {
			fate, err = store.Settle(r.Ctx, txn)
			return err
		})
		answer <- fate
	}()
	waited, cancel := context.WithTimeout(r.Ctx, moment)
	defer cancel()
	select {
	case fate := <-answer:
		if fate == branches.FateApplied {
			r.Fatalf("settle = %s before the commit was sent", fate)
		}
		answer <- fate
	case <-waited.Done():
	}
	return answer
}

// A commit that arrives after it was settled as "never" must not take effect.
func tombstoneForbids(r *Run) {
	store := r.Store()
	for _, onePhase := range []bool{true, false} {
		u := r.Begin(r.Session(store)).Wrote()
		r.settled(store, u.Txn, branches.FateNever)
		err := u.try(onePhase)
		if err == nil && u.staged.Vote == branches.VotePrepare && !onePhase {
			err = u.Prepare(r.Ctx, u.GID)
		} else if err == nil {
			err = u.Commit(r.Ctx)
		}
		r.Failed("commit against a tombstone", err)
		u.Rows(0, "against a tombstone")
		r.Fate(store, u.Txn, branches.FateNever, "after the late commit")
	}
}

func settleTwice(r *Run) {
	one, other := r.Store(), r.Store()
	u := r.never()
	r.Fate(one, u.Txn, branches.FateAbsent, "before Settle")
	var fates [2]branches.Fate
	r.Must("settle", both(
		func() (err error) { fates[0], err = one.Settle(r.Ctx, u.Txn); return err },
		func() (err error) { fates[1], err = other.Settle(r.Ctx, u.Txn); return err },
	))
	if fates[0] != branches.FateNever || fates[1] != branches.FateNever {
		r.Errorf("two settlers at once: %s and %s, want never", fates[0], fates[1])
	}
}
