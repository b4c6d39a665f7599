package drevo_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

// faulty is a graph and a store on a server that comes up again with a fault.
func faulty(t *testing.T, args ...string) (*drevotest.Cluster, *drevotest.Graph, *drevo.Store) {
	t.Helper()
	cluster := drevotest.Own(t)
	g, store := installed(t, cluster)
	cluster.Restart(t, args...)
	return cluster, g, store
}

// revive brings a server back that its fault has ended.
func revive(t *testing.T, cluster *drevotest.Cluster, fault string) {
	t.Helper()
	if !strings.HasSuffix(fault, ":exit") {
		return
	}
	if code := cluster.Wait(t); code != 137 {
		t.Errorf("the server ended with %d, want 137", code)
	}
	cluster.Start(t)
}

// The server dies, or the connection, before prepare was done or after: its
// answer proves nothing either way, and a later look and Abort are right.
func TestPrepareLost(t *testing.T) {
	for fault, prepared := range map[string]bool{
		"prepare:before:exit": false, "prepare:after:exit": true, "prepare:before:drop": false, "prepare:after:drop": true,
	} {
		t.Run(fault, func(t *testing.T) {
			cluster, g, store := faulty(t, "--fault", fault)
			session := connect(t, store)
			u := begin(t, session).exec("CREATE (:A)").staged(false)
			err := u.Prepare(t.Context(), u.gid)
			if !branches.IsUnknown(err) || store.Classify(err) != branches.Transient {
				t.Errorf("Prepare = %v (%s), want an unknown, transient error", err, store.Classify(err))
			}
			if session.Usable() {
				t.Error("a session that lost its connection says that it is usable")
			}
			revive(t, cluster, fault)
			list, err := store.Prepared(t.Context())
			if err != nil || len(list) == 1 != prepared {
				t.Errorf("prepared: %v, %v, want %t", list, err, prepared)
			}
			if err := store.Abort(t.Context(), u.ref()); err != nil {
				t.Error(err)
			}
			wantCount(t, g, "A", 0)
			begin(t, connect(t, store)).exec("CREATE (:B)") // no fence is left
			if got := g.Prepared(t); len(got) != 0 {
				t.Errorf("left prepared: %v", got)
			}
		})
	}
}

// The answer of commitPrepared is lost: Finish either asks again by itself or
// says so, and never takes "unknown gid" for success or for a heuristic end.
func TestFinishLost(t *testing.T) {
	for _, fault := range []string{
		"commitPrepared:before:exit", "commitPrepared:after:exit", "commitPrepared:before:drop", "commitPrepared:after:drop",
	} {
		t.Run(fault, func(t *testing.T) {
			cluster, g, store := faulty(t, "--fault", fault)
			u := prepared(t, store, "A")
			err := store.Finish(t.Context(), u.ref())
			if strings.HasSuffix(fault, ":exit") {
				if err == nil || store.Classify(err) != branches.Transient {
					t.Errorf("Finish while the server is down = %v, want a transient error", err)
				}
				if _, heuristic := errors.AsType[*branches.Heuristic](err); heuristic {
					t.Errorf("Finish while the server is down = %v: it has proved nothing", err)
				}
				revive(t, cluster, fault)
				err = store.Finish(t.Context(), u.ref())
			}
			if err != nil {
				t.Errorf("Finish = %v", err)
			}
			wantCount(t, g, "A", 1)
			wantFate(t, store, u.txn, branches.FateApplied)
			wantHeuristic(t, store.Abort(t.Context(), u.ref()), true)
		})
	}
}

// The answer of rollbackPrepared is lost.
func TestAbortLost(t *testing.T) {
	for _, fault := range []string{"rollbackPrepared:before:exit", "rollbackPrepared:after:exit", "rollbackPrepared:after:drop"} {
		t.Run(fault, func(t *testing.T) {
			cluster, g, store := faulty(t, "--fault", fault)
			u := prepared(t, store, "A")
			err := store.Abort(t.Context(), u.ref())
			if strings.HasSuffix(fault, ":exit") {
				if err == nil {
					t.Error("Abort while the server is down = nil")
				}
				revive(t, cluster, fault)
				err = store.Abort(t.Context(), u.ref())
			}
			if err != nil {
				t.Errorf("Abort = %v", err)
			}
			wantCount(t, g, "A", 0)
			wantHeuristic(t, store.Finish(t.Context(), u.ref()), false)
		})
	}
}

