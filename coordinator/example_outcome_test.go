package coordinator_test

import (
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
)

// What a program does with the error of Commit. The root package has the same
// names: rhizodat.CommittedPending, rhizodat.IsRetryable, …
func Example() {
	txn, _ := branches.ParseTxnID("018f3f3c-7a00-7000-8000-000000000001")
	handle := func(err error) {
		var doubt *coordinator.InDoubt
		var heuristic *coordinator.Heuristic
		switch {
		case coordinator.IsCommitted(err): // also *CommittedPending
			fmt.Println("committed")
		case coordinator.IsRetryable(err):
			fmt.Println("nothing took effect: run the whole unit again")
		case errors.As(err, &doubt):
			fmt.Println("keep", doubt.DatTxn, "and ask Lookup later")
		case errors.As(err, &heuristic):
			fmt.Println("call a person:", heuristic.Stores)
		default:
			fmt.Println("nothing took effect:", err)
		}
	}
	handle(nil)
	handle(&coordinator.CommittedPending{DatTxn: txn, Stores: []string{"ledger"}})
	handle(&coordinator.Aborted{DatTxn: txn, Store: "erp", Kind: branches.Transient, Err: errors.New("deadlock detected")})
	handle(&coordinator.InDoubt{DatTxn: txn})
	handle(&coordinator.Heuristic{DatTxn: txn, Stores: []string{"ledger"}})
	handle(&coordinator.Aborted{DatTxn: txn, Store: "erp", Kind: branches.Constraint, Err: errors.New("duplicate key")})
	// Output:
	// committed
	// committed
	// nothing took effect: run the whole unit again
	// keep 018f3f3c-7a00-7000-8000-000000000001 and ask Lookup later
	// call a person: [ledger]
	// nothing took effect: rhizodat: commit 018f3f3c-7a00-7000-8000-000000000001: aborted by store erp (constraint): duplicate key
}

// A pending commit is a commit: the error says what recovery still finishes, and
// its cause is not mistaken for it.
func ExampleCommittedPending() {
	err := error(&coordinator.CommittedPending{Stores: []string{"ledger", "audit"}})
	if pending, ok := errors.AsType[*coordinator.CommittedPending](err); ok {
		fmt.Println("committed; still to be finished:", pending.Stores)
	}
	fmt.Println("run it again:", coordinator.IsRetryable(err))
	// Output:
	// committed; still to be finished: [ledger audit]
	// run it again: false
}
