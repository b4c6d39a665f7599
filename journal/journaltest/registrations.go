package journaltest

import (
	"errors"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

var registrations = []Item{
	{"registry/the journal says who and where it is", identify},
	{"registry/a name is bound once", register},
	{"registry/rebinding expects what stands", rebind},
	{"registry/a sweep is counted once", sweeps},
	{"registry/the journal can be adopted", adopt},
	{"install/a second time changes nothing", installAgain},
}

func (b *Bed) registry() journal.Registry {
	b.Helper()
	r, ok := b.Journal.(journal.Registry)
	if !ok {
		b.Fatalf("%T is no journal.Registry", b.Journal)
	}
	return r
}

func (b *Bed) identity() journal.Identity {
	b.Helper()
	id, err := b.registry().Identify(b.Context())
	b.must("Identify", err)
	if id.ID == "" || id.Place == "" || id.Here == "" || id.Layout <= 0 {
		b.Fatalf("Identify answered %+v", id)
	}
	return id
}

func identify(b *Bed) {
	id := b.identity()
	if id.Moved() {
		b.Fatalf("a new journal has moved: %+v", id)
	}
	again, err := b.Open(journal.Options{}).(journal.Registry).Identify(b.Context())
	b.must("Identify", err)
	if again != id {
		b.Fatalf("opened again it is %+v, was %+v", again, id)
	}
}

func (b *Bed) expectStores(want ...journal.Registered) {
	b.Helper()
	got, err := b.registry().Stores(b.Context())
	b.must("Stores", err)
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("Stores (-want +got):\n%s", diff)
	}
}

func register(b *Bed) {
	r := b.registry()
	b.expectStores()
	first := journal.Registered{Name: "a", Place: "pg:1/it's/x", StoreID: "s1", Sweeps: 3}
	second := journal.Registered{Name: "b", Place: "pg:1/d/y", StoreID: "s2"}
	for _, want := range []journal.Registered{second, first} {
		if got, err := r.Register(b.Context(), want); err != nil || got != want {
			b.Fatalf("Register: %+v, %v, want %+v", got, err, want)
		}
	}
	if got, err := r.Register(b.Context(), journal.Registered{Name: "a", Place: "elsewhere"}); err != nil || got != first {
		b.Fatalf("Register of a taken name: %+v, %v, want the one that stands", got, err)
	}
	b.expectStores(first, second)
}

func rebind(b *Bed) {
	r := b.registry()
	old := journal.Registered{Name: "a", Place: "p", StoreID: "s", Sweeps: 5}
	_, err := r.Register(b.Context(), old)
	b.must("Register", err)
	for _, wrong := range []journal.Registered{
		{Name: "a", Place: "other", StoreID: "s"}, {Name: "a", Place: "p", StoreID: "other"},
	} {
		if won, err := r.Rebind(b.Context(), wrong, journal.Registered{Name: "a", Place: "q"}); err != nil || won {
			b.Fatalf("Rebind of %+v: %t, %v", wrong, won, err)
		}
	}
	b.expectStores(old)
	// A store that is set back must not take the counter with it.
	if won, err := r.Rebind(b.Context(), old, journal.Registered{Name: "a", Place: "q", StoreID: "t", Sweeps: 2}); err != nil || !won {
		b.Fatalf("Rebind: %t, %v", won, err)
	}
	b.expectStores(journal.Registered{Name: "a", Place: "q", StoreID: "t", Sweeps: 5})
	now := journal.Registered{Name: "a", Place: "q", StoreID: "t"}
	if won, err := r.Rebind(b.Context(), now, journal.Registered{Name: "a", Place: "q", StoreID: "t", Sweeps: 9}); err != nil || !won {
		b.Fatalf("Rebind: %t, %v", won, err)
	}
	b.expectStores(journal.Registered{Name: "a", Place: "q", StoreID: "t", Sweeps: 9})
	if won, err := r.Rebind(b.Context(), now, journal.Registered{Name: "c", Place: "q", StoreID: "t"}); err == nil || won {
		b.Fatalf("Rebind gave the store another name: %t, %v", won, err)
	}
}

func sweeps(b *Bed) {
	r := b.registry()
	_, err := r.Register(b.Context(), journal.Registered{Name: "a", Place: "p", StoreID: "s", Sweeps: 7})
	b.must("Register", err)
	var mu sync.Mutex
	var wg sync.WaitGroup
	won := 0
	for range writers {
		wg.Go(func() {
			n, err := r.RaiseSweeps(b.Context(), "a", 7)
			_, refused := errors.AsType[*journal.Conflict](err)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && n == 8:
				won++
			case !refused:
				b.Errorf("RaiseSweeps: %d, %v", n, err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		b.Fatalf("%d workers counted the same sweep, want 1", won)
	}
	if _, err := r.RaiseSweeps(b.Context(), "nobody", 0); err == nil {
		b.Fatalf("RaiseSweeps counted for a store that is not registered")
	}
	b.expectStores(journal.Registered{Name: "a", Place: "p", StoreID: "s", Sweeps: 8})
}

func adopt(b *Bed) {
	before := b.identity()
	a, ok := b.Journal.(journal.Adopter)
	if !ok {
		b.Fatalf("%T is no journal.Adopter", b.Journal)
	}
	b.must("Adopt", a.Adopt(b.Context(), "elsewhere"))
	moved := b.identity()
	if !moved.Moved() || moved.Place != "elsewhere" || moved.Here != before.Here || moved.ID != before.ID {
		b.Fatalf("adopted elsewhere it is %+v", moved)
	}
	b.must("Adopt", a.Adopt(b.Context(), moved.Here))
	if now := b.identity(); now != before {
		b.Fatalf("adopted here it is %+v, was %+v", now, before)
	}
}

func installAgain(b *Bed) {
	before := b.identity()
	s := b.session()
	txn := b.in(s, journal.StateCommitted)
	i, ok := b.Journal.(branches.Installer)
	if !ok {
		b.Fatalf("%T is no branches.Installer", b.Journal)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := i.Install(b.Context()); err != nil {
				b.Errorf("Install: %v", err)
			}
		})
	}
	wg.Wait()
	if now := b.identity(); now != before {
		b.Fatalf("installed again it is %+v, was %+v", now, before)
	}
	b.expectState(s, txn, journal.StateCommitted)
}
