package icesql_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

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

// The model: a second implementation of the conditions, by the row, in the plainest
// words. Values are nil, int64, float64, string, []byte, time.Time or bool.

type modelColumn struct {
	name   string
	typ    iceberg.Type
	values []any // the values that both rows and conditions draw from
	text   func(v any) string
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func modelColumns() []modelColumn {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	times := []any{base, base.Add(13 * time.Hour), base.Add(-13 * time.Hour), time.Unix(-1, 999999000).UTC()}
	number := func(v any) string { return fmt.Sprint(v) }
	return []modelColumn{
		{"i", primitive.Int32, []any{int64(-3), int64(0), int64(1), int64(math.MaxInt32)}, number},
		{"l", primitive.Int64, []any{int64(-3), int64(0), int64(1) << 40, int64(math.MaxInt64)}, number},
		{"d", primitive.Float64, []any{-1.5, 0.0, math.Copysign(0, -1), 2.25, math.NaN(), math.Inf(1), math.Inf(-1)}, func(v any) string {
			return "'" + strings.Replace(fmt.Sprint(v), "+Inf", "Infinity", 1) + "'"
		}},
		{"s", primitive.String, []any{"a", "ab", "abcdefghijklmnopqrstuvwxyz0", "abcdefghijklmnopqrstuvwxyz1", "éé", "zz\U0010FFFFx"}, func(v any) string { return quoted(v.(string)) }},
		{"m", iceberg.DecimalTypeOf(9, 2), []any{-1.5, 0.0, 3.25, 99.75}, number},
		{"t", primitive.TimestampTz, times, func(v any) string { return quoted(v.(time.Time).Format(time.RFC3339Nano)) }},
		{"b", primitive.Bool, []any{true, false}, number},
		{"u", primitive.UUID, []any{uuid.UUID{1}, uuid.UUID{0xff}, uuid.UUID{0x80}}, func(v any) string { return quoted(v.(uuid.UUID).String()) }},
		{"x", primitive.Binary, []any{[]byte{}, []byte{0}, []byte{0, 255}, []byte{255}}, func(v any) string { return fmt.Sprintf("X'%x'", v) }},
	}
}

func modelOrder(x, y any) int {
	switch x := x.(type) {
	case int64:
		return cmp.Compare(x, y.(int64))
	case float64:
		y := y.(float64)
		switch {
		case math.IsNaN(x) && math.IsNaN(y):
			return 0
		case math.IsNaN(x):
			return 1
		case math.IsNaN(y):
			return -1
		}
		return cmp.Compare(x, y)
	case string:
		return strings.Compare(x, y.(string))
	case []byte:
		return bytes.Compare(x, y.([]byte))
	case time.Time:
		return x.Compare(y.(time.Time))
	case uuid.UUID:
		z := y.(uuid.UUID)
		return bytes.Compare(x[:], z[:])
	case bool:
		n := map[bool]int{true: 1}
		return n[x] - n[y.(bool)]
	}
	panic(fmt.Sprintf("no order for %T", x))
}

// condition is a condition's text and its truth for a row: "T", "F" or "U".
type condition struct {
	text string
	eval func(row []any) string
}

func modelNot(s string) string { return map[string]string{"T": "F", "F": "T", "U": "U"}[s] }

func modelAnd(x, y string) string {
	switch {
	case x == "F" || y == "F":
		return "F"
	case x == "T" && y == "T":
		return "T"
	}
	return "U"
}

func modelBool(b bool) string {
	if b {
		return "T"
	}
	return "F"
}

func modelCompare(op string, x, y any) string {
	if x == nil || y == nil {
		return "U"
	}
	o := modelOrder(x, y)
	return modelBool(map[string]bool{"=": o == 0, "<>": o != 0, "<": o < 0, "<=": o <= 0, ">": o > 0, ">=": o >= 0}[op])
}

func drawLeaf(t *rapid.T, columns []modelColumn) condition {
	k := rapid.IntRange(0, len(columns)-1).Draw(t, "column")
	c := columns[k]
	constant := func() (any, string) {
		if rapid.IntRange(0, 9).Draw(t, "null") == 0 {
			return nil, "NULL"
		}
		v := rapid.SampledFrom(c.values).Draw(t, "constant")
		return v, c.text(v)
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		not := rapid.Bool().Draw(t, "not")
		return condition{c.name + map[bool]string{true: " IS NOT NULL", false: " IS NULL"}[not], func(row []any) string { return modelBool((row[k] == nil) != not) }}
	case 1:
		low, lowText := constant()
		high, highText := constant()
		return condition{c.name + " BETWEEN " + lowText + " AND " + highText, func(row []any) string {
			return modelAnd(modelCompare(">=", row[k], low), modelCompare("<=", row[k], high))
		}}
	case 2:
		var values []any
		var texts []string
		for range rapid.IntRange(1, 4).Draw(t, "items") {
			v, s := constant()
			values, texts = append(values, v), append(texts, s)
		}
		return condition{c.name + " IN (" + strings.Join(texts, ", ") + ")", func(row []any) string {
			out := "F"
			for _, v := range values {
				out = modelNot(modelAnd(modelNot(out), modelNot(modelCompare("=", row[k], v))))
			}
			return out
		}}
	}
	op := rapid.SampledFrom([]string{"=", "<>", "<", "<=", ">", ">="}).Draw(t, "op")
	v, s := constant()
	return condition{c.name + " " + op + " " + s, func(row []any) string { return modelCompare(op, row[k], v) }}
}

func drawCondition(t *rapid.T, columns []modelColumn, depth int) condition {
	kind := 0
	if depth > 0 {
		kind = rapid.IntRange(0, 4).Draw(t, "shape")
	}
	switch kind {
	case 1:
		x := drawCondition(t, columns, depth-1)
		return condition{"NOT (" + x.text + ")", func(row []any) string { return modelNot(x.eval(row)) }}
	case 2, 3:
		x, y := drawCondition(t, columns, depth-1), drawCondition(t, columns, depth-1)
		return condition{"(" + x.text + ") AND (" + y.text + ")", func(row []any) string { return modelAnd(x.eval(row), y.eval(row)) }}
	case 4:
		x, y := drawCondition(t, columns, depth-1), drawCondition(t, columns, depth-1)
		return condition{"(" + x.text + ") OR (" + y.text + ")", func(row []any) string {
			return modelNot(modelAnd(modelNot(x.eval(row)), modelNot(y.eval(row))))
		}}
	}
	return drawLeaf(t, columns)
}

func drawRow(t *rapid.T, columns []modelColumn) []any {
	row := make([]any, len(columns))
	for k, c := range columns {
		if rapid.IntRange(0, 3).Draw(t, "null") > 0 {
			row[k] = rapid.SampledFrom(c.values).Draw(t, c.name)
		}
	}
	return row
}

func modelSchema(columns []modelColumn) *iceberg.Schema {
	fields := make([]iceberg.NestedField, len(columns))
	for k, c := range columns {
		fields[k] = field(c.name, c.typ)
	}
	return schema(fields...)
}

func TestEvalAgreesWithTheModel(t *testing.T) {
	columns := modelColumns()
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
	var opts []catalog.CreateTableOpt
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
	if err := tx.AddDataFiles(ctx, all, nil, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping()); err != nil {
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
