package branchtest

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
)

func (r *Run) needsTwoPhase() {
	r.Needs(r.Vote == branches.VotePrepare, "store does not prepare")
}

// orphan is a branch whose process has ended after S5.
func (r *Run) orphan() *Unit {
	store := r.Store()
	session, err := store.Connect(r.Ctx)
	r.Must("connect", err)
	if session == nil {
		r.Fatalf("connect: no session and no error")
	}
	u := r.Begin(session).Wrote().Prepared()
	r.Must("close session", session.Close())
	return u
}

func finishElsewhere(r *Run) {
	u := r.orphan()
	store := r.Store()
	u.Rows(0, "before Finish")
	r.Must("finish", store.Finish(r.Ctx, u.Ref()))
	u.Rows(1, "after Finish")
	r.Fate(store, u.Txn, branches.FateApplied, "after Finish")
}

func finishHere(r *Run) {
	u := r.Begin(r.Session(r.Store())).Wrote().Prepared()
	u.Rows(0, "before Finish")
	r.Must("finish", u.Finish(r.Ctx, u.Ref()))
	u.Rows(1, "after Finish")
	if !u.Session.Usable() {
		r.Errorf("session is not usable after Finish")
	}
}

func finishTwice(r *Run) {
	u := r.orphan()
	store := r.Store()
	u.Rows(0, "before Finish")
	r.Must("finish", store.Finish(r.Ctx, u.Ref()))
	r.Must("second finish", store.Finish(r.Ctx, u.Ref()))
	r.Must("finish by another process", r.Store().Finish(r.Ctx, u.Ref()))
	u.Rows(1, "after three Finishes")
}

func finishAtOnce(r *Run) {
	u := r.orphan()
	one, other := r.Store(), r.Store()
	u.Rows(0, "before Finish")
	r.Must("finish", both(
		func() error { return insist(r.Ctx, func() error { return one.Finish(r.Ctx, u.Ref()) }) },
		func() error { return insist(r.Ctx, func() error { return other.Finish(r.Ctx, u.Ref()) }) },
	))
	u.Rows(1, "after two Finishes at once")
}

// insist calls again, as a coordinator does, what may answer "busy".
func insist(ctx context.Context, call func() error) error {
	for {
		err := call()
		if _, heuristic := errors.AsType[*branches.Heuristic](err); err == nil || heuristic || ctx.Err() != nil {
			return err
		}
	}
}

func finishWithoutContext(r *Run) {
	u := r.orphan()
	store := r.Store()
	ended, cancel := context.WithCancel(r.Ctx)
	cancel()
	err := store.Finish(ended, u.Ref())
	if err == nil {
		r.Errorf("finish under an ended context = nil")
	}
	if _, heuristic := errors.AsType[*branches.Heuristic](err); heuristic {
		r.Errorf("finish under an ended context = %w: it has proved nothing", err)
	}
	r.Must("finish", store.Finish(r.Ctx, u.Ref()))
	u.Rows(1, "after Finish")
}

func abortElsewhere(r *Run) {
	u := r.orphan()
	store := r.Store()
	r.Must("abort", store.Abort(r.Ctx, u.Ref()))
	u.Rows(0, "after Abort")
	r.Fate(store, u.Txn, branches.FateAbsent, "after Abort")
	r.same(u)
}

// same writes a unit's key again: nothing of the aborted one is in the way.
func (r *Run) same(u *Unit) {
	again := r.Begin(r.Session(r.Store()))
	again.Key = u.Key
	again.Wrote().Committed().Rows(1, "written after the abort")
}

func abortTwice(r *Run) {
	u := r.orphan()
	store := r.Store()
	r.Must("abort", store.Abort(r.Ctx, u.Ref()))
	r.Must("second abort", store.Abort(r.Ctx, u.Ref()))
	r.Must("abort by another process", r.Store().Abort(r.Ctx, u.Ref()))
	u.Rows(0, "after three Aborts")
	r.same(u)
}

func abortAtOnce(r *Run) {
	u := r.orphan()
	one, other := r.Store(), r.Store()
	r.Must("abort", both(
		func() error { return insist(r.Ctx, func() error { return one.Abort(r.Ctx, u.Ref()) }) },
		func() error { return insist(r.Ctx, func() error { return other.Abort(r.Ctx, u.Ref()) }) },
	))
	u.Rows(0, "after two Aborts at once")
	r.same(u)
}

// never is a branch that was rolled back before Prepare.
func (r *Run) never() *Unit {
	u := r.Begin(r.Session(r.Store())).Wrote().Staged()
	r.Must("rollback", u.Rollback(r.Ctx))
	return u
}