// The answer of a one-phase COMMIT is lost, before it was done or after. Settle
// ends the doubt, and what it says is what stands, also after a restart.
func TestCommitLost(t *testing.T) {
	for fault, want := range map[string]branches.Fate{
		"commit:before:exit": branches.FateNever, "commit:after:exit": branches.FateApplied,
		"commit:before:drop": branches.FateNever, "commit:after:drop": branches.FateApplied,
	} {
		t.Run(fault, func(t *testing.T) {
			cluster, g, store := faulty(t, "--fault", fault)
			u := begin(t, connect(t, store)).exec("CREATE (:A)").staged(true)
			if err := u.Commit(t.Context()); !branches.IsUnknown(err) {
				t.Errorf("Commit = %v, want an unknown error", err)
			}
			if strings.HasSuffix(fault, ":exit") {
				if fate, err := store.Settle(t.Context(), u.txn); err == nil {
					t.Errorf("Settle while the server is down = %s", fate)
				}
			}
			revive(t, cluster, fault)
			if fate, err := store.Settle(t.Context(), u.txn); err != nil || fate != want {
				t.Errorf("Settle = %s, %v, want %s", fate, err, want)
			}
			cluster.Restart(t)
			wantFate(t, store, u.txn, want)
			wantCount(t, g, "A", map[branches.Fate]int{branches.FateApplied: 1}[want])
		})
	}
}

// drevo's own timeout rolls a decided branch back before anybody finishes it:
// that is heuristic, now and after a crash, and a rollback agrees with it.
func TestHeuristicTimeout(t *testing.T) {
	cluster, g, store := faulty(t, "--prepared-timeout", "0.2", "--tick", "0.02")
	u := prepared(t, store, "A")
	await.Until(t, "drevo has rolled it back", func() bool { return len(g.Prepared(t)) == 0 })
	wantHeuristic(t, store.Finish(t.Context(), u.ref()), false)
	cluster.Restart(t)
	wantHeuristic(t, store.Finish(t.Context(), u.ref()), false)
	if err := errors.Join(store.Abort(t.Context(), u.ref()), store.Abort(t.Context(), u.ref())); err != nil {
		t.Errorf("Abort of what was rolled back heuristically = %v", err)
	}
	wantCount(t, g, "A", 0)
	wantFate(t, store, u.txn, branches.FateAbsent)
}

// An operator's word is heuristic, too.
func TestHeuristicByOperator(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	u := prepared(t, store, "A")
	if err := g.Resolve(t.Context(), "heuristicRollback", u.gid.String()); err != nil {
		t.Fatal(err)
	}
	wantHeuristic(t, store.Finish(t.Context(), u.ref()), false)
	u = prepared(t, store, "A")
	if err := g.Resolve(t.Context(), "rollbackPrepared", u.gid.String()); err != nil {
		t.Fatal(err)
	}
	wantHeuristic(t, store.Finish(t.Context(), u.ref()), false)
	u = prepared(t, store, "A")
	if err := g.Resolve(t.Context(), "commitPrepared", u.gid.String()); err != nil {
		t.Fatal(err)
	}
	if err := store.Finish(t.Context(), u.ref()); err != nil {
		t.Errorf("Finish of what an operator has committed = %v", err)
	}
	wantHeuristic(t, store.Abort(t.Context(), u.ref()), true)
	wantCount(t, g, "A", 1)
}

// A caller that gives up while prepare is under way knows nothing, and what it
// left is found by its gid.
func TestPrepareCutShort(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	session := connect(t, store)
	u := begin(t, session).exec("CREATE (:A)").staged(false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := u.Prepare(ctx, u.gid)
	if !branches.IsUnknown(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("Prepare under an ended context = %v, want an unknown error that shows it", err)
	}
	if session.Usable() {
		t.Error("the session says that it is usable")
	}
	await.Until(t, "it is over", func() bool {
		if err := store.Abort(t.Context(), u.ref()); err != nil {
			t.Error(err)
		}
		return len(g.Prepared(t)) == 0
	})
	wantCount(t, g, "A", 0)
}
