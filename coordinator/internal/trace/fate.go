package trace

import (
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Fate is how one unit stands after recovery has done its work.
type Fate struct {
	Txn       branches.TxnID
	Writers   map[string]bool // store -> its branch has committed
	Prepared  []string        // stores that still hold a prepared branch
	Record    journal.State   // empty when the journal has none
	Reported  *coordinator.Outcome
	Times     int  // different dat_tx_times its branches have committed under
	Heuristic bool // a store was made to resolve a branch by itself
}

// Violations judges a fate: all or none, nothing left, and what was reported is
// true.
func (f Fate) Violations() []Violation {
	var found []Violation
	fail := func(rule Rule, format string, args ...any) {
		found = append(found, Violation{Rule: rule, Txn: f.Txn, Text: fmt.Sprintf(format, args...)})
	}
	committed := 0
	for _, done := range f.Writers {
		if done {
			committed++
		}
	}
	whole := committed == 0 || committed == len(f.Writers)
	if !whole && !f.Heuristic {
		fail(Whole, "%d of %d branches have committed", committed, len(f.Writers))
	}
	if f.Times > 1 {
		fail(Whole, "its branches have committed under %d times", f.Times)
	}
	if len(f.Prepared) > 0 {
		fail(Whole, "branches are left prepared in %v", f.Prepared)
	}
	if f.Record != "" && !f.Record.Final() && !f.Heuristic {
		fail(Whole, "the record is left %s", f.Record)
	}
	if f.Record == journal.StateDone && committed < len(f.Writers) {
		fail(Finished, "the record is DONE with %d of %d branches committed", committed, len(f.Writers))
	}
	if f.Reported == nil {
		return found
	}
	switch f.Reported.Verdict {
	case coordinator.VerdictCommitted, coordinator.VerdictPending:
		if committed != len(f.Writers) && !f.Heuristic {
			fail(Truth, "reported %s, %d of %d branches have committed", f.Reported.Verdict, committed, len(f.Writers))
		}
	case coordinator.VerdictAborted:
		if committed > 0 && !f.Heuristic { // a store may commit it by itself later, too
			fail(Truth, "reported aborted, %d branches have committed", committed)
		}
	case coordinator.VerdictHeuristic:
		if !f.Heuristic {
			fail(Truth, "reported heuristic, and no store resolved anything by itself")
		}
	case coordinator.VerdictNone, coordinator.VerdictInDoubt:
	}
	return found
}
