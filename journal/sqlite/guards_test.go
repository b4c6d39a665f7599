package sqlite_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/internal/guardtest"
)

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it. That they pass with it in is
// this very run.
func TestGuardsAreNeeded(t *testing.T) {
	guardtest.Room{Args: []string{"-rapid.nofailfile", "-rapid.shrinktime=1s"}}.Needed(t, []guardtest.Proof{
		{Guard: guard.Fence, Test: "^TestModel$"},
		{Guard: guard.Fence, Test: "^TestConformance$/^fence$"},
	}...)
}
