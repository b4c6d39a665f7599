package iceberg_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/internal/guardtest"
)

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it, and pass with it in.
func TestGuardsAreNeeded(t *testing.T) {
	guardtest.Room{Figure: "iceberg", Intact: true}.Needed(t, []guardtest.Proof{
		{Guard: guard.OneCommit, Test: "^TestSleeper$/^rest$"},
		{Guard: guard.Pinned, Test: "^TestSleeper$/^sqlite$"},
		{Guard: guard.Nulls, Test: "^TestBugNullsInDelete$"},
		{Guard: guard.Unfiltered, Test: "^TestBugEqualityDeletes$"},
	}...)
}
