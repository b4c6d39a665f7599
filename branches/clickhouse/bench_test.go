package clickhouse_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	client "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

var sizes = []int{1, 1000, 100_000}

func benchRow(i int) []any {
	return []any{uint64(i), fmt.Sprintf("name %d", i%1000), float64(i) / 3, int32(i), time.Unix(int64(i), 0)}
}

var benchColumns = []string{"k", "s", "f", "n", "at"}

// BenchmarkCommit measures a unit of one branch against the same batch through
// clickhouse-go alone: plain is one store without a journal, marked leaves a
// marker, finish is what a unit of several stores does at S9.
func BenchmarkCommit(b *testing.B) {
	for _, protocol := range chtest.Protocols {
		server := chtest.Server(b)
		database := server.Database(b, "bench")
		server.Exec(b, "CREATE TABLE "+database+".e (k UInt64, s String, f Float64, n Int32, at DateTime, dat_txn Nullable(UUID), dat_tx_time Nullable(Int64),"+
			" INDEX dat_txn dat_txn TYPE bloom_filter GRANULARITY 1) ENGINE = MergeTree ORDER BY k")
		dsn := server.DSN(protocol, database)
		store, err := clickhouse.Open("s", dsn, clickhouse.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := store.Install(b.Context()); err != nil {
			b.Fatal(err)
		}
		options, err := client.ParseDSN(strings.Replace(dsn, "clickhouse+http", "http", 1))
		if err != nil {
			b.Fatal(err)
		}
		conn, err := client.Open(options)
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range sizes {
			rows := make([][]any, n)
			for i := range rows {
				rows[i] = benchRow(i)
			}
			b.Run(fmt.Sprintf("%s/%d/clickhouse-go", protocol, n), func(b *testing.B) {
				ctx := client.Context(b.Context(), client.WithSettings(client.Settings{"async_insert": 0}))
				for b.Loop() {
					batch, err := conn.PrepareBatch(ctx, "INSERT INTO e (k, s, f, n, at)")
					if err != nil {
						b.Fatal(err)
					}
					for _, row := range rows {
						if err := batch.Append(row...); err != nil {
							b.Fatal(err)
						}
					}
					if err := batch.Send(); err != nil {
						b.Fatal(err)
					}
				}
			})
			for _, way := range []string{"plain", "marked", "finish"} {
				b.Run(fmt.Sprintf("%s/%d/%s", protocol, n, way), func(b *testing.B) {
					for b.Loop() {
						benchUnit(b, store, rows, way)
					}
				})
			}
		}
		if err := conn.Close(); err != nil {
			b.Error(err)
		}
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	}
}

func benchUnit(b *testing.B, store *clickhouse.Store, rows [][]any, way string) {
	b.Helper()
	ctx := b.Context()
	session, err := store.Connect(ctx)
	if err != nil {
		b.Fatal(err)
	}
	txn, err := branches.NewTxnID()
	if err != nil {
		b.Fatal(err)
	}
	branch, err := session.Begin(ctx, branches.BeginOptions{Txn: txn})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := session.(branches.Copier).CopyFrom(ctx, "e", benchColumns, rowsOf(rows...)); err != nil {
		b.Fatal(err)
	}
	if way == "plain" {
		err = branch.Commit(ctx)
	} else {
		var staged branches.Staged
		staged, err = branch.Stage(ctx, branches.Unit{Txn: txn, TxTime: txTime, OnePhase: way == "marked", Marker: true})
		switch {
		case err != nil:
		case way == "marked":
			err = branch.Commit(ctx)
		default:
			err = branch.Finish(ctx, branches.Ref{Txn: txn, Store: "s", GID: branches.NewGID(txn, "s"), TxTime: txTime, Payload: staged.Payload})
		}
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBuffer tells the memory that a buffered row takes until its unit ends.
func BenchmarkBuffer(b *testing.B) {
	server := chtest.Server(b)
	database := server.Database(b, "bench")
	server.Exec(b, "CREATE TABLE "+database+".e (k UInt64, s String, f Float64, n Int32, at DateTime) ENGINE = MergeTree ORDER BY k")
	store, err := clickhouse.Open("s", server.DSN(chtest.Native, database), clickhouse.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	session, err := store.Connect(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	const n = 500_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		txn, err := branches.NewTxnID()
		if err != nil {
			b.Fatal(err)
		}
		branch, err := session.Begin(b.Context(), branches.BeginOptions{Txn: txn})
		if err != nil {
			b.Fatal(err)
		}
		next := 0
		if _, err := session.(branches.Copier).CopyFrom(b.Context(), "e", benchColumns, func() ([]any, error) {
			if next++; next > n {
				return nil, nil
			}
			return benchRow(next), nil
		}); err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/row")
		if err := branch.Rollback(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
