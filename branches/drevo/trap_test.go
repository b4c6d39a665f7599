package drevo_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/internal/guard"
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

// proofs are the tests that catch a guard that is taken out.
var proofs = []struct {
	guard guard.Name
	test  string
}{
	{guard.Between, "^TestNothingBetweenPrepareAndCommit$"},
	{guard.Log, "^TestRefusedPrepareIsPreparedAfterRestart$"},
	{guard.Log, "^TestLimitedLogAtPrepare$"},
	{guard.Exists, "^TestHeuristicByOperator$"},
	{guard.Marker, "^TestCommitLost$"},
	{guard.Outdated, "^TestSettleMeetsWriters$"},
}

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it.
func TestGuardsAreNeeded(t *testing.T) {
	drevotest.Server(t) // skips where there is none
	binary := filepath.Join(t.TempDir(), "guards.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-tags", "rhizodat_guards", "-c", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, p := range proofs {
		t.Run(string(p.guard)+" "+strings.Trim(p.test, "^$"), func(t *testing.T) {
			for _, off := range []guard.Name{"", p.guard} {
				rounds := "1"
				if off != "" {
					rounds = "20" // at most: a race does not come every time
				}
				run := exec.CommandContext(t.Context(), binary, "-test.run="+p.test, "-test.timeout=2m", "-test.count="+rounds, "-test.failfast")
				run.Env = append(os.Environ(), "RHIZODAT_GUARD_OFF="+string(off))
				out, err := run.CombinedOutput()
				switch {
				case off == "" && (err != nil || strings.Contains(string(out), "no tests to run")):
					t.Fatalf("with every guard in: %v\n%s", err, out)
				case off != "" && (err == nil || !strings.Contains(string(out), "--- FAIL")):
					t.Errorf("guard %s was taken out and nothing noticed: %v\n%s", off, err, out)
				}
			}
			t.Logf("figure drevo_guard_%s caught caught %s", p.guard, map[bool]string{true: "short", false: "ok"}[t.Failed()])
		})
	}
}
