package postgres_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/journaltest"
	"github.com/rhizodat/rhizodat-go/journal/postgres"
)

func TestConformance(t *testing.T) {
	journaltest.Exercise(t, schemas(t, pgtest.Server(t).Database(t, "journal")))
}

// TestProtocolModes runs what depends on how values travel in every mode of
// pgx: PgBouncer users choose theirs.
func TestProtocolModes(t *testing.T) {
	base := pgtest.Server(t).Database(t, "journal")
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			fresh := schemas(t, with(base, "default_query_exec_mode", mode))
			ran := 0
			for _, item := range journaltest.Items() {
				group, _, _ := strings.Cut(item.Name, "/")
				switch group {
				case "contents", "annotate", "registry", "compaction", "lease", "step", "fence", "race":
				default:
					continue
				}
				ran++
				t.Run(item.Name, func(t *testing.T) { item.Run(journaltest.NewBed(t, fresh)) })
			}
			if ran < 30 {
				t.Errorf("ran %d items", ran)
			}
		})
	}
}

var schemaCount atomic.Int64

// schemas makes a journal in a schema of its own for each item: that is much
// cheaper than a database.
func schemas(t *testing.T, base string) journaltest.Fresh {
	t.Helper()
	return func(tb testing.TB) journaltest.Open {
		tb.Helper()
		dsn := with(base, "schema", fmt.Sprintf("Item %d", schemaCount.Add(1)))
		install(tb, open(tb, dsn, journal.Options{}))
		return func(opts journal.Options) journal.Journal { return open(tb, dsn, opts) }
	}
}

// with adds a parameter to a URL.
func with(dsn, key, value string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic("a DSN of pgtest does not parse")
	}
	query := u.Query()
	query.Set(key, value)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // pgx takes + as libpq does
	return u.String()
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

// installed opens a journal in a database of its own.
func installed(tb testing.TB, c *pgtest.Cluster) (j journal.Journal, dsn string) {
	tb.Helper()
	dsn = c.Database(tb, "journal")
	j = open(tb, dsn, journal.Options{})
	install(tb, j)
	return j, dsn
}

func session(tb testing.TB, j journal.Journal) journal.Session {
	tb.Helper()
	s, err := j.Session(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Release)
	return s
}

func newTxn(tb testing.TB) branches.TxnID {
	tb.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		tb.Fatal(err)
	}
	return txn
}

// active writes a record.
func active(tb testing.TB, s journal.Session) journal.Record {
	tb.Helper()
	txn := newTxn(tb)
	rec := journal.Record{Txn: txn, TxTime: hlc.FromMillis(time.Now().UnixMilli()), Branches: []journal.Branch{
		{Store: "a", GID: branches.NewGID(txn, "a"), TwoPhase: true},
	}}
	if err := s.Create(tb.Context(), &rec); err != nil {
		tb.Fatal(err)
	}
	return rec
}

func decision(rec journal.Record) journal.Decision {
	return journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime, WithPrepare: true}
}

func expectState(tb testing.TB, s journal.Session, txn branches.TxnID, want journal.State) {
	tb.Helper()
	rec, err := s.Read(tb.Context(), txn)
	if err != nil || rec.State != want {
		tb.Fatalf("record is %q, %v, want %s", rec.State, err, want)
	}
}
