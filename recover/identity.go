package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Reason why a store is left alone.
type Reason string

// The reasons. The text is format (--json).
const (
	ReasonMoved        Reason = "journal moved" // the journal is not where it was made or adopted
	ReasonOtherJournal Reason = "other journal" // the store belongs to another journal
	ReasonOtherPlace   Reason = "other place"   // the name is registered at another place
	ReasonAhead        Reason = "store ahead"   // the store has seen sweeps that this journal does not know of
	ReasonShared       Reason = "shared place"  // two stores keep their markers in one place, or a store is in a drevo journal's
	ReasonNotInstalled Reason = "not installed" // no marker or meta table
	reasonNone         Reason = ""              // the store is what the journal knows
	hintAdopt                 = "if this is meant, say so: rhizorecover adopt --store "
	hintInit                  = "run rhizorecover init with the same DSN"
	hintApart                 = "give each store a database or schema of its own"
	hintAlone                 = "give the journal a graph of its own"
	hintRestored              = "find the journal that is in use; if this one is, bring its records up to date (docs/operations.md), then: rhizorecover adopt --store "
	sweepTries                = 100 // of one counter, against other workers
)

// Refused means that a store is not the one the journal knows, or the journal
// not the one the store knows. Nothing of that store is touched until a person
// has put it right.
type Refused struct {
	Store  string
	Reason Reason
	Detail string
	Way    string
}

func (e *Refused) Error() string {
	return fmt.Sprintf("rhizodat: recover store %s: refused (%s): %s", e.Store, e.Reason, e.Detail)
}

// identity is what a store and the journal say of each other.
type identity struct {
	meta   branches.Meta
	keeper branches.Keeper // nil: the store keeps no meta row
	place  branches.Place  // empty: the store cannot tell
	entry  journal.Registered
	known  bool // the journal has an entry for the name
	alone  bool // the journal shares its place with no store
}

// identify reads everything and changes nothing.
func (w *Worker) identify(ctx context.Context, name string, store branches.Store) (identity, error) {
	var id identity
	var err error
	_, id.alone = w.registry.(journal.Separate)
	// The store's counter is read before the journal's. The other way round, a
	// worker that raises both in between makes a sound store look ahead.
	if keeper, ok := store.(branches.Keeper); ok {
		id.keeper = keeper
		if id.meta, err = keeper.Meta(ctx); err != nil {
			return id, err
		}
	}
	if placer, ok := store.(branches.Placer); ok {
		if id.place, err = placer.Place(ctx); err != nil {
			return id, err
		}
	}
	id.entry, id.known, err = w.entry(ctx, name)
	return id, err
}

func (w *Worker) entry(ctx context.Context, name string) (journal.Registered, bool, error) {
	entries, err := w.registry.Stores(ctx)
	if err != nil {
		return journal.Registered{}, false, &journalError{err}
	}
	i := slices.IndexFunc(entries, func(r journal.Registered) bool { return r.Name == name })
	if i < 0 {
		return journal.Registered{Name: name}, false, nil
	}
	return entries[i], true, nil
}

// bound is the meta row of a store that belongs to j.
func (id identity) bound(j journal.Identity) branches.Meta {
	meta := id.meta
	meta.JournalID, meta.JournalPlace = j.ID, j.Here
	return meta
}

// refusal compares what store and journal say of each other. Nil: they agree,
// or the store is new to both.
func (id identity) refusal(name string, j journal.Identity) *Refused {
	r := &Refused{Store: name, Way: hintAdopt + name}
	switch {
	case id.alone && id.place != "" && id.place == j.Here:
		r.Reason, r.Way = ReasonShared, hintAlone
		r.Detail = fmt.Sprintf("the journal is in its place, %s, where a prepared branch would block the decision", id.place)
	case j.Moved():
		r.Reason = ReasonMoved
		r.Detail = fmt.Sprintf("the journal was made at %s and is now at %s: a copy, a dump restored elsewhere, or a server that was upgraded", j.Place, j.Here)
	case id.keeper != nil && id.meta.JournalID != "" && id.meta.JournalID != j.ID:
		r.Reason = ReasonOtherJournal
		r.Detail = fmt.Sprintf("the store belongs to journal %s, this is %s", id.meta.JournalID, j.ID)
	case id.keeper != nil && id.meta.JournalID != "" && id.meta.JournalPlace != j.Here:
		r.Reason = ReasonOtherJournal
		r.Detail = fmt.Sprintf("the store belongs to the journal at %s, this is its copy at %s", id.meta.JournalPlace, j.Here)
	case id.known && (id.entry.Place != id.place || id.entry.StoreID != id.meta.StoreID):
		r.Reason = ReasonOtherPlace
		r.Detail = fmt.Sprintf("the journal knows it as %s (%s), it is %s (%s)", id.entry.Place, id.entry.StoreID, id.place, id.meta.StoreID)
	case id.meta.Sweeps > id.entry.Sweeps:
		// A journal that was restored in its own place has its own id and place.
		// What it cannot have is the number of sweeps that the store has seen.
		r.Reason, r.Way = ReasonAhead, hintRestored+name
		r.Detail = fmt.Sprintf("the store has seen sweep %d, the journal knows of %d: a copied or restored journal", id.meta.Sweeps, id.entry.Sweeps)
	default:
		return nil
	}
	return r
}

// enroll binds and registers a store that is new. What is firm already is left
// as it is.
func (w *Worker) enroll(ctx context.Context, j journal.Identity, name string, id *identity) error {
	if id.keeper == nil || id.known && id.meta.JournalID != "" {
		return nil
	}
	_, err := journal.Bind(ctx, w.registry, name, w.cfg.Stores[name])
	_, mismatch := errors.AsType[*journal.Mismatch](err)
	if _, crowded := errors.AsType[*journal.Crowded](err); err != nil && !mismatch && !crowded {
		return err
	}
	// Another worker may have been first, perhaps one of another journal.
	if *id, err = w.identify(ctx, name, w.cfg.Stores[name]); err != nil {
		return err
	}
	if refused := id.refusal(name, j); refused != nil {
		return refused
	}
	return nil
}

// countSweep raises both counters, the journal's first and forced, so that a
// copy of the journal taken before is behind its stores from now on. Seen
// otherwise: a dump of the journal, restored for a test beside the running
// deployment, rolled back what that one had just prepared.
func (w *Worker) countSweep(ctx context.Context, j journal.Identity, name string, store branches.Store, id *identity) error {
	if id.keeper == nil {
		return nil
	}
	for range sweepTries {
		n, err := w.registry.RaiseSweeps(ctx, name, id.entry.Sweeps)
		if _, conflict := errors.AsType[*journal.Conflict](err); conflict { // another worker counted its own sweep
			if *id, err = w.identify(ctx, name, store); err != nil {
				return err
			}
			if refused := id.refusal(name, j); refused != nil {
				return refused
			}
			continue
		}
		if err != nil {
			return &journalError{err}
		}
		id.entry.Sweeps = n
		return id.keeper.RaiseSweeps(ctx, n)
	}
	return errCrowded
}

var errCrowded = errors.New("rhizodat: count sweep: other workers were first each time")

// journalError marks what the journal answered, so that it is not taken for the
// store's fault.
type journalError struct{ err error }

func (e *journalError) Error() string { return "journal: " + e.err.Error() }
func (e *journalError) Unwrap() error { return e.err }
