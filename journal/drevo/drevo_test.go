package drevo_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/drevo"
	"github.com/rhizodat/rhizodat-go/journal/journaltest"
)

func TestConformance(t *testing.T) {
	journaltest.Exercise(t, func(tb testing.TB) journaltest.Open {
		tb.Helper()
		location := drevotest.Server(tb).Graph(tb, "journal").URL()
		install(tb, open(tb, location, journal.Options{}))
		return func(opts journal.Options) journal.Journal { return open(tb, location, opts) }
	})
}

func open(tb testing.TB, location string, opts journal.Options) *drevo.Journal {
	tb.Helper()
	j, err := drevo.Open(location, drevo.Options{Options: opts})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := j.Close(); err != nil {
			tb.Error(err)
		}
	})
	return j
}

func install(tb testing.TB, j branches.Installer) {
	tb.Helper()
	if err := j.Install(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}
