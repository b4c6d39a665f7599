// Package guardtest proves that the guards of a package are needed: with one
// taken out (see package guard) the test that is there for it must fail.
package guardtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// Proof names the test that catches a guard that is taken out.
type Proof struct {
	Guard guard.Name
	Test  string // as for go test -run
	// Rounds is how often at the most it is played without the guard: a race does
	// not come every time. 0 is once.
	Rounds int
}

// Room is the package whose guards are proved, and how. Its zero value only
// takes guards out, where that the tests pass with them is the very run.
type Room struct {
	Figure string   // "drevo": each proof is logged as a figure of that name; empty: none is
	Intact bool     // each test is played with every guard in, too
	Args   []string // more arguments of the test binary
	Env    []string // more of its environment
}

// Needed builds the tests of the package in the working directory, guards and
// all, and plays every proof.
func (r Room) Needed(t *testing.T, proofs ...Proof) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "guards.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-tags", "rhizodat_guards", "-c", "-o", binary, ".") //nolint:gosec // constant but for the name
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, p := range proofs {
		t.Run(string(p.Guard)+" "+strings.Trim(p.Test, "^$"), func(t *testing.T) { r.prove(t, binary, p) })
	}
}

func (r Room) prove(t *testing.T, binary string, p Proof) {
	t.Helper()
	if r.Intact {
		out, err := r.play(t, binary, "", p.Test, 1)
		if err != nil || strings.Contains(out, "no tests to run") {
			t.Fatalf("with every guard in: %v\n%s", err, out)
		}
	}
	out, err := r.play(t, binary, p.Guard, p.Test, max(1, p.Rounds))
	if err == nil || !strings.Contains(out, "--- FAIL") {
		t.Errorf("guard %s was taken out and nothing noticed: %v\n%s", p.Guard, err, out)
	}
	if r.Figure != "" {
		t.Logf("figure %s_guard_%s caught caught %s", r.Figure, p.Guard, map[bool]string{true: "short", false: "ok"}[t.Failed()])
	}
}

// play runs one test with a guard taken out, or with none.
func (r Room) play(t *testing.T, binary string, off guard.Name, test string, rounds int) (string, error) {
	t.Helper()
	args := append([]string{
		"-test.run=" + test, "-test.timeout=3m",
		"-test.count=" + strconv.Itoa(rounds), "-test.failfast",
	}, r.Args...)
	run := exec.CommandContext(t.Context(), binary, args...) //nolint:gosec // built above
	run.Env = append(append(os.Environ(), "RHIZODAT_GUARD_OFF="+string(off)), r.Env...)
	out, err := run.CombinedOutput()
	return string(out), err
}
