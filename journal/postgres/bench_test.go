package postgres_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
)

// BenchmarkCommits writes S4 and S7 of many commits at a time, and tells how many
// transactions of the server one commit takes: 2 where it meets no other.
func BenchmarkCommits(b *testing.B) {
	dsn := pgtest.Server(b).Database(b, "journal")
	j := open(b, dsn, journal.Options{Places: 64})
	install(b, j)
	for _, clients := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("%d", clients), func(b *testing.B) {
			before := lastTransaction(b, dsn)
			b.SetParallelism(max(1, clients/runtime.GOMAXPROCS(0)))
			if clients == 1 {
				for b.Loop() {
					commitOne(b, j)
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						commitOne(b, j)
					}
				})
			}
			b.ReportMetric(float64(lastTransaction(b, dsn)-before-1)/float64(b.N), "transactions/op")
		})
	}
}

func commitOne(b *testing.B, j journal.Journal) {
	b.Helper()
	s, err := j.Session(b.Context())
	if err != nil {
		b.Error(err)
		return
	}
	defer s.Release()
	txn, err := branches.NewTxnID()
	if err != nil {
		b.Error(err)
		return
	}
	rec := journal.Record{Txn: txn, TxTime: 1}
	if err := s.Create(b.Context(), &rec); err != nil {
		b.Error(err)
		return
	}
	if err := s.Decide(b.Context(), journal.Decision{Txn: txn, TxTime: rec.TxTime, WithPrepare: true}); err != nil {
		b.Error(err)
	}
}

// lastTransaction takes a number of the server's transactions, and returns it.
func lastTransaction(b *testing.B, dsn string) (number int64) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	if err := conn.QueryRow(b.Context(), "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)").Scan(&number); err != nil {
		b.Fatal(err)
	}
	return number
}
