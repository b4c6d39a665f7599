package postgres_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Records are found by their ids. The indexes over states are for lists: they keep an
// entry of every state that a record has been in until the next vacuum, so that a
// write that reads them is slower with every transaction.
func TestWritesFindRecordsByTheirIDs(t *testing.T) {
	cluster := pgtest.Server(t)
	_, dsn := installed(t, cluster)
	j := open(t, dsn, journal.Options{Places: 1})
	const units = 20
	for range units {
		s := session(t, j)
		rec := active(t, s)
		if err := s.Decide(t.Context(), decision(rec)); err != nil {
			t.Fatal(err)
		}
		s.Release()
		if n, err := j.Finish(t.Context(), []branches.TxnID{rec.Txn}); n != 1 || err != nil {
			t.Fatalf("finished %d, %v", n, err)
		}
	}
	if err := j.Close(); err != nil { // a server counts what a session did at its end, or later
		t.Fatal(err)
	}
	scans := func(indexes string) int64 {
		return cluster.Int(t, dsn, "SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE relname = 'dat_journal' AND indexrelname IN ("+indexes+")")
	}
	await.Until(t, "the server's counts", func() bool { return scans("'dat_journal_pkey'") >= 2*units })
	if n := scans("'dat_journal_open', 'dat_journal_final'"); n != 0 {
		t.Errorf("the indexes over states were read %d times", n)
	}
}
