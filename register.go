package rhizodat

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// StoreOpener opens the store that cfg describes. It must not connect: one
// store's outage must not stop the others.
type StoreOpener func(ctx context.Context, name string, cfg StoreConfig, env StoreEnv) (branches.Store, error)

// JournalOpener opens the journal that cfg describes, without connecting.
type JournalOpener func(ctx context.Context, cfg JournalConfig, env StoreEnv) (journal.Journal, error)

// StoreEnv is what an adapter learns of the whole it is a part of.
type StoreEnv struct {
	// Config is the connector's own, with every default filled in. Read only.
	Config *Config
	// Wall is the connector's wall clock.
	Wall hlc.Wall
	// Clock stamps what the connector commits; nil stands for one of its own.
	Clock *hlc.Clock

	// journal is the connector's, nil without one. It is opened after the stores.
	journal func() journal.Journal
}

// registry is written by init functions and read by every connector.
var registry = struct {
	mu       sync.RWMutex
	stores   map[string]StoreOpener
	journals map[string]JournalOpener
	leftOut  map[string]string // adapter -> the build tag that left it out
}{
	stores:   map[string]StoreOpener{},
	journals: map[string]JournalOpener{},
	leftOut:  map[string]string{},
}

// RegisterStore makes scheme known as a store's: from then on a value of a DSN
// that begins with scheme and ":" is a store, which open opens. It is meant for
// init functions, and panics when open is nil, scheme is none (RFC 3986 §3.1,
// lower case) or taken.
func RegisterStore(scheme string, open StoreOpener) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	_, taken := registry.stores[scheme]
	mustRegister(scheme, open == nil, taken, storeScheme)
	registry.stores[scheme] = open
}

// RegisterJournal makes scheme known as a journal's; else as [RegisterStore].
func RegisterJournal(scheme string, open JournalOpener) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	_, taken := registry.journals[scheme]
	mustRegister(scheme, open == nil, taken, journalScheme)
	registry.journals[scheme] = open
}

func mustRegister(name string, none, taken bool, fits func(scheme) bool) {
	i := slices.IndexFunc(schemes, func(s scheme) bool { return s.name == name })
	switch {
	case none:
		panic("rhizodat: register scheme " + name + ": the opener is nil")
	case !validScheme(name):
		panic("rhizodat: register scheme: not a scheme's name: " + name)
	case taken, i >= 0 && !fits(schemes[i]):
		panic("rhizodat: register scheme " + name + ": it is taken")
	}
}

// leaveOut records that a build tag left an adapter out, so that a DSN which
// names one of its schemes can say so.
func leaveOut(adapter, tag string) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	registry.leftOut[adapter] = tag
}

// storeOpener finds what opens a store, or says that this program cannot.
func storeOpener(name string, cfg StoreConfig) (StoreOpener, error) {
	registry.mu.RLock()
	open, linked := registry.stores[cfg.Scheme()]
	registry.mu.RUnlock()
	if !linked {
		return nil, notLinked(storeFault(name, "", ""), cfg.Scheme(), "RegisterStore")
	}
	return open, nil
}

// journalOpener finds what opens the journal, or says that this program cannot.
func journalOpener(cfg JournalConfig) (JournalOpener, error) {
	registry.mu.RLock()
	open, linked := registry.journals[cfg.Scheme()]
	registry.mu.RUnlock()
	if !linked {
		return nil, notLinked(optionFault(journalKey, ""), cfg.Scheme(), "RegisterJournal")
	}
	return open, nil
}

func notLinked(fault *DSNError, name, register string) *DSNError {
	s, _ := findScheme(name)
	adapter := name
	if s.adapter != nil {
		adapter = s.adapter.name
	}
	fault.Reason = "this program has no " + adapter + " adapter"
	fault.Way = "import a package that makes it known (rhizodat." + register + ")"
	registry.mu.RLock()
	defer registry.mu.RUnlock()
	if tag := registry.leftOut[adapter]; tag != "" {
		fault.Way = "the build tag " + tag + " left it out"
	}
	return fault
}

// registeredScheme describes a scheme that is not in the table.
func registeredScheme(name string) (scheme, bool) {
	registry.mu.RLock()
	_, forStore := registry.stores[name]
	_, forJournal := registry.journals[name]
	registry.mu.RUnlock()
	a := &adapter{name: name, place: wholePlace, shared: "both are one place", apart: "give each its own"}
	return scheme{name: name, adapter: a, store: forStore, journal: forJournal}, forStore || forJournal
}

// registeredSchemes lists every scheme that has an opener, by name.
func registeredSchemes() []scheme {
	registry.mu.RLock()
	names := slices.Collect(maps.Keys(registry.stores))
	names = slices.AppendSeq(names, maps.Keys(registry.journals))
	registry.mu.RUnlock()
	slices.Sort(names)
	found := make([]scheme, 0, len(names))
	for _, name := range slices.Compact(names) {
		s, _ := registeredScheme(name)
		found = append(found, s)
	}
	return found
}
