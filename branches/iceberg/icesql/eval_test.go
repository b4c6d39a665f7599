package icesql_test

import (
	"database/sql/driver"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

var primitive = iceberg.PrimitiveTypes

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func field(name string, typ iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{Name: name, Type: typ}
}

func schema(fields ...iceberg.NestedField) *iceberg.Schema {
	for i := range fields {
		fields[i].ID = i + 1
	}
	return iceberg.NewSchema(0, fields...)
}

// batch makes one Arrow batch of rows in the schema's order.
func batch(t fataler, sc *iceberg.Schema, rows ...[]any) arrow.RecordBatch {
	t.Helper()
	as, err := table.SchemaToArrowSchema(sc, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := icevalue.NewRows(memory.DefaultAllocator, sc, as)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for _, row := range rows {
		if err := r.Append(row); err != nil {
			t.Fatalf("%v: %v", row, err)
		}
	}
	out := r.Take()
	if len(out) != 1 {
		t.Fatalf("%d batches", len(out))
	}
	return out[0]
}

func where(t fataler, condition string) icesql.Expr {
	t.Helper()
	s, err := icesql.Parse("DELETE FROM t WHERE " + condition)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*icesql.Delete).Where
}

func named(args ...any) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, a := range args {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return out
}

// truths is the predicate's truth for every row, as T, F and U.
func truths(t fataler, sc *iceberg.Schema, b arrow.RecordBatch, condition string, args ...any) string {
	t.Helper()
	p, err := icesql.Bind(where(t, condition), sc, named(args...))
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	mask, err := p.Eval(b)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	var out strings.Builder
	for _, x := range mask {
		out.WriteString(strings.ToUpper(x.String()[:1]))
	}
	return out.String()
}

func TestTruthTables(t *testing.T) {
	sc := schema(field("a", primitive.Bool), field("b", primitive.Bool))
	three := []any{true, nil, false}
	var rows [][]any
	for _, a := range three {
		for _, b := range three {
			rows = append(rows, []any{a, b})
		}
	}
	b := batch(t, sc, rows...)
	defer b.Release()
	for condition, want := range map[string]string{
		// a: TTTUUUFFF, b: TUFTUFTUF
		"a":                            "TTTUUUFFF",
		"NOT a":                        "FFFUUUTTT",
		"a AND b":                      "TUFUUFFFF",
		"a OR b":                       "TTTTUUTUF",
		"NOT (a AND b)":                "FUTUUTTTT",
		"a = b":                        "TUFUUUFUT",
		"a <> b":                       "FUTUUUTUF",
		"a < b":                        "FUFUUUTUF",
		"a >= b":                       "TUTUUUFUT",
		"a IS NULL":                    "FFFTTTFFF",
		"a IS NOT NULL":                "TTTFFFTTT",
		"(a AND b) IS NULL":            "FTFTTFFFF",
		"(a AND b) IS UNKNOWN":         "FTFTTFFFF",
		"(a OR b) IS NOT NULL":         "TTTTFFTFT",
		"a IS TRUE":                    "TTTFFFFFF",
		"a IS NOT TRUE":                "FFFTTTTTT",
		"a IS FALSE":                   "FFFFFFTTT",
		"a IS NOT FALSE":               "TTTTTTFFF",
		"a IN (b)":                     "TUFUUUFUT",
		"a NOT IN (b, FALSE)":          "FUTUUUFFF",
		"a IN (TRUE, NULL)":            "TTTUUUUUU",
		"a NOT IN (TRUE, NULL)":        "FFFUUUUUU",
		"a AND NULL":                   "UUUUUUFFF",
		"a OR NULL":                    "TTTUUUUUU",
		"NULL":                         "UUUUUUUUU",
		"a AND TRUE AND TRUE":          "TTTUUUFFF",
		"a = TRUE AND FALSE OR b":      "TUFTUFTUF",
		"a BETWEEN b AND TRUE":         "TUTUUUFUT",
		"a NOT BETWEEN NULL AND FALSE": "TTTUUUUUU",
		"1 = 1":                        "TTTTTTTTT",
		"1.50 = 1.5 AND 'a' < 'b'":     "TTTTTTTTT",
		"1 = 2 OR NULL = 1":            "UUUUUUUUU",
		"$1 = 'x'":                     "TTTTTTTTT",
		"NULL IS NULL":                 "TTTTTTTTT",
		"$1 IS NULL":                   "FFFFFFFFF",
	} {
		if got := truths(t, sc, b, condition, "x"); got != want {
			t.Errorf("%s: %s, want %s", condition, got, want)
		}
	}
}

type comparison struct {
	condition string
	args      []any
	want      string
}

func checkComparisons(t *testing.T, sc *iceberg.Schema, rows [][]any, cases []comparison) {
	t.Helper()
	b := batch(t, sc, rows...)
	defer b.Release()
	for _, c := range cases {
		if got := truths(t, sc, b, c.condition, c.args...); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.condition, c.args, got, c.want)
		}
	}
}

