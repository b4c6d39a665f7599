package rhizodat

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestConfigRefused holds what only a Config can get wrong to its exact words;
// what a text can, dsn_test.go does.
func TestConfigRefused(t *testing.T) {
	pg := map[string]StoreConfig{"pg": {URL: "postgres://app:" + password + "@db/erp"}}
	store := func(name string, s StoreConfig) Config {
		return Config{Stores: map[string]StoreConfig{name: s}}
	}
	ready := connector{Password: password}
	tests := []struct {
		name string
		c    Config
		want string
	}{
		{"zero", Config{}, "no store; write one as name=URL, as in pg=postgres://app@db/erp"},
		{"name", store(password, pg["pg"]), "a store's name is [a-z][a-z0-9_]{0,31}"},
		{"a store called journal", store("journal", pg["pg"]), "store journal: journal is the journal's own name"},
		{"nothing", store("pg", StoreConfig{}), "store pg: it has neither a URL nor a Connector nor Options"},
		{"URL and Connector", store("pg", StoreConfig{URL: "postgres://h/a", Connector: ready}), "store pg: it has a URL and a Connector; give one of them"},
		{"Options of nobody", store("pg", StoreConfig{Options: 1}), "store pg: its Options do not say which adapter they are of; give a URL with them"},
		{"URL without a scheme", store("pg", StoreConfig{URL: password}), "store pg: its URL has no scheme"},
		{"URL that no word can hold", store("pg", StoreConfig{URL: "postgres://h/a "}), "store pg: the value begins or ends with a blank"},
		{"URL with a NUL", store("pg", StoreConfig{URL: "postgres://h/a\x00b"}), "store pg: the value has a NUL byte"},
		{"URL that is not UTF-8", store("pg", StoreConfig{URL: "postgres://h/\xff"}), "store pg: the value is not valid UTF-8"},
		{"unknown scheme", store("pg", StoreConfig{URL: "pq:" + password}), `store pg: unknown scheme; the nearest is "bolt"`},
		{"journal of a Connector that is none", Config{Stores: pg, Journal: JournalConfig{Options: 1}}, "option journal: its Options do not say which adapter they are of; give a URL with them"},
		{"negative duration", Config{Stores: pg, Retain: -time.Second}, "option retain: a duration of less than 1ms"},
		{"negative size", Config{Stores: pg, MinFree: -1}, "option min_free: not a size, as 65536, 512KiB, 64MiB or 1GiB"},
		{"negative count", Config{Stores: pg, JournalConns: -1}, "option journal_conns: not a number of 1 or more"},
		{"no such word", Config{Stores: pg, OnPending: 2}, "option on_pending: neither error nor ok"},
		{"label", Config{Stores: pg, JournalLabel: "a b"}, "option journal_label: not a label: a letter, then letters, digits and _, 32 at most"},
		{"default", Config{Stores: pg, Default: "erp"}, "option default: no store has that name; the stores are pg"},
		{"an option that reads as a store", Config{Stores: pg, ApplicationName: "bolt:" + password}, "option application_name: the value begins with a scheme, which makes it a store"},
		{"an option with a NUL", Config{Stores: pg, ApplicationName: "a\x00"}, "option application_name: the value has a NUL byte"},
		{"timeouts", Config{Stores: pg, Journal: JournalConfig{Connector: ready}, CommitTimeout: time.Minute}, "option commit_timeout: commit_timeout (1m) is not below stale_after (30s); " + timeoutWay},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.c.Validate()
			if err == nil || err.Error() != "rhizodat: check config: "+tt.want {
				t.Errorf("Validate\ngot  %v\nwant rhizodat: check config: %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), password) {
				t.Error("the error shows the password")
			}
			if text, err := tt.c.FormatDSN(); err == nil {
				t.Errorf("FormatDSN wrote %q", text)
			}
		})
	}
}

// TestValidateWithoutText: a Config may have what no DSN can.
func TestValidateWithoutText(t *testing.T) {
	withRegistry(t)
	RegisterStore("postgres", openStore)
	RegisterJournal("postgres", openJournal)
	c := Config{
		Stores: map[string]StoreConfig{
			"ready": {Connector: connector{}},
			"opts":  {Options: adapterOptions{}},
			"both":  {URL: "postgres://h/a", Options: adapterOptions{}},
		},
		Journal:     JournalConfig{Connector: connector{}},
		LockTimeout: -time.Second,
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestFormatDSNRefuses(t *testing.T) {
	stores := map[string]StoreConfig{"pg": {URL: "postgres://h/a"}}
	for want, c := range map[string]Config{
		"store pg: a Connector or Options have no place in a DSN; hand the Config to NewConnector": {
			Stores: map[string]StoreConfig{"pg": {Connector: connector{}}},
		},
		"option journal: a Connector or Options have no place in a DSN; hand the Config to NewConnector": {
			Stores: stores, Journal: JournalConfig{URL: "postgres://h/j", Options: adapterOptions{}},
		},
		"a Logger or an Observer has no place in a DSN; hand the Config to NewConnector": {
			Stores: stores, Logger: slog.New(slog.DiscardHandler),
		},
	} {
		_, err := c.FormatDSN()
		if err == nil || err.Error() != "rhizodat: check config: "+want {
			t.Errorf("got  %v\nwant rhizodat: check config: %s", err, want)
		}
	}
}

func TestFormatDSNText(t *testing.T) {
	c := Config{
		Stores: map[string]StoreConfig{
			"pg": {URL: `postgres://app:it's\@db/erp`},
			"a":  {URL: `postgres://db/a?application_name=it's a \`},
		},
		Journal: JournalConfig{URL: "file:///j.db"}, Default: "pg", MinFree: 1 << 30, LockTimeout: NoLockTimeout,
		Markers: MarkersOn, ApplicationName: "'quoted'",
	}
	const want = `a='postgres://db/a?application_name=it\'s a \\' pg=postgres://app:it's\@db/erp journal=file:///j.db ` +
		`default=pg min_free=1GiB lock_timeout=0 markers=on application_name='\'quoted\''`
	got, err := c.FormatDSN()
	if err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}
