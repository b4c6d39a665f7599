package hlc_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
)

// A clock keeps its order while the wall clock steps back, follows peers that
// are a little ahead, and refuses those that are far ahead.
func Example() {
	wall := hlc.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	clock := hlc.NewClock(wall, time.Minute)
	fmt.Println("start:    ", clock.Now())

	wall.Set(wall.Now().Add(-time.Hour))
	fmt.Println("set back: ", clock.Now())
	wall.Set(wall.Now().Add(time.Hour))

	near := hlc.FromMillis(wall.Now().Add(time.Second).UnixMilli())
	fmt.Println("near peer:", clock.Observe(near), clock.Now())

	far := hlc.FromMillis(wall.Now().Add(24 * time.Hour).UnixMilli())
	if drift, ok := errors.AsType[*hlc.DriftError](clock.Observe(far)); ok {
		fmt.Println("far peer:  more than", drift.Max, "ahead")
	}
	fmt.Println("go on:    ", clock.Now())

	// Output:
	// start:     2026-03-01T12:00:00.000Z/0
	// set back:  2026-03-01T12:00:00.000Z/1
	// near peer: <nil> 2026-03-01T12:00:01.000Z/1
	// far peer:  more than 1m0s ahead
	// go on:     2026-03-01T12:00:01.000Z/2
}

// What was persisted is read back before the first Now of a new process.
func ExampleClock_Raise() {
	persisted, err := hlc.ParseTime("2026-03-01T12:00:00.250Z/17")
	if err != nil {
		fmt.Println(err)
		return
	}
	wall := hlc.NewManual(time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)) // the host came up an hour slow
	clock := hlc.NewClock(wall, time.Minute)
	clock.Raise(persisted)
	fmt.Println(clock.Now())
	// Output: 2026-03-01T12:00:00.250Z/18
}
