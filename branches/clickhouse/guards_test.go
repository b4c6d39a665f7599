package clickhouse_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/chtest"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/internal/guardtest"
)

// envGuards is set where a guard may be out.
const envGuards = "RHIZODAT_TEST_GUARDS"

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it,
// and pass with it in, which the long form plays.
func TestGuardsAreNeeded(t *testing.T) {
	chtest.Server(t) // skips where there is none
	proofs := []guardtest.Proof{
		{Guard: guard.Token, Test: "^TestTorn$/^clickhouse,_window_100$"},
		{Guard: guard.Quiet, Test: "^TestRunningIsWaitedFor$"},
		{Guard: guard.Twice, Test: "^TestRunningBeginsAfterQuiet$"},
		{Guard: guard.Inside, Test: "^TestStoppedBeforeInsert$/^clickhouse,_window_0$"},
		{Guard: guard.MarkerInside, Test: "^TestStoppedBeforeInsertOfDeletedRows$/^clickhouse,_window_0$"},
		{Guard: guard.Parts, Test: "^TestStoppedBeforeDelete$/^clickhouse,_window_0$"},
		{Guard: guard.Whole, Test: "^TestTornBeforeMarker$/^clickhouse,_window_0$"},
	}
	if long() {
		proofs = append(proofs, guardtest.Proof{Guard: guard.Quiet, Test: "^TestSettleEndsARunningInsert$"})
	}
	guardtest.Room{Figure: "clickhouse", Intact: long(), Env: []string{envGuards + "=1"}}.Needed(t, proofs...)
}
