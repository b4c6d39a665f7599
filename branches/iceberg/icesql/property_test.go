package icesql_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	sqlcat "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	_ "modernc.org/sqlite"
	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
)

func TestEvalAgreesWithTheModel(t *testing.T) {
	columns := append(modelColumns(), timeColumns()...)
	sc := modelSchema(columns)
	rapid.Check(t, func(rt *rapid.T) {
		var rows [][]any
		for range rapid.IntRange(1, 20).Draw(rt, "rows") {
			rows = append(rows, drawRow(rt, columns))
		}
		b := batch(rt, sc, rows...)
		defer b.Release()
		c := drawCondition(rt, columns, 3)
		want := ""
		for _, row := range rows {
			want += c.eval(row)
		}
		from := rapid.IntRange(0, len(rows)-1).Draw(rt, "from") // a slice has offsets of its own
		part := b.NewSlice(int64(from), int64(len(rows)))
		defer part.Release()
		if got := truths(rt, sc, part, c.text); got != want[from:] {
			rt.Fatalf("%s\n%v from %d\n got %s\nwant %s", c.text, rows, from, got, want[from:])
		}
		if got := truths(rt, sc, b, c.text); got != want {
			rt.Fatalf("%s\n%v\n got %s\nwant %s", c.text, rows, got, want)
		}
	})
}

// pruned is a table of many small files, each with what it holds.
type pruned struct {
	tbl   *table.Table
	files map[string][]arrow.RecordBatch
}

func newPruned(t *testing.T, columns []modelColumn, spec func(sc *iceberg.Schema) *iceberg.PartitionSpec) *pruned {
	t.Helper()
	ctx := t.Context()
	cat, err := catalog.Load(ctx, "prune", iceberg.Properties{
		"type": "sql", "uri": "file:" + t.TempDir() + "/catalog.db", "sql.driver": "sqlite", "sql.dialect": "sqlite", "warehouse": "mem://" + uuid.NewString() + "/wh",
	})
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := cat.(*sqlcat.Catalog); ok {
		t.Cleanup(func() { c.Close() })
	}
	if err := cat.CreateNamespace(ctx, catalog.ToIdentifier("p"), nil); err != nil {
		t.Fatal(err)
	}
	sc := modelSchema(columns)
	opts := []catalog.CreateTableOpt{catalog.WithProperties(iceberg.Properties{table.PropertyFormatVersion: "3"})}
	if spec != nil {
		opts = append(opts, catalog.WithPartitionSpec(spec(sc)))
	}
	tbl, err := cat.CreateTable(ctx, catalog.ToIdentifier("p", uuid.NewString()), sc, opts...)
	if err != nil {
		t.Fatal(err)
	}
	out := &pruned{files: map[string][]arrow.RecordBatch{}}
	tx := tbl.NewTransaction()
	var all []iceberg.DataFile
	for n := range 40 {
		rows := [][]any{}
		gen := rapid.Custom(func(rt *rapid.T) []any { return drawRow(rt, columns) })
		for i := range 1 + n%3 {
			rows = append(rows, gen.Example(n*7+i))
		}
		b := batch(t, tbl.Schema(), rows...)
		as := b.Schema()
		for df, err := range table.WriteRecords(ctx, tbl, as, func(yield func(arrow.RecordBatch, error) bool) { yield(b, nil) }) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, df)
		}
	}
	// Files of a version 3 table go in by a row delta, which gives them row ids.
	if err := tx.NewRowDelta(nil).AddRows(all...).Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if out.tbl, err = tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	tasks, err := out.tbl.Scan().PlanFiles(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		_, records, err := out.tbl.Scan().ReadTasks(ctx, []table.FileScanTask{task})
		if err != nil {
			t.Fatal(err)
		}
		path := task.File.FilePath()
		for b, err := range records {
			if err != nil {
				t.Fatal(err)
			}
			out.files[path] = append(out.files[path], b)
		}
	}
	return out
}

// check looks for true rows in the files that the plan leaves out, and returns how
// many files that are.
func (p *pruned) check(t *testing.T, rt *rapid.T, where icesql.Expr, text string) int {
	t.Helper()
	predicate, err := icesql.Bind(where, p.tbl.Schema(), nil)
	if err != nil {
		rt.Fatalf("%s: %v", text, err)
	}
	tasks, err := p.tbl.Scan(table.WithRowFilter(predicate.Prune())).PlanFiles(t.Context())
	if err != nil {
		rt.Fatalf("%s: plan with %s: %v", text, predicate.Prune(), err)
	}
	kept := map[string]bool{}
	for _, task := range tasks {
		kept[task.File.FilePath()] = true
	}
	for path, batches := range p.files {
		for _, b := range batches {
			mask, err := predicate.Eval(b)
			if err != nil {
				rt.Fatalf("%s: %v", text, err)
			}
			if n := mask.Count(); n > 0 && !kept[path] {
				rt.Fatalf("%s: %d rows in a file that %s leaves out", text, n, predicate.Prune())
			}
		}
	}
	return len(p.files) - len(kept)
}

func TestPruneLosesNoRow(t *testing.T) {
	t.Run("times", func(t *testing.T) {
		columns := timeColumns()
		p := newPruned(t, columns, func(sc *iceberg.Schema) *iceberg.PartitionSpec {
			s, err := iceberg.NewPartitionSpecOpts(iceberg.AddPartitionFieldByName("tn", "tn_hour", iceberg.HourTransform{}, sc, nil),
				iceberg.AddPartitionFieldByName("ts", "ts_year", iceberg.YearTransform{}, sc, nil), iceberg.AddPartitionFieldByName("day", "day_month", iceberg.MonthTransform{}, sc, nil))
			if err != nil {
				t.Fatal(err)
			}
			return &s
		})
		pruned := 0
		rapid.Check(t, func(rt *rapid.T) {
			c := drawCondition(rt, columns, 2)
			pruned += p.check(t, rt, where(rt, c.text), c.text)
		})
		if pruned == 0 {
			t.Error("no file was ever left out: the test shows nothing")
		}
	})
	columns := modelColumns()
	for name, spec := range map[string]func(sc *iceberg.Schema) *iceberg.PartitionSpec{
		"plain": nil,
		"partitioned": func(sc *iceberg.Schema) *iceberg.PartitionSpec {
			s, err := iceberg.NewPartitionSpecOpts(iceberg.AddPartitionFieldByName("l", "l_bucket", iceberg.BucketTransform{NumBuckets: 4}, sc, nil),
				iceberg.AddPartitionFieldByName("t", "t_day", iceberg.DayTransform{}, sc, nil), iceberg.AddPartitionFieldByName("m", "m", iceberg.IdentityTransform{}, sc, nil),
				iceberg.AddPartitionFieldByName("s", "s_trunc", iceberg.TruncateTransform{Width: 2}, sc, nil), iceberg.AddPartitionFieldByName("d", "d", iceberg.IdentityTransform{}, sc, nil))
			if err != nil {
				t.Fatal(err)
			}
			return &s
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPruned(t, columns, spec)
			pruned := 0
			rapid.Check(t, func(rt *rapid.T) {
				c := drawCondition(rt, columns, 2)
				pruned += p.check(t, rt, where(rt, c.text), c.text)
			})
			if pruned == 0 {
				t.Error("no file was ever left out: the test shows nothing")
			}
		})
	}
}