func TestNumbersCompareExactly(t *testing.T) {
	sc := schema(field("i", primitive.Int32), field("l", primitive.Int64), field("d", primitive.Float64),
		field("f", primitive.Float32), field("m", iceberg.DecimalTypeOf(9, 2)), field("n", iceberg.DecimalTypeOf(38, 10)))
	nan, inf := math.NaN(), math.Inf(1)
	rows := [][]any{
		{3, int64(1 << 53), 3.0, 0.1, "1.00", "1.0000000001"},
		{4, int64(1<<53 + 1), 1.0 * (1 << 53), 3.0, "-0.01", "-0.01"},
		{nil, nil, nil, nil, nil, nil},
		{-4, int64(math.MinInt64), nan, nan, "9999999.99", "9999999.99"},
		{0, int64(math.MaxInt64), math.Copysign(0, -1), -inf, "0.00", "-9999999999999999999999999999.9999999999"},
	}
	checkComparisons(t, sc, rows, []comparison{
		{"i = 3.5", nil, "FFUFF"},
		{"i <> 3.5", nil, "TTUTT"},
		{"i < 3.5", nil, "TFUTT"},
		{"i <= 3.5", nil, "TFUTT"},
		{"i > 3.5", nil, "FTUFF"},
		{"3.5 < i", nil, "FTUFF"},
		{"i >= $1", []any{3.5}, "FTUFF"},
		{"i > -3.5", nil, "TTUFT"},
		{"i = $1", []any{"4"}, "FTUFF"},
		{"i < 1e300", nil, "TTUTT"},
		{"i > -1e300", nil, "TTUTT"},
		{"i = 1e300", nil, "FFUFF"},
		{"i < $1", []any{inf}, "TTUTT"},
		{"i < $1", []any{nan}, "TTUTT"},
		{"i > $1", []any{math.Inf(-1)}, "TTUTT"},
		{"i < $1", []any{uint64(math.MaxUint64)}, "TTUTT"},
		{"i IN (3.5, 4.0, NULL)", nil, "UTUUU"},
		{"i NOT IN (3, 4)", nil, "FFUTT"},
		{"i NOT IN (3, NULL)", nil, "FUUUU"},
		{"i BETWEEN 3 AND 3.9", nil, "TFUFF"},
		{"i NOT BETWEEN -4 AND 3", nil, "FTUFF"},
		{"l = 9007199254740993", nil, "FTUFF"},
		{"l = -9223372036854775808", nil, "FFUTF"},
		{"l > 9223372036854775806.5", nil, "FFUFT"},
		{"l = d", nil, "FFUFF"}, // 2^53+1 is no double
		{"l > d", nil, "TTUFT"},
		{"d < l", nil, "TTUFT"},
		{"i = d", nil, "TFUFT"},
		{"d = 0", nil, "FFUFT"}, // -0
		{"d >= 0", nil, "TTUTT"},
		{"d < 0", nil, "FFUFF"},
		{"d > 1e308", nil, "FFUTF"}, // NaN is the greatest
		{"d = $1", []any{nan}, "FFUTF"},
		{"d <> $1", []any{nan}, "TTUFT"},
		{"d < $1", []any{nan}, "TTUFT"},
		{"d <= $1", []any{nan}, "TTUTT"},
		{"d > $1", []any{inf}, "FFUTF"},
		{"d = 'NaN'", nil, "FFUTF"},
		{"d IN ('NaN', 0)", nil, "FFUTT"},
		{"d = d", nil, "TTUTT"},
		{"f = 0.1", nil, "TFUFF"},
		{"f = $1", []any{0.1}, "TFUFF"},
		{"f = $1", []any{float32(0.1)}, "TFUFF"},
		{"f IN (0.1, 3)", nil, "TTUFF"},
		{"f < 1e300", nil, "TTUFT"},
		{"f = 1e300", nil, "FFUFF"},
		{"f >= '-Infinity'", nil, "TTUTT"},
		{"m = 1", nil, "TFUFF"},
		{"m = 1.000", nil, "TFUFF"},
		{"m = DECIMAL '1.0000'", nil, "TFUFF"},
		{"m = 1.001", nil, "FFUFF"},
		{"m < 1.001", nil, "TTUFT"},
		{"m > -0.005", nil, "TFUTT"},
		{"m = $1", []any{"1.00"}, "TFUFF"},
		{"m = $1", []any{1.0}, "TFUFF"},
		{"m = $1", []any{-0.01}, "FTUFF"},
		{"m < 1e50", nil, "TTUTT"},
		{"m < -1e50", nil, "FFUFF"},
		{"m IN (1, 0.001, -0.010)", nil, "TTUFF"},
		{"m = n", nil, "FTUTF"},
		{"m < n", nil, "TFUFF"},
		{"n < m", nil, "FFUFT"},
		{"i > m", nil, "TTUFF"},
		{"m = d", nil, "FFUFT"},
		{"n < -9999999999999999999999999999.99999999985", nil, "FFUFT"},
	})
}

