package rhizodat

import (
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Validate refuses, with a [*DSNError] and without connecting, everything that
// can be seen to be wrong: what [ParseDSN] refuses in a text, and a store or
// journal whose adapter this program does not have. What only the servers know
// (two stores in one place under two names, a missing marker table) is found
// when they are first reached.
func (c *Config) Validate() error {
	if fault := c.check(); fault != nil {
		return fault
	}
	return c.checkAdapters()
}

// check is everything but the adapters. Its faults have no offset.
func (c *Config) check() *DSNError {
	for _, check := range []func() *DSNError{c.checkStores, c.checkJournal, c.checkOptions, c.checkDefault, c.checkPlaces, c.checkTimeouts} {
		if fault := check(); fault != nil {
			return fault
		}
	}
	return nil
}

func (c *Config) checkStores() *DSNError {
	if len(c.Stores) == 0 {
		return textFault("no store", "write one as name=URL, as in pg=postgres://app@db/erp")
	}
	for _, name := range c.StoreNames() {
		if fault := nameFault(name); fault != nil {
			return fault
		}
		reason, way, near := storeReason(c.Stores[name], storeScheme)
		if reason != "" {
			fault := storeFault(name, reason, way)
			fault.Nearest = near
			return fault
		}
	}
	return nil
}

func (c *Config) checkJournal() *DSNError {
	if c.Journal.IsZero() {
		return nil
	}
	reason, way, near := storeReason(StoreConfig(c.Journal), journalScheme)
	if s, _ := findScheme(c.Journal.Scheme()); reason == "" && s.adapter == fileAdapter && c.Journal.URL != "" {
		reason, way = fileReason(c.Journal.URL)
	}
	if reason == "" {
		return nil
	}
	fault := optionFault(journalKey, reason)
	fault.Nearest = near
	fault.Way = first(way, "a journal is postgres://, bolt:// or, for one host, file:///")
	return fault
}

func nameFault(name string) *DSNError {
	switch {
	case !branches.ValidName(name):
		return storeFault(name, "a store's name is [a-z][a-z0-9_]{0,31}", "")
	case name == journalKey:
		return storeFault(name, "journal is the journal's own name", "")
	}
	return nil
}

// storeReason says what is wrong with a store or a journal by itself.
func storeReason(s StoreConfig, fits func(scheme) bool) (reason, way, near string) {
	name := s.Scheme()
	switch {
	case s.URL != "" && s.Connector != nil:
		return "it has a URL and a Connector", "give one of them", ""
	case s.URL == "" && name == "" && s.Options != nil:
		return "its Options do not say which adapter they are of", "give a URL with them", ""
	case s.URL == "" && name == "":
		return "it has neither a URL nor a Connector nor Options", "", ""
	}
	if reason := valueReason(s.URL); s.URL != "" && reason != "" {
		return reason, "", ""
	}
	known, ok := findScheme(name)
	switch {
	case name == "":
		return "its URL has no scheme", "", ""
	case !ok:
		return "unknown scheme", "", nearestScheme(name, fits)
	case known.refused != "":
		return known.refused, known.way, ""
	case !fits(known) && known.journal:
		return known.name + " is for a journal, not for a store", "write journal=" + known.name + ":…", ""
	case !fits(known):
		return "a journal cannot be in " + known.adapter.name, "", ""
	case s.URL == "":
		return "", "", ""
	}
	if _, reason := splitURL(s.URL); reason != "" {
		return reason, "", ""
	}
	return "", "", ""
}

// fileReason: a local journal is allowed only when it is plainly written so.
func fileReason(url string) (reason, way string) {
	path, found := strings.CutPrefix(url, "file:///")
	path, _, _ = strings.Cut(path, "?")
	if !found || path == "" || strings.HasSuffix(path, "/") {
		return "a local journal is a file's full path", "write file:///var/lib/app/journal.db"
	}
	return "", ""
}

// checkOptions writes every field as text and reads it back, so that a Config
// filled in by a program is held to the same rules as a DSN.
func (c *Config) checkOptions() *DSNError {
	for _, o := range options {
		text := o.get(c)
		if text == "" || o.key == journalKey {
			continue
		}
		if reason := valueReason(text); reason != "" {
			return optionFault(o.key, reason)
		}
		if _, known := knownScheme(text); known {
			return optionFault(o.key, "the value begins with a scheme, which makes it a store")
		}
		if reason := o.set(&Config{}, text); reason != "" {
			return optionFault(o.key, reason)
		}
	}
	return nil
}

func (c *Config) checkDefault() *DSNError {
	if _, ok := c.Stores[c.Default]; ok || c.Default == "" {
		return nil
	}
	fault := optionFault("default", "no store has that name")
	fault.Way = "the stores are " + strings.Join(c.StoreNames(), ", ")
	return fault
}

// checkPlaces refuses two stores whose markers would share a place, and a drevo
// journal on the graph of a store: a prepared branch's fence would block the
// coordinator's own writes.
func (c *Config) checkPlaces() *DSNError {
	places := map[string]string{}
	for _, name := range c.StoreNames() {
		url := c.Stores[name].URL
		place, ok := textPlace(url)
		if !ok {
			continue
		}
		s, _ := knownScheme(url)
		if other, taken := places[place]; taken {
			fault := storeFault(other, s.adapter.shared, s.adapter.apart)
			fault.Other = name
			return fault
		}
		places[place] = name
	}
	s, known := knownScheme(c.Journal.URL)
	if !known || s.adapter != drevoAdapter {
		return nil
	}
	place, _ := textPlace(c.Journal.URL)
	if name, taken := places[place]; taken {
		return storeFault(name, "the journal is on the graph of this store, whose fence would block the decision", "give the journal its own graph")
	}
	return nil
}

// checkTimeouts: a record that recovery takes while its coordinator may still
// decide is aborted under a healthy commit.
func (c *Config) checkTimeouts() *DSNError {
	if len(c.Stores) < 2 && c.Journal.IsZero() {
		return nil
	}
	d := c.WithDefaults()
	if d.CommitTimeout < d.StaleAfter {
		return nil
	}
	key := "commit_timeout"
	if c.CommitTimeout == 0 {
		key = "stale_after"
	}
	fault := optionFault(key, fmt.Sprintf("commit_timeout (%s) is not below stale_after (%s)",
		formatDuration(d.CommitTimeout), formatDuration(d.StaleAfter)))
	fault.Way = "recovery would abort commits that are still under way"
	return fault
}

// checkAdapters refuses what this program cannot open.
func (c *Config) checkAdapters() error {
	for _, name := range c.StoreNames() {
		if _, err := storeOpener(name, c.Stores[name]); err != nil {
			return err
		}
	}
	if c.Journal.IsZero() {
		return nil
	}
	_, err := journalOpener(c.Journal)
	return err
}
