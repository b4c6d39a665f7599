//go:build rhizodat_guards

package coordinator_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// TestGuard runs the same commits with the guard that RHIZODAT_GUARD_OFF names
// taken out, or with all of them in. The checker must tell the two apart, and
// so must the stores. TestGuards starts it.
func TestGuard(t *testing.T) {
	out := guard.Off(guard.Order)
	for _, st := range []story{
		{name: "happy", parts: ab},
		{name: "s7-lost-before", parts: ab, script: fault(trace.Journal, trace.Decide, fake.LostBefore)},
		{name: "killed-before-s7", parts: ab, on: map[string]func(*scene){"S7.before": func(s *scene) { s.app.Kill() }}},
	} {
		inBubble(t, func(t *testing.T) {
			t.Helper()
			s, _ := stage(t, st)
			found := s.violations()
			order := 0
			for _, v := range found {
				if v.Rule == trace.I2 {
					order++
				}
			}
			t.Logf("guard order out %t, story %s: %d violations, %d of them I2: %v", out, st.name, len(found), order, found)
			if out != (order > 0) || !out && len(found) > 0 {
				t.Errorf("guard order out %t: the checker reports %v", out, found)
			}
			released := 0
			for _, e := range s.world.Log.Events() {
				if e.What == trace.Sent && e.Proc == "app" && e.Actor == "a" && e.Op == trace.Finish {
					released++
				}
			}
			if st.name == "happy" && released != 1 {
				t.Errorf("a was released %d times", released)
			}
		})
	}
}
