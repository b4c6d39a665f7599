package branchtest

import (
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
)

func onePhaseCommit(r *Run) {
	session := r.Session(r.Store())
	u := r.Begin(session).Wrote()
	u.Rows(0, "before Commit")
	u.Committed().Rows(1, "after Commit")
	if !session.Usable() {
		r.Errorf("session is not usable after Commit")
	}
}

// A unit of several branches, one of which wrote: S3 has come before anyone
// knew that one phase is enough.
func stagedCommit(r *Run) {
	u := r.Begin(r.Session(r.Store())).Wrote().Staged()
	r.Fate(r.Store(), u.Txn, branches.FateAbsent, "before Commit")
	r.Must("commit", u.Commit(r.Ctx))
	u.Rows(1, "after Commit")
	r.Fate(r.Store(), u.Txn, branches.FateApplied, "after Commit")
}

func rollback(r *Run) {
	store := r.Store()
	session := r.Session(store)
	u := r.Begin(session).Wrote()
	r.Must("rollback", u.Rollback(r.Ctx))
	if !session.Usable() {
		r.Errorf("session is not usable after Rollback")
	}
	again := r.Begin(session).Wrote().Committed()
	u.Rows(0, "after Rollback")
	again.Rows(1, "of the next unit")
	r.Fate(store, u.Txn, branches.FateAbsent, "after Rollback")
}

func closeEndsBranch(r *Run) {
	store := r.Store()
	session, err := store.Connect(r.Ctx)
	r.Must("connect", err)
	if session == nil {
		r.Fatalf("connect: no session and no error")
	}
	u := r.Begin(session).Wrote().Staged()
	r.Must("close session", session.Close())
	r.Fate(store, u.Txn, branches.FateAbsent, "after Close")
	if fate, err := store.Settle(r.Ctx, u.Txn); err != nil || fate != branches.FateNever {
		r.Errorf("settle after Close = %s, %v, want never", fate, err)
	}
	u.Rows(0, "after Close")
}

func invisible(r *Run) {
	store := r.Store()
	u := r.Begin(r.Session(store)).Wrote()
	u.Rows(0, "before Stage")
	u.Staged()
	u.Rows(0, "after Stage")
	if u.staged.Vote == branches.VotePrepare {
		r.Must("prepare", u.Prepare(r.Ctx, u.GID))
		u.Rows(0, "after Prepare")
	}
	r.Must("finish", store.Finish(r.Ctx, u.Ref()))
	u.Rows(1, "after Finish")
}

func onePhaseInvisible(r *Run) {
	u := r.Begin(r.Session(r.Store())).Wrote()
	r.Must("stage", u.try(true))
	u.Rows(0, "before Commit")
	r.Must("commit", u.Commit(r.Ctx))
	u.Rows(1, "after Commit")
}

func failedStatementDooms(r *Run) {
	r.Needs(r.Bad != "", "harness has no Bad")
	session := r.Session(r.Store())
	u := r.Begin(session).Wrote()
	if err := u.Doomed(); err != nil {
		r.Errorf("doomed before anything failed: %w", err)
	}
	_, failed := session.Exec(r.Ctx, r.Bad, nil)
	r.Failed("bad statement", failed)
	doom := u.Doomed()
	if doom == nil || !errors.Is(doom, failed) {
		r.Errorf("Doomed = %v, want the statement's error %v in it", doom, failed)
	}
	if err := u.try(false); err == nil {
		r.Errorf("Stage of a doomed branch = nil")
	}
	r.Must("rollback", u.Rollback(r.Ctx))
	u.Rows(0, "of a doomed branch")
}

func commitOfDoomed(r *Run) {
	r.Needs(r.Bad != "", "harness has no Bad")
	session := r.Session(r.Store())
	u := r.Begin(session).Wrote()
	r.Must("stage", u.try(true))
	_, failed := session.Exec(r.Ctx, r.Bad, nil)
	r.Failed("bad statement", failed)
	r.Failed("commit", u.Commit(r.Ctx))
	u.Rows(0, "of a doomed branch")
}

func kinds(r *Run) {
	r.Needs(r.Bad != "" && r.Constrained, "harness has no Bad, or is not Constrained")
	store := r.Store()
	session := r.Session(store)
	u := r.Begin(session)
	_, err := session.Exec(r.Ctx, r.Bad, nil)
	r.Failed("bad statement", err)
	if kind := branches.Classify(store, err); kind != branches.Permanent {
		r.Errorf("bad statement is %s, want permanent", kind)
	}
	r.Must("rollback", u.Rollback(r.Ctx))
	first := r.Begin(session).Wrote().Committed()
	second := r.Begin(session)
	_, err = session.Exec(r.Ctx, r.Write(first.Key), nil)
	if err == nil {
		err = second.try(true)
	}
	if err == nil {
		err = second.Commit(r.Ctx)
	}
	r.Failed("second row with one key", err)
	if kind := branches.Classify(store, err); kind != branches.Constraint {
		r.Errorf("second row with one key is %s, want constraint", kind)
	}
	first.Rows(1, "with one key")
}
