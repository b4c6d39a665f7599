package journal_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/sqlite"
)

// keeper is a store that keeps a meta row.
type keeper struct {
	branches.Store // nothing of it is called
	meta           branches.Meta
	place          branches.Place
	err            error
	first          func() // another binder, who comes first
}

func (k *keeper) Meta(context.Context) (branches.Meta, error)   { return k.meta, k.err }
func (k *keeper) Place(context.Context) (branches.Place, error) { return k.place, nil }
func (k *keeper) RaiseSweeps(context.Context, int64) error      { return nil }
func (k *keeper) Bind(_ context.Context, old, bound branches.Meta) (bool, error) {
	if k.first != nil {
		k.first()
	}
	if k.meta != old {
		return false, nil
	}
	k.meta = bound
	return true, nil
}

// registryOf makes a journal.
func registryOf(t *testing.T) (journal.Registry, journal.Identity) {
	t.Helper()
	j, err := sqlite.Open("file://"+filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	if err := j.(branches.Installer).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	registry := j.(journal.Registry)
	id, err := registry.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return registry, id
}

func TestBind(t *testing.T) {
	registry, id := registryOf(t)
	store := &keeper{meta: branches.Meta{StoreID: "s1", Sweeps: 4}, place: "pg:1/d/x"}
	want := journal.Registered{Name: "a", Place: "pg:1/d/x", StoreID: "s1", Sweeps: 4}
	for range 2 { // new to both, then known to both
		got, err := journal.Bind(t.Context(), registry, "a", store)
		if err != nil || got != want {
			t.Fatalf("Bind: %+v, %v, want %+v", got, err, want)
		}
		if store.meta.JournalID != id.ID || store.meta.JournalPlace != id.Here {
			t.Fatalf("the store was bound to %+v", store.meta)
		}
	}
	for name, other := range map[string]*keeper{
		"knows it as":                 {meta: store.meta, place: "pg:2/d/x"},
		"knows it as store":           {meta: branches.Meta{StoreID: "s2", JournalID: id.ID, JournalPlace: id.Here}, place: store.place},
		"belongs to journal other":    {meta: branches.Meta{StoreID: "s1", JournalID: "other"}, place: store.place},
		"belongs to journal " + id.ID: {meta: branches.Meta{StoreID: "s1", JournalID: id.ID, JournalPlace: "elsewhere"}, place: store.place},
		"belongs to journal first": {
			meta: branches.Meta{StoreID: "s1"}, place: store.place,
		},
	} {
		if strings.HasSuffix(name, "first") {
			other.first = func() { other.meta.JournalID = "first" }
		}
		_, err := journal.Bind(t.Context(), registry, "a", other)
		mismatch, ok := errors.AsType[*journal.Mismatch](err)
		if !ok || mismatch.Store != "a" || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "adopt") {
			t.Errorf("%s: %v, want a *Mismatch that says so and names the way out", name, err)
		}
		if ok && mismatch.Kind() != branches.Permanent {
			t.Errorf("%s is %v", name, mismatch.Kind())
		}
	}
	if stores, err := registry.Stores(t.Context()); err != nil || len(stores) != 1 || stores[0] != want {
		t.Errorf("the registry holds %+v, %v", stores, err)
	}
}

// A journal that was restored elsewhere binds nothing: the stores are those of
// the first.
func TestBindOfAMovedJournal(t *testing.T) {
	registry, _ := registryOf(t)
	if err := registry.(journal.Adopter).Adopt(t.Context(), "elsewhere"); err != nil {
		t.Fatal(err)
	}
	store := &keeper{meta: branches.Meta{StoreID: "s1"}, place: "pg:1/d/x"}
	_, err := journal.Bind(t.Context(), registry, "a", store)
	if _, ok := errors.AsType[*journal.Mismatch](err); !ok || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("Bind: %v, want a *Mismatch with both places", err)
	}
	if store.meta.JournalID != "" {
		t.Errorf("it bound the store: %+v", store.meta)
	}
}

// A journal that was restored from before it knew the store must not learn from
// the store how many sweeps there were: that count is what gives it away.
func TestBindOfAForgottenStore(t *testing.T) {
	registry, id := registryOf(t)
	store := &keeper{
		meta:  branches.Meta{StoreID: "s1", JournalID: id.ID, JournalPlace: id.Here, Sweeps: 9},
		place: "pg:1/d/x",
	}
	if got, err := journal.Bind(t.Context(), registry, "a", store); err != nil || got.Sweeps != 0 {
		t.Errorf("Bind: %+v, %v, want an entry with 0 sweeps", got, err)
	}
}

func TestBindOfStoresWithoutMeta(t *testing.T) {
	registry, _ := registryOf(t)
	var plain struct{ branches.Store }
	if got, err := journal.Bind(t.Context(), registry, "plain", plain); err != nil || got.Name != "plain" {
		t.Errorf("a store without a meta row: %+v, %v", got, err)
	}
	missing := &keeper{err: branches.ErrNotInstalled}
	if _, err := journal.Bind(t.Context(), registry, "a", missing); !errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("a store that is not installed: %v", err)
	}
	if stores, err := registry.Stores(t.Context()); err != nil || len(stores) != 0 {
		t.Errorf("the registry holds %+v, %v", stores, err)
	}
}

// alone is a journal that no store may share a place with.
type alone struct{ journal.Registry }

func (alone) Separate() {}

// A journal that has to be alone is refused where a store is, before anything is
// written; one that has not is none the worse.
func TestBindOfAStoreInTheJournalsPlace(t *testing.T) {
	registry, id := registryOf(t)
	store := &keeper{meta: branches.Meta{StoreID: "s1"}, place: id.Here}
	_, err := journal.Bind(t.Context(), alone{registry}, "a", store)
	crowded, ok := errors.AsType[*journal.Crowded](err)
	if !ok || crowded.Store != "a" || crowded.Place != id.Here || crowded.Kind() != branches.Permanent {
		t.Errorf("Bind: %v, want *Crowded that names the store and the place", err)
	}
	if stores, err := registry.Stores(t.Context()); err != nil || len(stores) != 0 || store.meta.JournalID != "" {
		t.Errorf("the registry holds %+v, %v; the store %+v", stores, err, store.meta)
	}
	elsewhere := &keeper{meta: branches.Meta{StoreID: "s2"}, place: id.Here + "x"}
	if _, err := journal.Bind(t.Context(), alone{registry}, "b", elsewhere); err != nil {
		t.Errorf("Bind of a store elsewhere: %v", err)
	}
	if _, err := journal.Bind(t.Context(), registry, "a", store); err != nil {
		t.Errorf("Bind to a journal that need not be alone: %v", err)
	}
}
