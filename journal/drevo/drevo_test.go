package drevo_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
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

// bed is a journal and one session of it.
type bed struct {
	graph   *drevotest.Graph
	journal *drevo.Journal
	session journal.Session
}

// newBed installs a journal in a new graph of cluster.
func newBed(t *testing.T, cluster *drevotest.Cluster) *bed {
	t.Helper()
	graph := cluster.Graph(t, "journal")
	j := open(t, graph.URL(), journal.Options{})
	install(t, j)
	return &bed{graph, j, session(t, j)}
}

func session(t *testing.T, j journal.Journal) journal.Session {
	t.Helper()
	s, err := j.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Release)
	return s
}

func newTxn(t *testing.T) branches.TxnID {
	t.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	return txn
}

// active writes a record.
func (b *bed) active(t *testing.T) journal.Record {
	t.Helper()
	rec := journal.Record{Txn: newTxn(t), TxTime: hlc.FromMillis(1_767_225_600_000)}
	if err := b.session.Create(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

// decision is S6 and S7 of rec.
func decision(rec journal.Record) journal.Decision {
	return journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime, WithPrepare: true}
}

func (b *bed) expectState(t *testing.T, txn branches.TxnID, want journal.State) {
	t.Helper()
	if rec, err := b.session.Read(t.Context(), txn); err != nil || rec.State != want {
		t.Fatalf("the record is %q, %v, want %s", rec.State, err, want)
	}
}

func (b *bed) expectAbort(t *testing.T, txn branches.TxnID, want journal.State) {
	t.Helper()
	if state, err := b.session.Abort(t.Context(), txn, journal.Forced); err != nil || state != want {
		t.Fatalf("Abort: %q, %v, want %s", state, err, want)
	}
	b.expectState(t, txn, want)
}
