package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/journaltest"
	"github.com/rhizodat/rhizodat-go/journal/sqlite"
)

func TestConformance(t *testing.T) {
	journaltest.Exercise(t, fresh)
}

func fresh(tb testing.TB) journaltest.Open {
	tb.Helper()
	location := "file://" + filepath.Join(tb.TempDir(), "journal.db")
	install(tb, open(tb, location, journal.Options{}))
	return func(opts journal.Options) journal.Journal { return open(tb, location, opts) }
}

func open(tb testing.TB, location string, opts journal.Options) journal.Journal {
	tb.Helper()
	j, err := sqlite.Open(location, opts)
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

func install(tb testing.TB, j journal.Journal) {
	tb.Helper()
	if err := j.(branches.Installer).Install(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}
