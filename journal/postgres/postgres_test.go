package postgres_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/journaltest"
	"github.com/rhizodat/rhizodat-go/journal/postgres"
)

func TestConformance(t *testing.T) {
	journaltest.Exercise(t, fresh)
}

func fresh(tb testing.TB) journaltest.Open {
	tb.Helper()
	dsn := pgtest.Server(tb).Database(tb, "journal")
	install(tb, open(tb, dsn, journal.Options{}))
	return func(opts journal.Options) journal.Journal { return open(tb, dsn, opts) }
}

func open(tb testing.TB, dsn string, opts journal.Options) journal.Journal {
	tb.Helper()
	j, err := postgres.Open(dsn, postgres.Options{Options: opts})
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
