package step_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/rhizodat/rhizodat-go/internal/demodb"
	"github.com/rhizodat/rhizodat-go/step"
)

// Eight callers run one step: one of them asks the bank, and all of them get the
// answer.
func ExampleDo() {
	db, _, end := demodb.Open()
	defer end()
	asked := 0
	charge := func(ctx context.Context) (string, error) {
		asked++
		key, _ := step.IdempotencyKey(ctx) // the bank charges once for each
		return fmt.Sprintf("receipt for %d characters of key", len(key)), nil
	}
	var mu sync.Mutex
	answers := map[string]int{}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			receipt, err := step.Do(context.Background(), db,
				step.Key{Execution: "order 7", Label: "charge", Input: 4200}, charge)
			mu.Lock()
			defer mu.Unlock()
			answers[fmt.Sprint(receipt, ", ", err)]++
		})
	}
	callers.Wait()
	fmt.Println("asked", asked, "times:", answers)
	// Output: asked 1 times: map[receipt for 32 characters of key, <nil>:8]
}

// The effect is a transaction: it takes place exactly once.
func ExampleDoTx() {
	db, store, end := demodb.Open()
	defer end()
	ctx := context.Background()
	book := func(ctx context.Context, tx *sql.Tx) (string, error) {
		fmt.Println("booking")
		_, err := tx.ExecContext(ctx, "put booking-7") // a second time it would fail
		return "booked", err
	}
	for range 3 {
		fmt.Println(step.DoTx(ctx, db, step.Key{Execution: "order 7", Label: "book"}, book))
	}
	fmt.Println("readable:", store.Has("booking-7"))
	// Output:
	// booking
	// booked <nil>
	// booked <nil>
	// booked <nil>
	// readable: true
}
