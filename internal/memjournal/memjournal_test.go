package memjournal_test

import (
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/memjournal"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/journaltest"
)

// What tests rest on keeps the promises of a real journal.
func TestConformance(t *testing.T) {
	ran := 0
	for _, item := range journaltest.Items() {
		if group, _, _ := strings.Cut(item.Name, "/"); group != "lease" && group != "step" {
			continue
		}
		ran++
		t.Run(item.Name, func(t *testing.T) {
			item.Run(journaltest.NewBed(t, func(testing.TB) journaltest.Open {
				j := memjournal.New(hlc.System)
				return func(journal.Options) journal.Journal { return j }
			}))
		})
	}
	if ran < 15 {
		t.Errorf("ran %d items", ran)
	}
}

func TestProbe(t *testing.T) {
	j := memjournal.New(hlc.System)
	l, _ := j.Leases(t.Context())
	s, _ := j.Steps(t.Context())
	if err := journal.Probe(t.Context(), l, s); err != nil {
		t.Error(err)
	}
}
