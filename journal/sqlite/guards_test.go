//go:build !rhizodat_guards

package sqlite_test

import (
	"os"
	osexec "os/exec"
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
	{guard.Fence, "^TestModel$"},
	{guard.Fence, "^TestConformance$/^fence$"},
}

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it. That they pass with it in is
// this very run.
func TestGuardsAreNeeded(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "guards.test")
	build := osexec.CommandContext(t.Context(), "go", "test", "-tags", "rhizodat_guards", "-c", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, p := range proofs {
		t.Run(string(p.guard)+" "+strings.Trim(p.test, "^$"), func(t *testing.T) {
			run := osexec.CommandContext(t.Context(), binary, "-test.run="+p.test, "-test.timeout=3m", "-rapid.nofailfile", "-rapid.shrinktime=1s")
			run.Env = append(os.Environ(), "RHIZODAT_GUARD_OFF="+string(p.guard))
			out, err := run.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL") {
				t.Errorf("guard %s was taken out and nothing noticed: %v\n%s", p.guard, err, out)
			}
		})
	}
}
