package postgres_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/internal/guardtest"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// TestGuardsAreNeeded runs this package's tests with one guard taken out: each
// must be caught by the test that is there for it. That they pass with it in is
// this very run.
func TestGuardsAreNeeded(t *testing.T) {
	pgtest.Server(t) // skips where there is none
	guardtest.Room{}.Needed(t, []guardtest.Proof{
		{Guard: guard.Fence, Test: "^TestS7WaitsForAnAcquirer$"},
		{Guard: guard.Fence, Test: "^TestConformance$/^fence$"},
		{Guard: guard.FenceLock, Test: "^TestAnAcquirerDoesNotOvertakeS7$"},
	}...)
}
