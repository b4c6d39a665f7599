package drevo_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/internal/guardtest"
)

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it, and pass with it in.
func TestGuardsAreNeeded(t *testing.T) {
	drevotest.Server(t) // skips where there is none
	const rounds = 20
	guardtest.Room{Figure: "drevo", Intact: true}.Needed(t, []guardtest.Proof{
		{Guard: guard.Between, Test: "^TestNothingBetweenPrepareAndCommit$", Rounds: rounds},
		{Guard: guard.Log, Test: "^TestRefusedPrepareIsPreparedAfterRestart$", Rounds: rounds},
		{Guard: guard.Log, Test: "^TestLimitedLogAtPrepare$", Rounds: rounds},
		{Guard: guard.Exists, Test: "^TestHeuristicByOperator$", Rounds: rounds},
		{Guard: guard.Marker, Test: "^TestCommitLost$", Rounds: rounds},
		{Guard: guard.Outdated, Test: "^TestSettleMeetsWriters$", Rounds: rounds},
	}...)
}
