//go:build !rhizodat_guards

package coordinator_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// TestGuards proves the checker: with the order of S7 and S8 taken out of a test
// build it must report I2, without the fence a late commit, and with every guard
// in place nothing.
func TestGuards(t *testing.T) {
	t.Parallel()
	for _, out := range []guard.Name{"", guard.Order, guard.Fence} {
		t.Run("out="+string(out), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", "rhizodat_guards", "-count=1", "-v", "-run", "^TestGuard$", ".")
			cmd.Env = append(os.Environ(), "RHIZODAT_GUARD_OFF="+string(out))
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			rule := map[guard.Name]string{guard.Order: "I2: ", guard.Fence: "late: "}[out]
			if !strings.Contains(string(text), `guard "`+string(out)+`" out`) || !strings.Contains(string(text), rule) {
				t.Errorf("the run did not show what it should:\n%s", text)
			}
		})
	}
}