func TestTextAndBytesCompare(t *testing.T) {
	id := "018f2e3c-1111-7000-8000-00000000abcd"
	sc := schema(field("s", primitive.String), field("b", primitive.Binary), field("x", iceberg.FixedTypeOf(2)), field("u", primitive.UUID),
		field("t", primitive.String))
	rows := [][]any{
		{"oslo", []byte{1, 2}, []byte{1, 2}, id, "oslo"},
		{"", []byte{}, []byte{0, 0}, "00000000-0000-0000-0000-000000000001", "a"},
		{nil, nil, nil, nil, nil},
		{"Ærø", []byte{0xff}, []byte{0xff, 0}, "f79c0000-0000-0000-0000-000000000000", "z"},
	}
	checkComparisons(t, sc, rows, []comparison{
		{"s = 'oslo'", nil, "TFUF"},
		{"s = $1", []any{[]byte("oslo")}, "TFUF"},
		{"s > 'oslo'", nil, "FFUT"}, // by bytes
		{"s = ''", nil, "FTUF"},
		{"s = t", nil, "TFUF"},
		{"s < t", nil, "FTUF"},
		{"s IN ('', 'Ærø', NULL)", nil, "UTUT"},
		{"b = X'0102'", nil, "TFUF"},
		{"b < X'01'", nil, "FTUF"},
		{"b = $1", []any{[]byte{}}, "FTUF"},
		{"b IN (X'ff', X'')", nil, "FTUT"},
		{"x = X'0102'", nil, "TFUF"},
		{"x > X'01'", nil, "TFUT"},
		{"x = b", nil, "TFUF"},
		{"u = '" + strings.ToUpper(id) + "'", nil, "TFUF"},
		{"u = UUID '" + id + "'", nil, "TFUF"},
		{"u > $1", []any{id}, "FFUT"}, // unsigned
		{"u IN ($1)", []any{id}, "TFUF"},
	})
}

