package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/testbed/crash/payload"
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
// and a third, which is only read or holds payloads.
type lane struct {
	*rig.Deployment
	unit     string
	env      []string
	recovery rig.Recovery
	crashes  *rig.Server       // the journal's own server; nil: it must not crash
	ways     map[string]string // to databases, where not as the superuser

	bound time.Duration // of recovery

	reported map[string]string
	seen     map[string]bool // violations
}

// kindOfLane says what is particular about a lane.
type kindOfLane struct {
	payload  bool   // the third store is payload "p", not reader "c"
	crashing bool   // the journal lies on the server that may crash
	guardOff string // with programs that lack this guard
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
	_, _, err := l.recovery.Run(ctx, "init")
	return err
}

// bareLane is a lane without our tables.
func (h *house) bareLane(ctx context.Context, kind kindOfLane) (*lane, error) {
	l := &lane{
		Deployment: &rig.Deployment{Stores: map[string]*rig.Database{}, Ledger: ledgerQuery},
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
	third := "c"
	if kind.payload {
		third, l.recovery.Program = "p", programs.recoverPayload
	}
	var err error
	for _, name := range []string{"a", "b", third} {
		if l.Stores[name], err = h.stores.Database(ctx, "store_"+name); err != nil {
			return nil, err
		}
		script := tables
		if name == "p" {
			l.Stores[name].Scheme, script = payload.Scheme+":", payload.Tables
		}
		if _, err := l.Stores[name].Exec(ctx, script); err != nil {
			return nil, err
		}
	}
	l.Journal, err = journals.Database(ctx, "journal")
	return l, err
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
		for _, name := range l.Names() {
			if n > 0 || err != nil {
				break
			}
			n, err = l.Stores[name].Sessions(ctx)
		}
		return n == 0, err
	})
}