func abortOfNothing(r *Run) {
	u := r.never()
	r.Must("abort", r.Store().Abort(r.Ctx, u.Ref()))
	u.Rows(0, "after Abort")
	r.same(u)
}

func finishOfNothing(r *Run) {
	r.needsTwoPhase()
	u := r.never()
	r.Heuristic("finish", r.Store().Finish(r.Ctx, u.Ref()), false)
}

func finishAfterAbort(r *Run) {
	r.needsTwoPhase()
	u := r.orphan()
	r.Must("abort", r.Store().Abort(r.Ctx, u.Ref()))
	r.Heuristic("finish", r.Store().Finish(r.Ctx, u.Ref()), false)
	u.Rows(0, "after Abort and Finish")
}

func abortAfterFinish(r *Run) {
	r.needsTwoPhase()
	u := r.orphan()
	r.Must("finish", r.Store().Finish(r.Ctx, u.Ref()))
	r.Heuristic("abort", r.Store().Abort(r.Ctx, u.Ref()), true)
	u.Rows(1, "after Finish and Abort")
}

// A pool of one connection runs the next unit at once.
func sessionAfterPrepare(r *Run) {
	r.needsTwoPhase()
	store := r.Store()
	session := r.Session(store)
	first := r.Begin(session).Wrote().Prepared()
	if !session.Usable() {
		r.Fatalf("session is not usable after Prepare")
	}
	if r.Fenced {
		r.fenced(session)
		r.Must("finish", first.Finish(r.Ctx, first.Ref()))
		r.Begin(session).Wrote().Committed().Rows(1, "of the unit after the fence")
		return
	}
	r.Begin(session).Wrote().Committed().Rows(1, "of the second unit")
	third := r.Begin(session).Wrote()
	// The session is another unit's now: the first ends beside it.
	r.Must("finish", first.Finish(r.Ctx, first.Ref()))
	first.Rows(1, "of the first unit")
	third.Rows(0, "of the third unit, which is open")
	third.Committed().Rows(1, "of the third unit")
}

// fenced: under a prepared branch another unit of its place is refused, in one
// phase and in two, as what is worth running again.
func (r *Run) fenced(session branches.Session) {
	for _, onePhase := range []bool{true, false} {
		u := r.Begin(session).Wrote()
		err := u.try(onePhase)
		if err == nil && onePhase {
			err = u.Commit(r.Ctx)
		} else if err == nil {
			err = u.Prepare(r.Ctx, u.GID)
		}
		r.Failed("the end of a unit under the fence", err)
		if kind := branches.Classify(r.Store(), err); kind != branches.Transient {
			r.Errorf("the fence is %s, want transient", kind)
		}
		u.Rows(0, "under the fence")
	}
}

func prepareRefused(r *Run) {
	r.Needs(r.Unpreparable != "", "harness has no Unpreparable")
	store := r.Store()
	session := r.Session(store)
	u := r.Begin(session).Wrote().Exec(r.Unpreparable)
	err := u.try(false)
	if err == nil {
		err = u.Prepare(r.Ctx, u.GID)
	} else if undo := u.Rollback(r.Ctx); undo != nil {
		r.Errorf("rollback: %w", undo)
	}
	r.Failed("prepare", err)
	if kind := branches.Classify(store, err); kind != branches.Permanent {
		r.Errorf("a refused prepare is %s, want permanent", kind)
	}
	// It is rolled back already: no abort is needed, and none raises an alarm.
	if !session.Usable() {
		r.Errorf("session is not usable after a refused Prepare")
	}
	r.same(u)
	r.Must("abort", r.Store().Abort(r.Ctx, u.Ref()))
}

func restartWhilePrepared(r *Run) {
	r.Needs(r.Restart != nil, "harness has no Restart")
	r.needsTwoPhase()
	finished := r.orphan()
	var aborted *Unit
	if !r.Fenced {
		aborted = r.orphan()
	}
	store := r.Store() // reached before the restart: its own connections die with the server
	r.Fate(store, finished.Txn, branches.FateAbsent, "before the restart")
	r.Must("restart", r.Restart(r.Ctx))
	finished.Rows(0, "after the restart")
	r.Must("finish", store.Finish(r.Ctx, finished.Ref()))
	finished.Rows(1, "after Finish")
	if r.Fenced {
		aborted = r.orphan()
		r.Must("restart", r.Restart(r.Ctx))
	}
	r.Must("abort", store.Abort(r.Ctx, aborted.Ref()))
	aborted.Rows(0, "after Abort")
}
