package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Mismatch means that a store is not the one that the journal knows by its name, or it
// belongs to another journal. Nothing of it is touched until a person says so
// (rhizorecover adopt).
type Mismatch struct {
	Store  string
	Reason string // what was seen, with both sides
}

func (e *Mismatch) Error() string {
	return fmt.Sprintf("rhizodat: check store %s: %s: if this is meant, run rhizorecover adopt --store %s", e.Store, e.Reason, e.Store)
}

// Kind is Permanent: only a person can help.
func (e *Mismatch) Kind() branches.Kind { return branches.Permanent }

// Separate is a journal that needs its place for itself: a prepared branch of a
// store there would keep it from writing the decision that ends the branch.
type Separate interface {
	// Separate only says so.
	Separate()
}

// Crowded means that a store is in the place of a journal that is Separate.
type Crowded struct {
	Store string
	Place branches.Place
}

func (e *Crowded) Error() string {
	return fmt.Sprintf("rhizodat: check store %s: the journal is in its place, %s, where a prepared branch would block the decision: give the journal its own graph", e.Store, e.Place)
}

// Kind is Permanent: only another configuration helps.
func (e *Crowded) Kind() branches.Kind { return branches.Permanent }

// Bind checks that store is the one that registry knows by name and that it
// belongs to that journal, and returns the journal's entry for it. A store that
// no journal has yet, and a name that no store has yet, are bound to each other.
// *Mismatch, *Crowded or branches.ErrNotInstalled when it may not be touched; any other
// error proves nothing. Whoever is about to prepare a branch, or to end one that
// it has not prepared, calls it first.
func Bind(ctx context.Context, registry Registry, name string, store branches.Store) (Registered, error) {
	keeper, ok := store.(branches.Keeper)
	if !ok {
		return Registered{Name: name}, nil // a store without markers of its own
	}
	identity, err := registry.Identify(ctx)
	if err != nil {
		return Registered{}, fmt.Errorf("rhizodat: check store %s: read journal: %w", name, err)
	}
	if identity.Moved() {
		return Registered{}, &Mismatch{Store: name, Reason: fmt.Sprintf("the journal was made at %s and is now at %s", identity.Place, identity.Here)}
	}
	place, err := placeOf(ctx, name, store)
	if err != nil {
		return Registered{}, err
	}
	if _, alone := registry.(Separate); alone && place == identity.Here {
		return Registered{}, &Crowded{Store: name, Place: place}
	}
	meta, err := keeper.Meta(ctx)
	if err != nil {
		return Registered{}, fmt.Errorf("rhizodat: check store %s: %w", name, err)
	}
	// A store that is ours already and that the journal does not know shows a
	// journal restored from before the registration: it must not take over the
	// count of sweeps that would give it away.
	sweeps := int64(0)
	if meta.JournalID == "" {
		sweeps = meta.Sweeps
		bound := meta
		bound.JournalID, bound.JournalPlace = identity.ID, identity.Here
		if _, err := keeper.Bind(ctx, meta, bound); err != nil {
			return Registered{}, fmt.Errorf("rhizodat: bind store %s: %w", name, err)
		}
		if meta, err = keeper.Meta(ctx); err != nil { // ours, or that of whoever was first
			return Registered{}, fmt.Errorf("rhizodat: check store %s: %w", name, err)
		}
	}
	if err := belongs(name, meta, identity); err != nil {
		return Registered{}, err
	}
	return register(ctx, registry, Registered{Name: name, Place: place, StoreID: meta.StoreID, Sweeps: sweeps})
}

// belongs refuses a store of another journal, and of the same journal at
// another place: a dump restored elsewhere carries the id of the first.
func belongs(name string, meta branches.Meta, identity Identity) error {
	switch {
	case meta.JournalID != identity.ID:
		return &Mismatch{Store: name, Reason: fmt.Sprintf("it belongs to journal %s at %s, this is journal %s at %s", meta.JournalID, meta.JournalPlace, identity.ID, identity.Here)}
	case meta.JournalPlace != identity.Here:
		return &Mismatch{Store: name, Reason: fmt.Sprintf("it belongs to journal %s at %s, this one carries the same id and is at %s: a copy", meta.JournalID, meta.JournalPlace, identity.Here)}
	}
	return nil
}

func placeOf(ctx context.Context, name string, store branches.Store) (branches.Place, error) {
	placer, ok := store.(branches.Placer)
	if !ok {
		return "", errors.New("rhizodat: check store " + name + ": its adapter keeps a meta row and cannot say where it is")
	}
	place, err := placer.Place(ctx)
	if err != nil {
		return "", fmt.Errorf("rhizodat: check store %s: %w", name, err)
	}
	return place, nil
}

func register(ctx context.Context, registry Registry, r Registered) (Registered, error) {
	entry, err := registry.Register(ctx, r)
	if err != nil {
		return Registered{}, fmt.Errorf("rhizodat: register store %s: %w", r.Name, err)
	}
	if entry.Place != r.Place || entry.StoreID != r.StoreID {
		return Registered{}, &Mismatch{Store: r.Name, Reason: fmt.Sprintf("the journal knows it as store %s at %s, this is store %s at %s", entry.StoreID, entry.Place, r.StoreID, r.Place)}
	}
	return entry, nil
}
