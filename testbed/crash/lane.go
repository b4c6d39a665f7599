package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/testbed/crash/events"
	"github.com/rhizodat/rhizodat-go/testbed/crash/graph"
	"github.com/rhizodat/rhizodat-go/testbed/crash/lake"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// Recovery looks at records as stale after a moment: what it does with them is
// safe at any age, which is what is tested. The child has the defaults.
const (
	staleAfter    = 100 * time.Millisecond
	clockDrift    = 50 * time.Millisecond
	recoverBound  = 15 * time.Second
	cellBound     = 90 * time.Second
	optionsOfUnit = "lock_timeout=5s"
)

var optionsOfRecovery = fmt.Sprintf("commit_timeout=%s stale_after=%s max_clock_drift=%s", staleAfter/2, staleAfter, clockDrift)

// tables of a store of a lane. "late" is for triggers that are still busy when
// COMMIT is carried out.
const tables = `CREATE TABLE ledger (dat_txn uuid NOT NULL, stores int NOT NULL, amount bigint NOT NULL)`

// ledgerQuery is the one of rig.Deployment.
const ledgerQuery = `SELECT DISTINCT dat_txn::text, stores::text FROM public.ledger`

// lane is a deployment on which cells run one after the other: stores a and b,
// and a third.
type lane struct {
	*rig.Deployment
	unit     string
	env      []string
	recovery rig.Recovery
	crashes  *rig.Server       // the journal's own server; nil: it must not crash
	third    string            // the third store's name; empty: it is a PostgreSQL database
	far      far               // that store
	server   crasher           // and its server; nil: it has none of its own
	events   *events.Store     // the same, where it is one of these
	graph    *graph.Store      //
	lake     *lake.Store       //
	ways     map[string]string // to databases, where not as the superuser

	bound time.Duration // of recovery

	reported map[string]string
	seen     map[string]bool // violations
	names    int             // of leases and steps
}

// kindOfLane says what is particular about a lane.
type kindOfLane struct {
	third    third
	engine   *events.Engine // of thirdEvents
	events   events.Layout
	graphs   *graph.Server // of thirdGraph
	lake     lake.Layout   // of thirdLake
	alone    bool          // there is no other store
	apart    string        // no scene without this word plays here
	crashing bool          // the journal lies on the server that may crash
	guardOff string        // with programs that lack this guard
}

func (h *house) lane(ctx context.Context, kind kindOfLane) (*lane, error) {
	l, err := h.bareLane(ctx, kind)
	if err != nil {
		return nil, err
	}
	return l, l.install(ctx)
}

// install makes our tables.
func (l *lane) install(ctx context.Context) error {
	l.recovery.DSN = l.DSNVia(l.ways, optionsOfRecovery)
	if _, _, err := l.recovery.Run(ctx, "init"); err != nil {
		return err
	}
	return l.define(ctx)
}

// bareLane is a lane without our tables.
func (h *house) bareLane(ctx context.Context, kind kindOfLane) (*lane, error) {
	l := &lane{
		Deployment: &rig.Deployment{Stores: map[string]*rig.Database{}, Others: map[string]rig.Other{}, Ledger: ledgerQuery},
		bound:      recoverBound, reported: map[string]string{}, seen: map[string]bool{},
	}
	programs, journals := h.programs, h.stores
	if kind.guardOff != "" {
		var err error
		if programs, err = h.build(ctx, true); err != nil {
			return nil, err
		}
		l.env = []string{"RHIZODAT_GUARD_OFF=" + kind.guardOff}
	}
	if kind.crashing {
		l.crashes, journals = h.journals, h.journals
	}
	l.unit = programs.unit
	l.recovery = rig.Recovery{Program: programs.recover, Env: l.env}
	if kind.third == thirdPayload {
		l.recovery.Program = programs.recoverPayload
	}
	names := []string{"a", "b"}
	if kind.alone {
		names = nil
	}
	for _, name := range names {
		if err := h.database(ctx, l, name, "", tables); err != nil {
			return nil, err
		}
	}
	if err := h.third(ctx, l, kind); err != nil {
		return nil, err
	}
	var err error
	l.Journal, err = journals.Database(ctx, "journal")
	return l, err
}

// database makes a PostgreSQL database for a store of a lane.
func (h *house) database(ctx context.Context, l *lane, name, scheme, script string) error {
	db, err := h.stores.Database(ctx, "store_"+name)
	if err != nil {
		return err
	}
	db.Scheme, l.Stores[name] = scheme, db
	_, err = db.Exec(ctx, script)
	return err
}

// fresh returns the violations that were not reported before: one broken unit
// stays in the tables for as long as the lane is used.
func (l *lane) fresh(found []string) []string {
	var fresh []string
	for _, v := range found {
		if !l.seen[v] {
			l.seen[v] = true
			fresh = append(fresh, v)
		}
	}
	return fresh
}

// quiet waits until nothing but this process has a session with the lane's
// databases: what a killed child had sent has then been carried out.
func (l *lane) quiet(ctx context.Context) error {
	return rig.Await(ctx, "end of the child's sessions", func() (bool, error) {
		n, err := l.Journal.Sessions(ctx)
		for _, db := range l.Stores {
			if n > 0 || err != nil {
				return false, err
			}
			n, err = db.Sessions(ctx)
		}
		for _, other := range l.Others {
			if n > 0 || err != nil {
				return false, err
			}
			var busy bool
			if busy, err = other.Busy(ctx); busy {
				n = 1
			}
		}
		return n == 0, err
	})
}
