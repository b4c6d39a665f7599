package drevo_test

import (
	"errors"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

// onePerPool makes the next unit run on the connection of the last one.
func onePerPool(c *config.Config) { c.MaxConnectionPoolSize = 1 }

// If anything ran between prepare and COMMIT, drevo would keep its mark on that
// connection, and the next unit's COMMIT there would be acknowledged and not done.
func TestNothingBetweenPrepareAndCommit(t *testing.T) {
	g, _ := installed(t, drevotest.Server(t))
	store := open(t, g, drevo.Options{Configure: onePerPool})
	for _, end := range []func(*unit) error{
		func(u *unit) error { return store.Finish(t.Context(), u.ref()) },
		func(u *unit) error { return store.Abort(t.Context(), u.ref()) },
	} {
		u := prepared(t, store, "First")
		if err := end(u); err != nil {
			t.Fatal(err)
		}
		before := g.Count(t, "Next")
		next := begin(t, connect(t, store)).exec("CREATE (:Next)").staged(true)
		if err := next.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := g.Count(t, "Next"); got != before+1 {
			t.Errorf("COMMIT was acknowledged and not done: %d nodes, want %d", got, before+1)
		}
		wantFate(t, store, next.txn, branches.FateApplied)
	}
}

// Neither does a refused prepare leave anything on its connection.
func TestRefusedPrepareLeavesNoMark(t *testing.T) {
	g, other := installed(t, drevotest.Server(t))
	store := open(t, g, drevo.Options{Configure: onePerPool})
	session := connect(t, store)
	u := begin(t, session).exec("CREATE (:First)").staged(false)
	fence := prepared(t, other, "Other")
	err := u.Prepare(t.Context(), u.gid)
	if err == nil || branches.IsUnknown(err) || store.Classify(err) != branches.Transient {
		t.Errorf("Prepare under the fence = %v, want a transient error that proves that nothing happened", err)
	}
	if !session.Usable() {
		t.Error("the session is not usable after a refused prepare")
	}
	if err := other.Finish(t.Context(), fence.ref()); err != nil {
		t.Fatal(err)
	}
	next := begin(t, session).exec("CREATE (:Next)").staged(true)
	if err := next.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCount(t, g, "Next", 1)
	wantCount(t, g, "First", 0)
}

// Connections that may hold the mark are given up for new ones, and units that
// are open on them end as they would have.
func TestRenewedPool(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	u := begin(t, connect(t, store)).exec("CREATE (:A)").staged(true)
	if err := errors.Join(store.Renew(), store.Renew()); err != nil {
		t.Fatal(err)
	}
	if err := u.Commit(t.Context()); err != nil {
		t.Errorf("Commit on the old pool = %v", err)
	}
	next := begin(t, connect(t, store)).exec("CREATE (:A)").staged(true)
	if err := next.Commit(t.Context()); err != nil {
		t.Errorf("Commit on the new pool = %v", err)
	}
	wantCount(t, g, "A", 2)
}
