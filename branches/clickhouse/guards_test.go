package clickhouse_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/chtest"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// envGuards is set where a guard may be out.
const envGuards = "RHIZODAT_TEST_GUARDS"

// proofs are the tests that catch a guard that is taken out.
var proofs = []struct {
	guard guard.Name
	test  string
	long  bool // in the long form only
}{
	{guard.Token, "^TestTorn$/^clickhouse,_window_100$", false},
	{guard.Quiet, "^TestRunningIsWaitedFor$", false},
	{guard.Quiet, "^TestSettleEndsARunningInsert$", true},
	{guard.Twice, "^TestRunningBeginsAfterQuiet$", false},
	{guard.Inside, "^TestStoppedBeforeInsert$/^clickhouse,_window_0$", false},
	{guard.MarkerInside, "^TestStoppedBeforeInsertOfDeletedRows$/^clickhouse,_window_0$", false},
	{guard.Parts, "^TestStoppedBeforeDelete$/^clickhouse,_window_0$", false},
	{guard.Whole, "^TestTornBeforeMarker$/^clickhouse,_window_0$", false},
}

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it, and pass with it in.
func TestGuardsAreNeeded(t *testing.T) {
	chtest.Server(t) // skips where there is none
	binary := filepath.Join(t.TempDir(), "guards.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-tags", "rhizodat_guards", "-c", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, p := range proofs {
		if p.long && !long() {
			continue
		}
		t.Run(string(p.guard)+" "+strings.Trim(p.test, "^$"), func(t *testing.T) {
			offs := []guard.Name{p.guard}
			if long() {
				offs = append(offs, "")
			}
			for _, off := range offs {
				run := exec.CommandContext(t.Context(), binary, "-test.run="+p.test, "-test.timeout=3m")
				run.Env = append(os.Environ(), "RHIZODAT_GUARD_OFF="+string(off), envGuards+"=1")
				out, err := run.CombinedOutput()
				switch {
				case off == "" && (err != nil || strings.Contains(string(out), "no tests to run")):
					t.Fatalf("with every guard in: %v\n%s", err, out)
				case off != "" && (err == nil || !strings.Contains(string(out), "--- FAIL")):
					t.Errorf("guard %s was taken out and nothing noticed: %v\n%s", off, err, out)
				}
			}
			t.Logf("figure clickhouse_guard_%s caught caught %s", p.guard, map[bool]string{true: "short", false: "ok"}[t.Failed()])
		})
	}
}
