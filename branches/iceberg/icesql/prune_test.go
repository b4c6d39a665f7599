package icesql_test

import (
	"math"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
)

func TestPruneIsWhatTheRuleAllows(t *testing.T) {
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 20, Name: "x", Type: primitive.Int64}}}
	sc := schema(field("i", primitive.Int32), field("l", primitive.Int64), field("f", primitive.Float32), field("d", primitive.Float64), field("s", primitive.String),
		field("u", primitive.UUID), field("b", primitive.Bool), field("st", inner), field("m", iceberg.DecimalTypeOf(9, 2)), field("a.b", primitive.Int64),
		field("x", iceberg.FixedTypeOf(2)), field("day", primitive.Date))
	ref := func(name string) iceberg.Reference { return iceberg.Reference(name) }
	none := iceberg.AlwaysTrue{}
	var ten iceberg.Decimal
	if n, err := iceberg.NewLiteral("10.00").To(iceberg.DecimalTypeOf(9, 2)); err == nil {
		ten = iceberg.Decimal(n.(iceberg.DecimalLiteral))
	}
	for _, c := range []struct {
		condition string
		want      iceberg.BooleanExpression
		args      []any
	}{
		{"i = 5", iceberg.EqualTo(ref("i"), int32(5)), nil},
		{"5 > i", iceberg.LessThan(ref("i"), int32(5)), nil},
		{"i < 3.5", iceberg.LessThanEqual(ref("i"), int32(3)), nil},
		{"i = 3.5", none, nil},
		{"i < 1e12", none, nil},
		{"l BETWEEN 1 AND 2", iceberg.NewAnd(iceberg.GreaterThanEqual(ref("l"), int64(1)), iceberg.LessThanEqual(ref("l"), int64(2))), nil},
		{"l NOT BETWEEN 1 AND 2", none, nil},
		{"l <> 1", none, nil},
		{"NOT l = 1", none, nil},
		{"l = 1 OR l = 2", none, nil},
		{"l = 1 AND (i = 2 OR i = 3) AND s LIKE 'a%' AND s > 'a'", iceberg.NewAnd(iceberg.EqualTo(ref("l"), int64(1)), iceberg.GreaterThan(ref("s"), "a")), nil},
		{"l IN (1, 2, NULL)", iceberg.IsIn(ref("l"), int64(1), int64(2)), nil},
		{"i IN (1, 2.5, 1e12)", none, nil}, // 1e12 does not fit the literal's type
		{"l NOT IN (1, 2)", none, nil},
		{"l IS NULL", iceberg.IsNull(ref("l")), nil},
		{"m IS NOT NULL", iceberg.NotNull(ref("m")), nil},
		{"(l = 1) IS NULL", none, nil},
		{"(l = 1) IS TRUE", none, nil},
		{"u = '00000000-0000-0000-0000-000000000001'", none, nil},
		{"u IS NULL", none, nil},
		{"u IN ('00000000-0000-0000-0000-000000000001')", none, nil},
		{"b", iceberg.EqualTo(ref("b"), true), nil},
		{"b < TRUE", none, nil},
		{"st.x = 1", none, nil},
		{"st IS NULL", none, nil},
		{`"a.b" = 1`, none, nil},
		{"l = i", none, nil},
		{"m >= 10", iceberg.GreaterThanEqual(ref("m"), ten), nil},
		{"m >= 1e8", none, nil},
		{"x = X'0102'", iceberg.EqualTo(ref("x"), []byte{1, 2}), nil},
		{"x > X'01'", none, nil},
		{"day = '1970-01-02'", iceberg.EqualTo(ref("day"), iceberg.Date(1)), nil},
		// The bounds of a file say nothing of NaN, which is greater than everything,
		// and -0 lies below 0 in them.
		{"d < 1.5", iceberg.LessThan(ref("d"), 1.5), nil},
		{"d <= 1.5", iceberg.LessThanEqual(ref("d"), 1.5), nil},
		{"d = 1.5", iceberg.EqualTo(ref("d"), 1.5), nil},
		{"d > 1.5", none, nil},
		{"d >= 1.5", none, nil},
		{"d = 0", none, nil},
		{"d IN (1, 0)", none, nil},
		{"d IN (1, 2)", iceberg.IsIn(ref("d"), 1.0, 2.0), nil},
		{"d < $1", none, []any{math.NaN()}},
		{"d = $1", none, []any{math.NaN()}},
		{"d < $1", none, []any{math.Inf(1)}},
		{"f < 0.1", iceberg.LessThan(ref("f"), float32(0.1)), nil},
		{"f < 1e300", none, nil},
		{"TRUE", none, nil},
		{"l = NULL", none, nil},
	} {
		p, err := icesql.Bind(where(t, c.condition), sc, named(c.args...))
		if err != nil {
			t.Errorf("%s: %v", c.condition, err)
			continue
		}
		if got := p.Prune(); !got.Equals(c.want) {
			t.Errorf("%s: %s, want %s", c.condition, got, c.want)
		}
	}
	p, err := icesql.Bind(nil, sc, nil)
	if err != nil || !p.Prune().Equals(none) {
		t.Errorf("no WHERE: %v %v", p, err)
	}
}

func BenchmarkEval(b *testing.B) {
	sc := schema(field("l", primitive.Int64), field("s", primitive.String), field("d", primitive.Float64), field("m", iceberg.DecimalTypeOf(18, 2)))
	const n = 8192
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = []any{int64(i), "city", float64(i), int64(i)}
	}
	data := batch(b, sc, rows...)
	for _, condition := range []string{"l < 4000", "d < 4000", "m < 4000.5", "s = 'city'", "s LIKE 'ci%'", "l IN (1, 2, 3)", "l > 10 AND s <> 'x'"} {
		p, err := icesql.Bind(where(b, condition), sc, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(condition, func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Eval(data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
