// Package journaltest is what every journal has to pass: the promises of
// package journal, one item each.
//
// The suite is itself tested: against a journal that answers nil to everything
// each of its items fails.
package journaltest

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/journal"
)

// Open opens one and the same journal again with other options.
type Open func(opts journal.Options) journal.Journal

// Fresh makes an installed, empty journal for one item and returns how to open
// it. What it makes and what is opened is cleaned up by tb.
type Fresh func(tb testing.TB) Open

// Item is one promise.
type Item struct {
	Name string
	Run  func(b *Bed)
}

// Items lists the suite. A journal of its own is made for each.
func Items() []Item {
	var all []Item
	for _, group := range [][]Item{
		transitions, races, contents, listings, annotations, registrations, compactions, clocks, places,
		leases, steps, fences,
	} {
		all = append(all, group...)
	}
	return all
}

// Exercise runs every item as a subtest.
func Exercise(t *testing.T, fresh Fresh) {
	t.Helper()
	for _, item := range Items() {
		t.Run(item.Name, func(t *testing.T) { item.Run(NewBed(t, fresh)) })
	}
}
