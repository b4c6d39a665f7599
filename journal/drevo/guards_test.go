package drevo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// proofs are the tests that catch a guard that is taken out.
var proofs = []struct {
	guard  guard.Name
	test   string
	rounds string // at most: a race does not come every time
}{
	{guard.Outdated, "^TestOneOf16ProcessesDecides$", "100"},
	{guard.Outdated, "^TestEachOf16ProcessesDecidesItsOwn$", "100"},
	{guard.Fence, "^TestGrantDuringDecision$", "1"},
	{guard.Line, "^TestHardenedDecisionIsNotLostInSilence$", "1"},
}

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it. That they pass with it in is
// this very run.
func TestGuardsAreNeeded(t *testing.T) {
	drevotest.Server(t) // skips where there is none
	binary := filepath.Join(t.TempDir(), "guards.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-tags", "rhizodat_guards", "-c", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, p := range proofs {
		t.Run(string(p.guard)+" "+strings.Trim(p.test, "^$"), func(t *testing.T) {
			run := exec.CommandContext(t.Context(), binary, "-test.run="+p.test, "-test.timeout=3m", "-test.count="+p.rounds, "-test.failfast")
			run.Env = append(os.Environ(), "RHIZODAT_GUARD_OFF="+string(p.guard))
			out, err := run.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL") {
				t.Errorf("guard %s was taken out and nothing noticed: %v\n%s", p.guard, err, out)
			}
			t.Logf("figure drevo_guard_%s caught caught %s", p.guard, map[bool]string{true: "short", false: "ok"}[t.Failed()])
		})
	}
}
