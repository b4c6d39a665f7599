package lease_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/demodb"
	"github.com/rhizodat/rhizodat-go/lease"
)

// Two nodes, one pipeline: one runs it, the other skips its turn. And a node that
// was paused and comes back late: its commit loses, and leaves nothing.
func Example() {
	db, store, end := demodb.Open()
	defer end()
	ctx := context.Background()

	first, err := lease.Acquire(ctx, db, "nightly", lease.WithHolder("node-7"))
	fmt.Println("node-7 holds it under fence", first.Fence(), err)
	defer func() { _ = first.Release(ctx) }()
	late, _ := db.BeginTx(rhizodat.WithLease(ctx, first), nil)
	_, _ = late.ExecContext(ctx, "put from-before-the-restart")

	_, err = lease.Acquire(ctx, db, "nightly", lease.WithHolder("node-8"))
	var held *lease.Held
	fmt.Println("node-8 skips its turn:", errors.As(err, &held), held.Holder)

	// node-7 is restarted, and its earlier incarnation still has a transaction open.
	second, _ := lease.Acquire(ctx, db, "nightly", lease.WithHolder("node-7"))
	fmt.Println("node-7 holds it under fence", second.Fence())
	tx, _ := db.BeginTx(rhizodat.WithLease(ctx, second), nil)
	_, _ = tx.ExecContext(ctx, "put from-after-it")
	fmt.Println("commit:", tx.Commit())

	err = late.Commit()
	var fenced *lease.Fenced
	fmt.Println("late commit is fenced:", errors.As(err, &fenced), "- worth another try:", rhizodat.IsRetryable(err))
	fmt.Println("readable:", store.Has("from-before-the-restart"), store.Has("from-after-it"))
	fmt.Println(second.Release(ctx))
	// Output:
	// node-7 holds it under fence 1 <nil>
	// node-8 skips its turn: true node-7
	// node-7 holds it under fence 2
	// commit: <nil>
	// late commit is fenced: true - worth another try: false
	// readable: false true
	// <nil>
}

// A pipeline that several nodes are configured with, and one runs at a time.
func ExampleRunEvery() {
	db, _, end := demodb.Open()
	defer end()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	turns := 0
	err := lease.RunEvery(ctx, db, "orders/partition-3", 10*time.Millisecond, func(ctx context.Context) error {
		l, _ := lease.FromContext(ctx)
		fmt.Println("turn under fence", l.Fence())
		tx, err := db.BeginTx(ctx, nil) // commits under the fence
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "put a-row"); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		if turns++; turns == 2 {
			stop()
			return tx.Rollback()
		}
		return tx.Commit()
	}, lease.OnSkip(func(err error) { fmt.Println("skipped:", err) }))
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// turn under fence 1
	// turn under fence 2
	// true
}
