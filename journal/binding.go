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

// Bind checks that store is the one that registry knows by name and that it
// belongs to that journal, and returns the journal's entry for it. A store that
// no journal has yet, and a name that no store has yet, are bound to each other.
// *Mismatch, or branches.ErrNotInstalled, when it may not be touched; any other
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
	return register(ctx, registry, name, store, meta.StoreID, sweeps)
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

func register(ctx context.Context, registry Registry, name string, store branches.Store, storeID string, sweeps int64) (Registered, error) {
	placer, ok := store.(branches.Placer)
	if !ok {
		return Registered{}, errors.New("rhizodat: check store " + name + ": its adapter keeps a meta row and cannot say where it is")
	}
	place, err := placer.Place(ctx)
	if err != nil {
		return Registered{}, fmt.Errorf("rhizodat: check store %s: %w", name, err)
	}
	entry, err := registry.Register(ctx, Registered{Name: name, Place: place, StoreID: storeID, Sweeps: sweeps})
	if err != nil {
		return Registered{}, fmt.Errorf("rhizodat: register store %s: %w", name, err)
	}
	if entry.Place != place || entry.StoreID != storeID {
		return Registered{}, &Mismatch{Store: name, Reason: fmt.Sprintf("the journal knows it as store %s at %s, this is store %s at %s", entry.StoreID, entry.Place, storeID, place)}
	}
	return entry, nil
}
