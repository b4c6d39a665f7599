package drevo_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/internal/guardtest"
)

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it. That they pass with it in is
// this very run.
func TestGuardsAreNeeded(t *testing.T) {
	drevotest.Server(t) // skips where there is none
	guardtest.Room{Figure: "drevo"}.Needed(t, []guardtest.Proof{
		{Guard: guard.Outdated, Test: "^TestOneOf16ProcessesDecides$", Rounds: 100},
		{Guard: guard.Outdated, Test: "^TestEachOf16ProcessesDecidesItsOwn$", Rounds: 100},
		{Guard: guard.Fence, Test: "^TestGrantDuringDecision$"},
		{Guard: guard.Line, Test: "^TestHardenedDecisionIsNotLostInSilence$"},
	}...)
}
