package drevo_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/journal"
)

// BenchmarkRecord is the life of one record, S4 to S10, in a graph of few nodes
// and in one of many: inside a transaction drevo looks at all of them.
func BenchmarkRecord(b *testing.B) {
	for _, c := range []struct {
		name  string
		nodes int
	}{{"few", 0}, {"20000", 20_000}} {
		b.Run(c.name, func(b *testing.B) {
			graph := drevotest.Server(b).Graph(b, "journal")
			j := open(b, graph.URL(), journal.Options{})
			install(b, j)
			list := make([]any, c.nodes)
			for i := range list {
				list[i] = int64(i)
			}
			tx, err := graph.Session(b).BeginTransaction(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			result, err := tx.Run(b.Context(), "UNWIND $list AS i CREATE (:DatJournal {title: 'x:' + toString(i), state: 'DONE', dat_txn: 'x', updated_ms: 1})", map[string]any{"list": list})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := result.Consume(b.Context()); err != nil {
				b.Fatal(err)
			}
			if err := tx.Commit(b.Context()); err != nil {
				b.Fatal(err)
			}
			s, err := j.Session(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer s.Release()
			for b.Loop() {
				txn, err := branches.NewTxnID()
				if err != nil {
					b.Fatal(err)
				}
				rec := journal.Record{Txn: txn, TxTime: 1}
				if err := s.Create(b.Context(), &rec); err != nil {
					b.Fatal(err)
				}
				if err := s.Decide(b.Context(), decision(rec)); err != nil {
					b.Fatal(err)
				}
				if _, err := j.Finish(b.Context(), []branches.TxnID{txn}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
