package rhizodat

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// withRegistry gives a test a registry of its own.
func withRegistry(t *testing.T) {
	t.Helper()
	registry.mu.Lock()
	defer registry.mu.Unlock()
	stores, journals, leftOut := registry.stores, registry.journals, registry.leftOut
	registry.stores, registry.journals, registry.leftOut = map[string]StoreOpener{}, map[string]JournalOpener{}, map[string]string{}
	t.Cleanup(func() {
		registry.mu.Lock()
		defer registry.mu.Unlock()
		registry.stores, registry.journals, registry.leftOut = stores, journals, leftOut
	})
}

var errOpened = errors.New("opened")

func openStore(context.Context, string, StoreConfig, StoreEnv) (branches.Store, error) {
	return nil, errOpened
}

func openJournal(context.Context, JournalConfig, StoreEnv) (journal.Journal, error) {
	return nil, errOpened
}

// TestValidateAdapters: a known store that this program cannot open says so.
func TestValidateAdapters(t *testing.T) {
	withRegistry(t)
	RegisterStore("postgres", openStore)
	RegisterJournal("postgres", openJournal)
	leaveOut("iceberg", "rhizodat_no_iceberg")
	tests := []struct{ dsn, want string }{
		{"pg=postgres://h/a journal=postgres://h/j", ""},
		{"pg=postgres://h/a ch=clickhouse+http://h/a", "rhizodat: check config: store ch: this program has no clickhouse adapter; import a package that makes it known (rhizodat.RegisterStore)"},
		{"g=bolt+s://h/a", "rhizodat: check config: store g: this program has no drevo adapter; import a package that makes it known (rhizodat.RegisterStore)"},
		{"lake=iceberg+dir:///w", "rhizodat: check config: store lake: this program has no iceberg adapter; the build tag rhizodat_no_iceberg left it out"},
		{"pg=postgres://h/a journal=bolt://h", "rhizodat: check config: option journal: this program has no drevo adapter; import a package that makes it known (rhizodat.RegisterJournal)"},
		{"pg=postgres://h/a journal=file:///j.db", "rhizodat: check config: option journal: this program has no sqlite adapter; import a package that makes it known (rhizodat.RegisterJournal)"},
	}
	for _, tt := range tests {
		c, err := ParseDSN(tt.dsn)
		if err != nil {
			t.Fatalf("the text alone is good: %v", err)
		}
		got := ""
		if err := c.Validate(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Validate of %q\ngot  %s\nwant %s", tt.dsn, got, tt.want)
		}
	}
}

// TestRegisterScheme: a scheme becomes known by being registered.
func TestRegisterScheme(t *testing.T) {
	withRegistry(t)
	const dsn = "pg=postgres://h/a kv=mystore://h/a"
	if _, err := ParseDSN(dsn); err == nil {
		t.Fatal("mystore is known before it is registered")
	}
	RegisterStore("mystore", openStore)
	RegisterStore("postgres", openStore)
	RegisterJournal("mylog", openJournal)
	c, err := ParseDSN(dsn + " journal=mylog://h")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	open, err := storeOpener("kv", c.Stores["kv"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), "kv", c.Stores["kv"], StoreEnv{}); !errors.Is(err, errOpened) {
		t.Errorf("another opener answered: %v", err)
	}
	refused := map[string]string{
		"kv=mystor://h":                   `rhizodat: parse DSN: byte 0: store kv: unknown scheme; the nearest is "mystore"`,
		"a=mystore://h/a b=mystore://h/a": `rhizodat: parse DSN: byte 16: stores a and b: both are one place; give each its own`,
		"a=mylog://h/a":                   `rhizodat: parse DSN: byte 0: store a: mylog is for a journal, not for a store; write journal=mylog:…`,
		"a=mystore://h journal=mystore://h": `rhizodat: parse DSN: byte 14: option journal: a journal cannot be in mystore; ` +
			journalWay,
	}
	for dsn, want := range refused {
		if _, err := ParseDSN(dsn); err == nil || err.Error() != want {
			t.Errorf("ParseDSN(%q)\ngot  %v\nwant %s", dsn, err, want)
		}
	}
	var names []string
	for _, s := range registeredSchemes() {
		names = append(names, s.name)
	}
	if !slices.Equal(names, []string{"mylog", "mystore", "postgres"}) {
		t.Errorf("registered: %v", names)
	}
}

func TestRegisterPanics(t *testing.T) {
	withRegistry(t)
	RegisterStore("mystore", openStore)
	RegisterJournal("mystore", openJournal)
	for name, register := range map[string]func(){
		"twice":                func() { RegisterStore("mystore", openStore) },
		"journal twice":        func() { RegisterJournal("mystore", openJournal) },
		"no opener":            func() { RegisterStore("other", nil) },
		"no journal's opener":  func() { RegisterJournal("other", nil) },
		"not a scheme":         func() { RegisterStore("My_Store", openStore) },
		"a journal's scheme":   func() { RegisterStore("file", openStore) },
		"a store's scheme":     func() { RegisterJournal("clickhouse", openJournal) },
		"a scheme of no store": func() { RegisterStore("neo4j", openStore) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			register()
		})
	}
}
