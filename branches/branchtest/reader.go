package branchtest

import (
	"github.com/rhizodat/rhizodat-go/branches"
)

// reader is a staged branch that wrote nothing.
func (r *Run) reader(session branches.Session, statement string) *Unit {
	u := r.Begin(session).Query(statement)
	r.Must("stage", u.try(false))
	u.voted(branches.VoteReadOnly)
	return u
}

func readOnlyBranch(r *Run) {
	session := r.Session(r.Store())
	u := r.reader(session, r.Read)
	r.Must("prepare", u.Prepare(r.Ctx, u.GID))
	r.Must("commit", u.Commit(r.Ctx))
	if !session.Usable() {
		r.Errorf("session is not usable after Commit")
	}
	r.Begin(session).Wrote().Staged() // one that wrote votes otherwise
}

// What wrote nothing is not prepared and leaves nothing to clean up.
func readOnlyMarker(r *Run) {
	store := r.Store()
	u := r.reader(r.Session(store), r.Read)
	r.Must("prepare", u.Prepare(r.Ctx, u.GID))
	if lister, ok := store.(branches.Lister); ok {
		if r.find(lister, u.GID) != nil {
			r.Errorf("a branch that wrote nothing was prepared")
		}
	}
	r.Must("commit", u.Commit(r.Ctx))
	r.Fate(store, u.Txn, branches.FateAbsent, "of a branch that wrote nothing")
	w := r.Begin(r.Session(store)).Wrote().Committed()
	r.Fate(store, w.Txn, branches.FateApplied, "of a branch that wrote")
}

// A branch that only took a lock guards what the others write: its lock is
// held from Stage over Prepare to Commit.
func locksGuard(r *Run) {
	r.Needs(r.Lock != "" && r.TryLock != nil, "harness has no Lock")
	u := r.reader(r.Session(r.Store()), r.Lock)
	r.lock(true, "after Stage")
	r.Must("prepare", u.Prepare(r.Ctx, u.GID))
	r.lock(true, "after Prepare")
	r.Must("commit", u.Commit(r.Ctx))
	r.lock(false, "after Commit")
}

func (r *Run) lock(want bool, when string) {
	taken, err := r.TryLock(r.Ctx)
	r.Must("try lock", err)
	if taken != want {
		r.Errorf("lock taken %s = %t, want %t", when, taken, want)
	}
}

// With the session its locks are gone, and with them the guard: the unit must
// be aborted.
func lostReader(r *Run) {
	r.Needs(r.Sever != nil, "harness has no Sever")
	session := r.Session(r.Store())
	u := r.reader(session, r.Read)
	r.Must("sever session", r.Sever(r.Ctx, session))
	r.Failed("prepare over a lost session", u.Prepare(r.Ctx, u.GID))
	if session.Usable() {
		r.Errorf("a lost session says that it is usable")
	}
}

func lostWriter(r *Run) {
	r.Needs(r.Sever != nil, "harness has no Sever")
	store := r.Store()
	session := r.Session(store)
	u := r.Begin(session).Wrote().Staged()
	r.Must("sever session", r.Sever(r.Ctx, session))
	var err error
	if u.staged.Vote == branches.VotePrepare {
		err = u.Prepare(r.Ctx, u.GID)
		r.Must("abort", r.Store().Abort(r.Ctx, u.Ref()))
	} else {
		err = u.Commit(r.Ctx)
	}
	if err == nil {
		r.Errorf("the end of a branch over a lost session = nil")
	}
	if session.Usable() {
		r.Errorf("a lost session says that it is usable")
	}
	r.same(u)
}
