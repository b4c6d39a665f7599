// Package await is how tests wait: for a condition, never for a time.
package await

import (
	"testing"
	"time"
)

// patience is more than any condition takes on a machine that does other work
// too; only a test that fails waits for so long.
const patience = time.Minute

// Until polls a condition that another goroutine, process or server brings
// about, and fails the test where it does not come true within a minute. what
// says in the failure what was waited for. It is for the test's own goroutine.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	UntilSaid(tb, holds, func() string { return what })
}

// UntilSaid is Until with words that are made when it fails, of what was seen last.
func UntilSaid(tb testing.TB, holds func() bool, what func() string) {
	tb.Helper()
	within(tb, patience, holds, what)
}

func within(tb testing.TB, bound time.Duration, holds func() bool, what func() string) {
	tb.Helper()
	deadline := time.NewTimer(bound)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			tb.Fatalf("not so after %s: %s", bound, what())
		}
	}
}
