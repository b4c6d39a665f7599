package main

import (
	"context"
	"fmt"

	"github.com/rhizodat/rhizodat-go/internal/byteproxy"
	"github.com/rhizodat/rhizodat-go/testbed/crash/events"
	"github.com/rhizodat/rhizodat-go/testbed/crash/graph"
	"github.com/rhizodat/rhizodat-go/testbed/crash/lake"
	"github.com/rhizodat/rhizodat-go/testbed/crash/payload"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// third is the store of a lane beside a and b, by its name in the DSN: what a
// shape is about. A further kind of store is one more of these, a package that
// makes a rig.Other of it, a shape, and scenes of its own.
type third string

// The third stores.
const (
	thirdReader  third = ""  // PostgreSQL, named c: it is only read, under a lock
	thirdPayload third = "p" // package payload
	thirdEvents  third = "e" // ClickHouse
	thirdGraph   third = "g" // drevo
	thirdLake    third = "l" // Iceberg
)

// crasher is a server that may be killed and comes back with what it holds.
type crasher interface {
	Crash(ctx context.Context) error
	Start(ctx context.Context) error
}

// far is a store that may lie behind a proxy.
type far interface {
	rig.Other
	Addr() string
	Via(addr string) string
}

// third makes the third store of a lane.
func (h *house) third(ctx context.Context, l *lane, kind kindOfLane) (err error) {
	switch kind.third {
	case thirdReader:
		return h.database(ctx, l, "c", "", tables)
	case thirdPayload:
		return h.database(ctx, l, string(thirdPayload), payload.Scheme+":", payload.Tables)
	case thirdEvents:
		if l.events, err = kind.engine.Store(ctx, kind.events); err == nil {
			l.place(kind, l.events, kind.engine)
		}
		return err
	case thirdGraph:
		if l.graph, err = kind.graphs.Store(ctx); err == nil {
			l.place(kind, l.graph, kind.graphs)
		}
		return err
	case thirdLake:
		return h.lake(ctx, l, kind)
	}
	return fmt.Errorf("no such third store: %s", kind.third)
}

func (l *lane) place(kind kindOfLane, store far, server crasher) {
	l.third, l.far, l.server = string(kind.third), store, server
	l.Others[l.third] = store
}

// through are the ways by which the third store lies behind a proxy.
func (l *lane) through(net *byteproxy.Proxy) map[string]string {
	return map[string]string{l.third: l.far.Via(net.Addr())}
}

// lake makes a catalog: in a database of the stores' server, or in files.
func (h *house) lake(ctx context.Context, l *lane, kind kindOfLane) error {
	var db *rig.Database
	if kind.lake.Kind == lake.Postgres {
		var err error
		if db, err = h.stores.Database(ctx, "catalog"); err != nil {
			return err
		}
	}
	store, err := lake.New(ctx, kind.lake, db)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.lakes = append(h.lakes, store)
	h.mu.Unlock()
	l.lake = store
	l.place(kind, store, nil)
	return nil
}

// define makes what the application has in the third store, where that is done by
// statements of the driver.
func (l *lane) define(ctx context.Context) error {
	if l.lake == nil {
		return nil
	}
	p := plan.Plan{Before: []string{"store:" + l.third + " CREATE TABLE ledger " + lake.Columns}}
	child, err := rig.Start(ctx, l.unit, nil, p.Encode(), "RHIZODAT_DSN="+l.DSNVia(l.ways, optionsOfUnit))
	if err != nil {
		return err
	}
	for range child.Lines { // it has nothing to say
		child.Go()
	}
	return child.Wait()
}

// on is the kind on the server of another one.
func (k kindOfLane) on(base kindOfLane) kindOfLane {
	k.third, k.engine, k.graphs = base.third, base.engine, base.graphs
	return k
}

// kindOfEvents is a lane with ClickHouse.
func kindOfEvents(engine *events.Engine) kindOfLane {
	return kindOfLane{third: thirdEvents, engine: engine}
}

// kindOfLake is a lane with Iceberg.
func kindOfLake(layout lake.Layout) kindOfLane {
	return kindOfLane{third: thirdLake, lake: layout}
}

// kindOfGraph is a lane with drevo.
func kindOfGraph(server *graph.Server) kindOfLane {
	return kindOfLane{third: thirdGraph, graphs: server}
}
