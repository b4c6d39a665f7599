//go:build rhizodat_guards

package coordinator_test

import (
	"os"
	"testing"

	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// TestGuard runs the same commits with the guard that RHIZODAT_GUARD_OFF names
// taken out, or with all of them in. The checker must tell the two apart, and
// so must the stores. TestGuards starts it.
func TestGuard(t *testing.T) {
	for _, st := range []story{
		{name: "happy", parts: ab},
		{name: "s7-lost-before", parts: ab, script: fault(trace.Journal, trace.Decide, fake.LostBefore)},
		{name: "killed-before-s7", parts: ab, on: map[string]func(*scene){"S7.before": func(s *scene) { s.app.Kill() }}},
		{name: "lease-late", parts: ab, set: under, on: map[string]func(*scene){"S7.before": transferred}},
	} {
		late := st.set != nil
		inBubble(t, func(t *testing.T) {
			t.Helper()
			s, _ := stage(t, st)
			found := s.violations()
			count := map[trace.Rule]int{}
			for _, v := range found {
				count[v.Rule]++
			}
			t.Logf("guard %q out, story %s: %d violations: %v", os.Getenv("RHIZODAT_GUARD_OFF"), st.name, len(found), found)
			order, fence := guard.Off(guard.Order), guard.Off(guard.Fence) && late
			if order != (count[trace.I2] > 0) || fence != (count[trace.Late] > 0) || !order && !fence && len(found) > 0 {
				t.Errorf("order out %t, fence out %t: the checker reports %v", order, fence, found)
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