func TestTimesCompare(t *testing.T) {
	sc := schema(field("d", primitive.Date), field("h", primitive.Time), field("ts", primitive.Timestamp), field("tz", primitive.TimestampTz),
		field("tn", primitive.TimestampNs))
	east := time.FixedZone("east", 2*3600)
	noon := time.Date(2026, 2, 3, 12, 0, 0, 123456789, east)
	rows := [][]any{
		{noon, noon, noon, noon, noon},
		{"1969-12-31", "00:00:00", "1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999Z", "1969-12-31 23:59:59.999999"},
		{nil, nil, nil, nil, nil},
	}
	checkComparisons(t, sc, rows, []comparison{
		{"d = '2026-02-03'", nil, "TFU"},
		{"d = DATE '2026-02-03'", nil, "TFU"},
		{"d = $1", []any{noon}, "TFU"}, // a parameter takes the column's type
		{"d < TIMESTAMP '2026-02-03 00:00:01'", nil, "TTU"},
		{"d = TIMESTAMP '2026-02-03 00:00:01'", nil, "FFU"},
		{"d < $1", []any{"2026-02-03"}, "FTU"},
		{"h = $1", []any{noon}, "TFU"},
		{"h < TIME '12:00:00.2'", nil, "TTU"},
		{"ts = $1", []any{noon}, "TFU"}, // its own clock, to the microsecond, as INSERT stores it
		{"ts = '2026-02-03T12:00:00.123456'", nil, "TFU"},
		{"ts >= DATE '2026-02-03'", nil, "TFU"},
		{"ts < TIMESTAMP '2026-02-03 12:00:00.1234561'", nil, "TTU"},
		{"ts < TIMESTAMP '2026-02-03 12:00:00.123456'", nil, "FTU"},
		{"ts < TIMESTAMP '999999999-01-01 00:00:00'", nil, "TTU"},
		{"tz = $1", []any{noon}, "TFU"},
		{"tz = $1", []any{noon.UTC()}, "TFU"},
		{"tz = TIMESTAMPTZ '2026-02-03 10:00:00.123456Z'", nil, "TFU"},
		{"tz = '2026-02-03 12:00:00.123456+02'", nil, "TFU"},
		{"tn = $1", []any{noon}, "TFU"},
		{"tn > ts", nil, "TFU"},
		{"ts < tn", nil, "TFU"},
		{"d < ts", nil, "TTU"},
		{"ts >= d", nil, "TTU"},
		{"tn > d", nil, "TTU"},
		{"tn > TIMESTAMP '0001-01-01 00:00:00'", nil, "TTU"},
	})
}

func TestBindRefusesWhatCannotBe(t *testing.T) {
	sc := schema(field("i", primitive.Int32), field("s", primitive.String), field("userId", primitive.Int64), field("d", primitive.Date),
		field("ts", primitive.Timestamp), field("tz", primitive.TimestampTz), field("u", primitive.UUID), field("b", primitive.Bool),
		field("l", &iceberg.ListType{ElementID: 30, Element: primitive.Int32}))
	for condition, want := range map[string]string{
		"nosuch = 1":                             "column nosuch: there is no such column",
		"userId = 1":                             `column userid: there is no such column; there is "userId", which must be quoted`,
		"i = 'x'":                                "column i of type int: value x: it is not a number",
		"i = TRUE":                               "column i of type int: value true: it is not a number",
		"i = DATE '2026-01-01'":                  "column i of type int: value DATE '2026-01-01': it is not a number",
		"s = 5":                                  "column s of type string: value 5: it is of another type than the column",
		"s = $1":                                 "column s of type string: value 5: this Go type cannot be stored in it",
		"s < i":                                  "column s of type string: it cannot be compared with column i of type int",
		"ts = tz":                                "column ts of type timestamp: it cannot be compared with column tz of type timestamptz",
		"d = '2026-02-30'":                       "column d of type date: value 2026-02-30: it is not a date",
		"ts = TIMESTAMPTZ '2026-01-01Z'":         "column ts of type timestamp: value TIMESTAMPTZ '2026-01-01Z': it is of another type",
		"ts = '2026-01-01 00:00:00+01'":          "it names a time zone, and the type has none",
		"tz > TIMESTAMP '2026-01-01'":            "it is of another type",
		"tz > '2026-01-01 00:00:00'":             "it names no time zone",
		"u = 'x'":                                "it is not a UUID",
		"i":                                      "column i of type int: it is not a condition",
		"b = 1":                                  "it is of another type",
		"l = '[]'":                               "column l of type list<int>: only IS NULL and IS NOT NULL can ask of this type",
		"i + 1 = 2":                              "arithmetic can stand in SET and in a select list",
		"i = $2":                                 "there is no argument for $2: 1 were given",
		"i = :name":                              "there is no argument for :name",
		"s LIKE s":                               "a pattern is a string or a parameter",
		"i LIKE '1%'":                            "column i of type int: LIKE is for strings",
		`s LIKE 'a\'`:                            "the pattern ends with its escape character",
		"s LIKE 'a' ESCAPE '!!'":                 "ESCAPE takes one character",
		"1 = 'x'":                                "these two constants cannot be compared",
		"s IN ('a', 1)":                          "column s of type string: value 1: it is of another type",
		"d < 5":                                  "column d of type date: value 5: it is of another type",
		"'" + strings.Repeat("x", 100) + "' = 5": "value xxxxxxxxxxxxxxxx",
	} {
		_, err := icesql.Bind(where(t, condition), sc, named(int64(5)))
		var refused *icesql.BindError
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", condition, err, want)
		} else if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", refused) {
			t.Errorf("%s: %T", condition, err)
		}
	}
}
