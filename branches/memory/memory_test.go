package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/branchtest"
	"github.com/rhizodat/rhizodat-go/branches/memory"
	"github.com/rhizodat/rhizodat-go/hlc"
)

func TestContract(t *testing.T) {
	server := memory.NewServer()
	branchtest.Exercise(t, branchtest.Harness{
		Open:  func(context.Context) (branches.Store, error) { return memory.Store{Server: server}, nil },
		Vote:  branches.VotePrepare,
		Write: func(key string) string { return "put " + key },
		Read:  "get",
		Count: func(_ context.Context, key string) (int, error) {
			if server.Has(key) {
				return 1, nil
			}
			return 0, nil
		},
	})
}

// A branch in the hands of a coordinator that dies after S5, and of the
// recovery worker that ends it.
func Example() {
	ctx := context.Background()
	server := memory.NewServer()

	txn, _ := branches.NewTxnID()
	session, _ := memory.Store{Server: server}.Connect(ctx)
	branch, _ := session.Begin(ctx, branches.BeginOptions{Txn: txn})
	_, _ = session.Exec(ctx, "put a", nil)                                             // S2
	staged, _ := branch.Stage(ctx, branches.Unit{Txn: txn, TxTime: hlc.FromMillis(1)}) // S3
	gid := branches.NewGID(txn, "mem")
	fmt.Println("votes", staged.Vote, "- prepared:", branch.Prepare(ctx, gid) == nil) // S5
	fmt.Println("visible:", server.Has("a"))

	recovery := memory.Store{Server: server}
	ref := branches.Ref{Txn: txn, Store: "mem", GID: gid, TwoPhase: true}
	fmt.Println("finished:", recovery.Finish(ctx, ref) == nil, "- visible:", server.Has("a")) // S8
	fate, _ := recovery.Applied(ctx, txn)
	fmt.Println("marker:", fate, "- finished again:", recovery.Finish(ctx, ref) == nil)
	fmt.Println(recovery.Abort(ctx, ref) != nil, "- what was committed is not aborted")
	// Output:
	// votes prepare - prepared: true
	// visible: false
	// finished: true - visible: true
	// marker: applied - finished again: true
	// true - what was committed is not aborted
}
