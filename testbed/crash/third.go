package main

import (
	"context"
	"fmt"

	"github.com/rhizodat/rhizodat-go/testbed/crash/payload"
)

// third is the store of a lane beside a and b, by its name in the DSN: what a
// shape is about. A further kind of store is one more of these.
type third string

// The third stores.
const (
	thirdReader  third = ""  // PostgreSQL, named c: it is only read, under a lock
	thirdPayload third = "p" // package payload
	thirdEvents  third = "e" // ClickHouse
)

// crasher is a server that may be killed and comes back with what it holds.
type crasher interface {
	Crash(ctx context.Context) error
	Start(ctx context.Context) error
}

// third makes the third store of a lane.
func (h *house) third(ctx context.Context, l *lane, kind kindOfLane) error {
	switch kind.third {
	case thirdReader:
		return h.database(ctx, l, "c", "", tables)
	case thirdPayload:
		return h.database(ctx, l, string(thirdPayload), payload.Scheme+":", payload.Tables)
	case thirdEvents:
		store, err := kind.engine.Store(ctx, kind.events)
		if err != nil {
			return err
		}
		l.events, l.engine, l.Others[string(thirdEvents)] = store, kind.engine, store
		return nil
	}
	return fmt.Errorf("no such third store: %s", kind.third)
}
