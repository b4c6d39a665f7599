package iceberg_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// proofs are the tests that catch a guard that is taken out.
var proofs = []struct {
	guard guard.Name
	test  string
}{
	{guard.OneCommit, "^TestSleeper$/^rest$"},
	{guard.Pinned, "^TestSleeper$/^sqlite$"},
	{guard.Nulls, "^TestBugNullsInDelete$"},
	{guard.Unfiltered, "^TestBugEqualityDeletes$"},
}

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it, and pass with it in.
func TestGuardsAreNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it builds the package's tests once more")
	}
	binary := filepath.Join(t.TempDir(), "guards.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-tags", "rhizodat_guards", "-c", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, p := range proofs {
		t.Run(string(p.guard), func(t *testing.T) {
			for _, off := range []guard.Name{"", p.guard} {
				run := exec.CommandContext(t.Context(), binary, "-test.run="+p.test, "-test.timeout=3m")
				run.Env = append(os.Environ(), "RHIZODAT_GUARD_OFF="+string(off))
				out, err := run.CombinedOutput()
				switch {
				case off == "" && (err != nil || strings.Contains(string(out), "no tests to run")):
					t.Fatalf("with every guard in: %v\n%s", err, out)
				case off != "" && (err == nil || !strings.Contains(string(out), "--- FAIL")):
					t.Errorf("guard %s was taken out and nothing noticed: %v\n%s", off, err, out)
				}
			}
			t.Logf("figure iceberg_guard_%s caught caught %s", p.guard, map[bool]string{true: "short", false: "ok"}[t.Failed()])
		})
	}
}
