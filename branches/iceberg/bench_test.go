package iceberg_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
	"github.com/rhizodat/rhizodat-go/hlc"
)

const benchTable = "CREATE TABLE t (id long, city string, amount double)"

// benchBed is a store at a place of its own, for benchmarks.
func benchBed(b *testing.B) (*iceberg.Store, branches.Session) {
	b.Helper()
	store, err := iceberg.Open("s", dsn(icetest.SQLite(b)), iceberg.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	session, err := store.Connect(b.Context())
	if err == nil {
		err = store.Install(b.Context())
	}
	if err == nil {
		_, err = session.Exec(b.Context(), benchTable, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	return store, session
}

// row gives n rows to CopyFrom.
func rowsOf(n int) func() ([]any, error) {
	i := 0
	return func() ([]any, error) {
		if i == n {
			return nil, nil
		}
		i++
		return []any{int64(i), "oslo", float64(i) / 2}, nil
	}
}

// commitRows is one unit in one phase.
func commitRows(b *testing.B, session branches.Session, n int) {
	b.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		b.Fatal(err)
	}
	branch, err := session.Begin(b.Context(), branches.BeginOptions{Txn: txn})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := session.(branches.Copier).CopyFrom(b.Context(), "t", nil, rowsOf(n)); err != nil {
		b.Fatal(err)
	}
	unit := branches.Unit{Txn: txn, TxTime: hlc.FromMillis(txn.Time().UnixMilli()) + 1, OnePhase: true, Marker: true}
	if _, err := branch.Stage(b.Context(), unit); err != nil {
		b.Fatal(err)
	}
	if err := branch.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// library is iceberg-go's own append of the same rows.
func library(b *testing.B, store *iceberg.Store, n int) {
	b.Helper()
	tbl, err := store.Load(b.Context(), "t")
	if err != nil {
		b.Fatal(err)
	}
	schema, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
	if err != nil {
		b.Fatal(err)
	}
	built := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	next := rowsOf(n)
	for row, _ := next(); row != nil; row, _ = next() {
		built.Field(0).(*array.Int64Builder).Append(row[0].(int64))
		built.Field(1).(*array.StringBuilder).Append(row[1].(string))
		built.Field(2).(*array.Float64Builder).Append(row[2].(float64))
	}
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{built.NewRecordBatch()})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := tbl.Append(b.Context(), reader, nil); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkInsert commits units of n rows, and for comparison appends them by the
// library alone.
func BenchmarkInsert(b *testing.B) {
	for _, n := range []int{1, 100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("rows=%d/store", n), func(b *testing.B) {
			_, session := benchBed(b)
			for b.Loop() {
				commitRows(b, session, n)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
		b.Run(fmt.Sprintf("rows=%d/library", n), func(b *testing.B) {
			store, _ := benchBed(b)
			for b.Loop() {
				library(b, store, n)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkCommit is a unit of one row after some earlier ones.
func BenchmarkCommit(b *testing.B) {
	for _, earlier := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("earlier=%d", earlier), func(b *testing.B) {
			_, session := benchBed(b)
			for range earlier {
				commitRows(b, session, 1)
			}
			for b.Loop() {
				commitRows(b, session, 1)
			}
		})
	}
}

// BenchmarkScan counts 2 million rows in 20 files, and for comparison reads them by
// the library alone.
func BenchmarkScan(b *testing.B) {
	store, session := benchBed(b)
	for range 20 {
		commitRows(b, session, 100_000)
	}
	b.Run("store", func(b *testing.B) {
		for b.Loop() {
			found, err := tryRows(b.Context(), session, "SELECT count(*), sum(amount) FROM t WHERE id > 0")
			if err != nil || len(found) != 1 {
				b.Fatal(found, err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		tbl, err := store.Load(b.Context(), "t")
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			_, batches, err := tbl.Scan(table.WithSelectedFields("id", "amount")).ToArrowRecords(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			rows := int64(0)
			for batch, err := range batches {
				if err != nil {
					b.Fatal(err)
				}
				rows += batch.NumRows()
				batch.Release()
			}
			if rows != 2_000_000 {
				b.Fatal(rows)
			}
		}
	})
}
