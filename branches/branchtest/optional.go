package branchtest

import (
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// find lists the prepared transactions and picks one.
func (r *Run) find(lister branches.Lister, gid branches.GID) *branches.Prepared {
	list, err := lister.Prepared(r.Ctx)
	r.Must("list prepared transactions", err)
	for _, p := range list {
		if p.GID == gid {
			return &p
		}
	}
	return nil
}

func listed(r *Run) {
	r.needsTwoPhase()
	store := r.Store()
	lister := ability[branches.Lister](r, store)
	u := r.orphan()
	p := r.find(lister, u.GID)
	if p == nil {
		r.Fatalf("a prepared transaction is not listed")
	}
	if !p.Ours || !p.MayFinish {
		r.Errorf("a prepared transaction of our own: ours = %t, may finish = %t", p.Ours, p.MayFinish)
	}
	if age := hlc.System.Now().Sub(p.Since); age < -time.Hour || age > time.Hour {
		r.Errorf("prepared %s ago, want just now", age)
	}
	r.Must("abort", store.Abort(r.Ctx, u.Ref()))
}

func listedNoMore(r *Run) {
	r.needsTwoPhase()
	store := r.Store()
	lister := ability[branches.Lister](r, store)
	finished := r.orphan()
	if r.Fenced {
		r.Must("finish", store.Finish(r.Ctx, finished.Ref()))
	}
	aborted := r.orphan()
	if r.Fenced {
		r.Must("abort", store.Abort(r.Ctx, aborted.Ref()))
	}
	standing := r.orphan()
	if !r.Fenced {
		r.Must("finish", store.Finish(r.Ctx, finished.Ref()))
		r.Must("abort", store.Abort(r.Ctx, aborted.Ref()))
	}
	if r.find(lister, finished.GID) != nil || r.find(lister, aborted.GID) != nil {
		r.Errorf("a transaction that is over is still listed")
	}
	if r.find(lister, standing.GID) == nil {
		r.Errorf("a transaction that stands is not listed")
	}
	r.Must("abort", store.Abort(r.Ctx, standing.Ref()))
}

func savepointBack(r *Run) {
	u := r.Begin(r.Session(r.Store())).Wrote()
	sp := ability[branches.Savepointer](r, u.Branch)
	r.Must("savepoint", sp.Savepoint(r.Ctx, "dat_sp_1"))
	kept := u.Key
	u.Key += "x"
	if r.NoUndo {
		r.Must("rollback to", sp.RollbackTo(r.Ctx, "dat_sp_1"))
		r.Must("doom though nothing was written since", u.Doomed())
	}
	u.Wrote()
	r.Must("rollback to", sp.RollbackTo(r.Ctx, "dat_sp_1"))
	if r.NoUndo {
		r.doomedForGood(u)
		return
	}
	u.Committed().Rows(0, "written after the savepoint")
	u.Key = kept
	u.Rows(1, "written before the savepoint")
}

func savepointClears(r *Run) {
	r.Needs(r.Bad != "", "harness has no Bad")
	session := r.Session(r.Store())
	u := r.Begin(session).Wrote()
	sp := ability[branches.Savepointer](r, u.Branch)
	r.Must("savepoint", sp.Savepoint(r.Ctx, "dat_sp_1"))
	_, err := session.Exec(r.Ctx, r.Bad, nil)
	r.Failed("bad statement", err)
	if u.Doomed() == nil {
		r.Errorf("a failed statement has not doomed the branch")
	}
	r.Must("rollback to", sp.RollbackTo(r.Ctx, "dat_sp_1"))
	if r.NoUndo {
		r.doomedForGood(u)
		return
	}
	r.Must("doom after rollback to", u.Doomed())
	u.Committed().Rows(1, "written before the savepoint")
}

// doomedForGood: what was written is not committed, and nobody is told that it was.
func (r *Run) doomedForGood(u *Unit) {
	if u.Doomed() == nil {
		r.Errorf("a branch that cannot be taken back to its savepoint is not doomed")
	}
	if err := u.try(true); err == nil {
		r.Errorf("Stage of a doomed branch = nil")
	}
	r.Must("rollback", u.Rollback(r.Ctx))
	u.Rows(0, "of a doomed branch")
}

func savepointReleased(r *Run) {
	u := r.Begin(r.Session(r.Store()))
	sp := ability[branches.Savepointer](r, u.Branch)
	r.Must("savepoint", sp.Savepoint(r.Ctx, "dat_sp_1"))
	u.Wrote()
	r.Must("release", sp.Release(r.Ctx, "dat_sp_1"))
	u.Rows(0, "before Commit")
	u.Committed().Rows(1, "written after the savepoint")
}

// Wrote is a promise about Stage's vote, and no more than that.
func knowsWrote(r *Run) {
	session := r.Session(r.Store())
	u := r.Begin(session)
	w := ability[branches.Writer](r, u.Branch)
	u.Query(r.Read)
	if w.Wrote() {
		r.Errorf("Wrote after a read = true")
	}
	u.Wrote()
	if !w.Wrote() {
		r.Errorf("Wrote after a write = false")
	}
	u.Staged()
	r.Must("rollback", u.Rollback(r.Ctx))
}

func copies(r *Run) {
	r.Needs(r.Table != "", "harness has no Table")
	session := r.Session(r.Store())
	copier := ability[branches.Copier](r, session)
	u := r.Begin(session)
	left := 2
	n, err := copier.CopyFrom(r.Ctx, r.Table, []string{r.Column}, func() ([]any, error) {
		if left--; left < 0 {
			return nil, nil
		}
		return []any{u.Key + []string{"", "x"}[left]}, nil
	})
	r.Must("copy", err)
	if n != 2 {
		r.Errorf("copied %d rows, want 2", n)
	}
	u.Rows(0, "copied, before Commit")
	u.Staged()
	r.Must("commit", u.Commit(r.Ctx))
	u.Rows(1, "copied")
}

func pings(r *Run) {
	r.Needs(r.Sever != nil, "harness has no Sever")
	session := r.Session(r.Store())
	pinger := ability[branches.Pinger](r, session)
	r.Must("ping", pinger.Ping(r.Ctx))
	r.Must("sever session", r.Sever(r.Ctx, session))
	if pinger.Ping(r.Ctx) == nil {
		r.Errorf("ping of a lost session = nil")
	}
}
