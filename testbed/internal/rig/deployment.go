package rig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Deployment is the databases of one DSN.
type Deployment struct {
	Stores  map[string]*Database
	Others  map[string]Other // nil: none
	Journal *Database
	// OtherJournal is in Journal's place where the journal is not in PostgreSQL.
	OtherJournal OtherJournal
	// Ledger is a query that every one of Stores answers: the dat_txn of each unit
	// that took effect there, and in how many stores such a unit writes, as text.
	Ledger string
}

// DSN of the deployment, with options behind it.
func (d *Deployment) DSN(options string) string {
	return d.DSNVia(nil, options)
}

// JournalName is the journal's name to DSNVia.
const JournalName = "journal"

// DSNVia is DSN with other ways (a proxy's) to some of the databases, by the
// name of their store.
func (d *Deployment) DSNVia(ways map[string]string, options string) string {
	var dsn strings.Builder
	add := func(name, scheme, usual string) {
		way := ways[name]
		if way == "" {
			way = usual
		}
		fmt.Fprintf(&dsn, "%s=%s%s ", name, scheme, way)
	}
	for _, name := range d.Names() {
		if db := d.Stores[name]; db != nil {
			add(name, db.Scheme, db.DSN)
		} else {
			add(name, "", d.Others[name].Way())
		}
	}
	if d.OtherJournal != nil {
		add(JournalName, "", d.OtherJournal.Way())
	} else {
		add(JournalName, d.Journal.Scheme, d.Journal.DSN)
	}
	return dsn.String() + options
}

// Names of all stores, sorted.
func (d *Deployment) Names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(d.Stores)), maps.Keys(d.Others))
	slices.Sort(names)
	return names
}

// States are the records of the journal, dat_txn to state.
func (d *Deployment) States(ctx context.Context) (map[string]string, error) {
	if d.OtherJournal != nil {
		return d.OtherJournal.States(ctx)
	}
	return d.Journal.Pairs(ctx, `SELECT dat_txn::text, state FROM dat_journal`)
}

// Prepared lists the gids prepared in any store.
func (d *Deployment) Prepared(ctx context.Context) ([]string, error) {
	var all []string
	for _, name := range d.Names() {
		gids, err := d.prepared(name)(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, gids...)
	}
	return all, nil
}

func (d *Deployment) prepared(name string) func(context.Context) ([]string, error) {
	if db := d.Stores[name]; db != nil {
		return db.Prepared
	}
	return d.Others[name].Prepared
}

// effects are what one store answers to Ledger, or in its place.
func (d *Deployment) effects(ctx context.Context, name string) (map[string]string, error) {
	if db := d.Stores[name]; db != nil {
		return db.Pairs(ctx, d.Ledger)
	}
	return d.Others[name].Effects(ctx)
}

// Fates counts, for every dat_txn that left a trace in a store, in how many
// stores it took effect and in how many it writes.
func (d *Deployment) Fates(ctx context.Context) (map[string]Fate, error) {
	fates := map[string]Fate{}
	for _, name := range d.Names() {
		pairs, err := d.effects(ctx, name)
		if err != nil {
			return nil, err
		}
		for txn, stores := range pairs {
			fate := fates[txn]
			fate.In++
			if fate.Of, err = strconv.Atoi(stores); err != nil {
				return nil, fmt.Errorf("read ledger: %w", err)
			}
			fates[txn] = fate
		}
	}
	return fates, nil
}

// Fate says in how many of its stores a unit took effect.
type Fate struct{ In, Of int }

// None reports whether it took effect nowhere.
func (f Fate) None() bool { return f.In == 0 }

// Whole reports whether it took effect everywhere.
func (f Fate) Whole() bool { return f.In > 0 && f.In == f.Of }

func (f Fate) String() string {
	switch {
	case f.None():
		return "none"
	case f.Whole():
		return "all"
	}
	return fmt.Sprintf("%d of %d", f.In, f.Of)
}

// Untrue compares what was reported (dat_txn to the text of its verdict) with
// what the stores hold. Each violation is one line.
func (d *Deployment) Untrue(ctx context.Context, reported map[string]string) ([]string, error) {
	fates, err := d.Fates(ctx)
	return untrue(reported, fates), err
}

func untrue(reported map[string]string, fates map[string]Fate) []string {
	var found []string
	for _, txn := range slices.Sorted(maps.Keys(reported)) {
		if !True(reported[txn], fates[txn]) {
			found = append(found, fmt.Sprintf("%s was reported %s and took effect in %s", txn, reported[txn], fates[txn]))
		}
	}
	return found
}

// Judge is asked when recovery is over: is everything whole, nothing left
// prepared or undecided, and everything true that was reported?
func (d *Deployment) Judge(ctx context.Context, reported map[string]string) ([]string, error) {
	fates, err := d.Fates(ctx)
	if err != nil {
		return nil, err
	}
	states, err := d.States(ctx)
	if err != nil {
		return nil, err
	}
	gids, err := d.Prepared(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, gid := range gids {
		found = append(found, "still prepared: "+gid)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Others)) {
		wrong, err := d.Others[name].Inexact(ctx)
		if err != nil {
			return nil, err
		}
		for _, line := range wrong {
			found = append(found, "store "+name+": "+line)
		}
	}
	for _, txn := range slices.Sorted(maps.Keys(fates)) {
		if fate := fates[txn]; !fate.Whole() {
			found = append(found, fmt.Sprintf("%s took effect in %s of its stores", txn, fate))
		}
	}
	for _, txn := range slices.Sorted(maps.Keys(states)) {
		switch state, fate := states[txn], fates[txn]; {
		case state != "DONE" && state != "ABORTED":
			found = append(found, fmt.Sprintf("%s is left %s", txn, state))
		case state == "ABORTED" && !fate.None(), state == "DONE" && !fate.Whole():
			found = append(found, fmt.Sprintf("%s is %s and took effect in %s", txn, state, fate))
		}
	}
	return append(found, untrue(reported, fates)...), nil
}

// True reports whether what a unit's Commit said of it is so. Nothing follows
// from "in doubt" and "heuristic".
func True(verdict string, fate Fate) bool {
	switch verdict {
	case "committed", "pending":
		return fate.Whole()
	case "aborted":
		return fate.None()
	}
	return true
}
