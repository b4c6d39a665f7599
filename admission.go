package rhizodat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// admission remembers which stores were found to be what the journal takes them
// for. Only good answers are kept.
type admission struct {
	mu     sync.RWMutex
	seeded bool // the clock knows the journal's high-water mark
	places map[string]branches.Place
	bound  map[string]bool
}

// SharedPlace means that two stores keep their markers in one place, so that one's marker
// would make the other's branch look applied, or wait for it for ever.
type SharedPlace struct {
	Stores [2]string
	Place  branches.Place
}

func (e *SharedPlace) Error() string {
	return fmt.Sprintf("rhizodat: check stores %s and %s: both keep their markers at %s: give each its own schema, database or graph", e.Stores[0], e.Stores[1], e.Place)
}

// Kind is Permanent: only another configuration helps.
func (e *SharedPlace) Kind() branches.Kind { return branches.Permanent }

// admit is asked before S4 of every unit: each store is the one that the
// journal knows by its name, and no two are in one place.
func (c *Connector) admit(ctx context.Context, names []string) error {
	a := &c.admission
	if a.known(names) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.places == nil {
		a.places, a.bound = map[string]branches.Place{}, map[string]bool{}
	}
	if err := c.seedClock(ctx); err != nil {
		return err
	}
	for _, name := range names {
		if a.bound[name] {
			continue
		}
		if err := c.locate(ctx, name); err != nil {
			return err
		}
		if registry, ok := c.journal.(journal.Registry); ok {
			if _, err := journal.Bind(ctx, registry, name, c.stores[name]); err != nil {
				return err
			}
		}
		a.bound[name] = true
	}
	return nil
}

// known reports whether every store has been found to be in its place.
func (a *admission) known(names []string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return !slices.ContainsFunc(names, func(n string) bool { return !a.bound[n] })
}

// locate learns where a store is, and refuses a place that another one has.
func (c *Connector) locate(ctx context.Context, name string) error {
	placer, ok := c.stores[name].(branches.Placer)
	if !ok {
		return nil
	}
	place, err := placer.Place(ctx)
	if err != nil {
		return fmt.Errorf("rhizodat: check store %s: %w", name, err)
	}
	for other, p := range c.admission.places {
		if p == place && other != name {
			names := [2]string{name, other}
			slices.Sort(names[:])
			return &SharedPlace{Stores: names, Place: place}
		}
	}
	c.admission.places[name] = place
	return nil
}

// seedClock makes this process's clock go on from the journal's highest time.
func (c *Connector) seedClock(ctx context.Context) error {
	if c.admission.seeded {
		return nil
	}
	if t, ok := c.journal.(journal.Timekeeper); ok {
		high, err := t.HighWater(ctx)
		if err != nil {
			return fmt.Errorf("rhizodat: read journal's clock: %w", err)
		}
		// Raise, not Observe: a wall clock set back by more than the drift must
		// not keep this process from going on after its own earlier times. S4
		// keeps times that are too far ahead out of the journal.
		c.clock.Raise(high)
	}
	c.admission.seeded = true
	return nil
}

// check is Ping's and doctor's look at the whole deployment: every store is
// where it should be, and the journal answers.
func (c *Connector) check(ctx context.Context) error {
	if c.journal != nil {
		return c.admit(ctx, c.cfg.StoreNames())
	}
	c.admission.mu.Lock()
	defer c.admission.mu.Unlock()
	if c.admission.places == nil {
		c.admission.places, c.admission.bound = map[string]branches.Place{}, map[string]bool{}
	}
	var errs []error
	for _, name := range c.cfg.StoreNames() {
		errs = append(errs, c.locate(ctx, name))
	}
	return errors.Join(errs...)
}
