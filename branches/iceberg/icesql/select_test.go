package icesql_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
)

// scan yields copies of the batches, as a scan does: the reader releases them.
func scan(read *int, batches ...arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range batches {
			if read != nil {
				*read++
			}
			b.Retain()
			if !yield(b, nil) {
				return
			}
		}
	}
}

func bindSelect(t fataler, sc *iceberg.Schema, text string, args ...any) (*icesql.Query, error) {
	t.Helper()
	s, err := icesql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return icesql.BindSelect(s.(*icesql.Select), sc, named(args...))
}

func open(t *testing.T, sc *iceberg.Schema, batches iter.Seq2[arrow.RecordBatch, error], text string, args ...any) driver.Rows {
	t.Helper()
	q, err := bindSelect(t, sc, text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	rows, err := q.Rows(t.Context(), batches)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return rows
}

func drain(rows driver.Rows) ([][]driver.Value, error) {
	defer rows.Close()
	var out [][]driver.Value
	for {
		row := make([]driver.Value, len(rows.Columns()))
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		}
		out = append(out, row)
	}
}

func printed(rows [][]driver.Value) string {
	var out []string
	for _, row := range rows {
		var cells []string
		for _, v := range row {
			switch v := v.(type) {
			case nil:
				cells = append(cells, "-")
			case time.Time:
				cells = append(cells, v.Format("2006-01-02T15:04:05.999999999"))
			default:
				cells = append(cells, fmt.Sprint(v))
			}
		}
		out = append(out, strings.Join(cells, ","))
	}
	return strings.Join(out, " ")
}

func accounts(t fataler) (*iceberg.Schema, []arrow.RecordBatch) {
	sc := schema(iceberg.NestedField{Name: "id", Type: primitive.Int64, Required: true}, field("city", primitive.String),
		field("amount", iceberg.DecimalTypeOf(9, 2)), field("rate", primitive.Float64), field("day", primitive.Date), field("n", primitive.Int32))
	return sc, []arrow.RecordBatch{
		batch(t, sc,
			[]any{1, "oslo", "10.00", 0.5, "2026-01-01", 1},
			[]any{2, nil, "0.05", math.NaN(), nil, 2},
			[]any{3, "riga", nil, nil, "2026-01-03", nil}),
		batch(t, sc,
			[]any{4, "oslo", "-3.33", math.Copysign(0, -1), "2026-01-01", 4},
			[]any{5, "", "99.99", 0.0, "2025-12-31", 5}),
	}
}

func TestSelect(t *testing.T) {
	sc, batches := accounts(t)
	for _, c := range []struct {
		text, want string
		args       []any
	}{
		{"SELECT id, city FROM t", "1,oslo 2,- 3,riga 4,oslo 5,", nil},
		{"SELECT * FROM t WHERE id = 1", "1,oslo,10.00,0.5,2026-01-01T00:00:00,1", nil},
		{"SELECT id FROM t LIMIT 2 OFFSET 2", "3 4", nil},
		{"SELECT id FROM t LIMIT $1 OFFSET $2", "2 3 4", []any{int64(3), "1"}},
		{"SELECT id FROM t LIMIT NULL OFFSET 4", "5", nil},
		{"SELECT id FROM t LIMIT 0", "", nil},
		{"SELECT id FROM t OFFSET 9", "", nil},
		{"SELECT id FROM t WHERE city <> 'oslo'", "3 5", nil},
		{"SELECT id FROM t WHERE NOT (city = 'oslo')", "3 5", nil},
		{"SELECT id FROM t ORDER BY city", "5 1 4 3 2", nil}, // NULL is the greatest
		{"SELECT id FROM t ORDER BY city DESC", "2 3 1 4 5", nil},
		{"SELECT id FROM t ORDER BY city DESC NULLS LAST, id DESC", "3 4 1 5 2", nil},
		{"SELECT id FROM t ORDER BY city NULLS FIRST LIMIT 2", "2 5", nil},
		{"SELECT id, amount AS a FROM t ORDER BY a DESC LIMIT 3 OFFSET 1", "5,99.99 1,10.00 2,0.05", nil},
		{"SELECT id FROM t ORDER BY amount", "4 2 1 5 3", nil},
		{"SELECT id FROM t ORDER BY rate", "4 5 1 2 3", nil}, // -0 = 0 < 0.5 < NaN < NULL
		{"SELECT id FROM t ORDER BY rate DESC, id DESC", "3 2 1 5 4", nil},
		{"SELECT city FROM t ORDER BY n DESC NULLS LAST LIMIT 1", "", nil},
		{"SELECT id, day FROM t ORDER BY 2, 1 LIMIT 2", "5,2025-12-31T00:00:00 1,2026-01-01T00:00:00", nil},
		{"SELECT id + 1, amount * 2, city || '!', id > 2 FROM t WHERE id IN (2, 4)", "3,0.10,-,false 5,-6.66,oslo!,true", nil},
		{"SELECT 1, 'x', NULL, 1.50, $1, TRUE FROM t LIMIT 1", "1,x,-,1.50,7,true", []any{int64(7)}},
		{"SELECT 1 FROM t WHERE FALSE", "", nil},
		{"SELECT count(*) FROM t", "5", nil},
		{"SELECT count(*) FROM t WHERE id > 99", "0", nil},
		{"SELECT count(*), count(city), count(DISTINCT city), count(DISTINCT rate) FROM t", "5,4,3,3", nil}, // 0 = -0
		{"SELECT sum(id), sum(n), avg(n), min(n), max(n) FROM t", "15,12,3,1,5", nil},
		{"SELECT sum(id), min(id), avg(amount), max(city) FROM t WHERE id > 99", "-,-,-,-", nil},
		{"SELECT sum(amount), avg(amount), min(amount), max(amount) FROM t", "106.71,26.677500,-3.33,99.99", nil},
		{"SELECT sum(rate), max(rate), min(rate) FROM t", "NaN,NaN,-0", nil},
		{"SELECT avg(rate), sum(rate) FROM t WHERE id IN (1, 5)", "0.25,0.5", nil},
		{"SELECT min(city), max(city), min(day) FROM t", ",riga,2025-12-31T00:00:00", nil},
		{"SELECT sum(amount * n), max(id + 1) FROM t", "496.73,6", nil},
		{"SELECT city, count(*), sum(amount) FROM t GROUP BY city", "oslo,2,6.67 -,1,0.05 riga,1,- ,1,99.99", nil},
		{"SELECT city, count(*) FROM t GROUP BY city ORDER BY count(*) DESC, city LIMIT 2", "oslo,2 ,1", nil},
		{"SELECT city c, sum(id) total FROM t GROUP BY c ORDER BY total", "-,2 riga,3 oslo,5 ,5", nil},
		{"SELECT count(*) FROM t GROUP BY 1 + 0, city ORDER BY city OFFSET 3", "1", nil},
		{"SELECT rate, count(*) FROM t WHERE rate IS NOT NULL GROUP BY rate ORDER BY rate", "-0,2 0.5,1 NaN,1", nil},
		{"SELECT day FROM t GROUP BY day ORDER BY day DESC", "- 2026-01-03T00:00:00 2026-01-01T00:00:00 2025-12-31T00:00:00", nil},
		{"SELECT city FROM t WHERE id > 99 GROUP BY city", "", nil},
		{"SELECT n AS city, count(1) FROM t WHERE id < 2 GROUP BY city, n", "1,1", nil}, // the column goes before the alias
		{"SELECT id AS city FROM t ORDER BY city DESC LIMIT 1", "5", nil},               // and after it
		{"SELECT max(id) FROM t ORDER BY sum(n) LIMIT 1", "5", nil},
		{"SELECT sum(id) FROM t LIMIT 0", "", nil},
		{"SELECT t.id, x.city FROM ns.t AS x WHERE x.id = 1", "", nil},
	} {
		if strings.Contains(c.text, "AS x") {
			if _, err := bindSelect(t, sc, c.text); err == nil || !strings.Contains(err.Error(), "column t: there is no such column") {
				t.Errorf("%s: %v", c.text, err)
			}
			continue
		}
		rows, err := drain(open(t, sc, scan(nil, batches...), c.text, c.args...))
		if got := printed(rows); err != nil || got != c.want {
			t.Errorf("%s\n got %s\nwant %s\n%v", c.text, got, c.want, err)
		}
	}
}

func TestResultDescribesItself(t *testing.T) {
	sc := schema(iceberg.NestedField{Name: "id", Type: primitive.Int64, Required: true}, field("m", iceberg.DecimalTypeOf(9, 2)),
		field("x", iceberg.FixedTypeOf(3)), field("s", primitive.String), field("at", primitive.TimestampTz),
		field("l", &iceberg.ListType{ElementID: 99, Element: primitive.Bool}), field("ok", primitive.Bool), field("f", primitive.Float32))
	b := batch(t, sc, []any{1, "1.5", []byte("abc"), "s", time.Unix(0, 0), "[true]", true, 1.5})
	rows := open(t, sc, scan(nil, b), "SELECT *, m + 1 AS more, id * 2 FROM t")
	type described struct {
		Name, Type       string
		Nullable         bool
		Precision, Scale int64
		Length           int64
		Go               string
	}
	var got []described
	r := rows.(interface {
		driver.RowsColumnTypeDatabaseTypeName
		driver.RowsColumnTypeNullable
		driver.RowsColumnTypePrecisionScale
		driver.RowsColumnTypeLength
		driver.RowsColumnTypeScanType
	})
	for i, name := range rows.Columns() {
		d := described{Name: name, Type: r.ColumnTypeDatabaseTypeName(i), Go: r.ColumnTypeScanType(i).String()}
		d.Nullable, _ = r.ColumnTypeNullable(i)
		d.Precision, d.Scale, _ = r.ColumnTypePrecisionScale(i)
		d.Length, _ = r.ColumnTypeLength(i)
		got = append(got, d)
	}
	want := []described{
		{"id", "LONG", false, 0, 0, 0, "int64"},
		{"m", "DECIMAL", true, 9, 2, 0, "string"},
		{"x", "FIXED", true, 0, 0, 3, "[]uint8"},
		{"s", "STRING", true, 0, 0, math.MaxInt64, "string"},
		{"at", "TIMESTAMPTZ", true, 0, 0, 0, "time.Time"},
		{"l", "LIST", true, 0, 0, 0, "string"},
		{"ok", "BOOLEAN", true, 0, 0, 0, "bool"},
		{"f", "FLOAT", true, 0, 0, 0, "float64"},
		{"more", "DECIMAL", true, 38, 2, 0, "string"},
		{"?column?", "LONG", true, 0, 0, 0, "int64"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	all, err := drain(rows)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, err)
	}
	for i, v := range all[0] {
		if reflect.TypeOf(v) != r.ColumnTypeScanType(i) {
			t.Errorf("column %d: %T, described as %s", i, v, r.ColumnTypeScanType(i))
		}
	}
}

func TestScanStopsAtTheLimit(t *testing.T) {
	sc, batches := accounts(t)
	for _, c := range []struct {
		text string
		read int
	}{
		{"SELECT id FROM t LIMIT 2", 1},
		{"SELECT id FROM t LIMIT 3", 1},
		{"SELECT id FROM t LIMIT 4", 2},
		{"SELECT id FROM t LIMIT 0", 0},
		{"SELECT id FROM t ORDER BY id LIMIT 1", 2},
	} {
		read := 0
		if _, err := drain(open(t, sc, scan(&read, batches...), c.text)); err != nil || read != c.read {
			t.Errorf("%s: read %d batches, want %d (%v)", c.text, read, c.read, err)
		}
	}
	read := 0
	rows := open(t, sc, scan(&read, batches...), "SELECT id FROM t")
	if err := rows.Next(make([]driver.Value, 1)); err != nil {
		t.Fatal(err)
	}
	if err := rows.Close(); err != nil || read != 1 {
		t.Errorf("closed after one row: read %d batches (%v)", read, err)
	}
	if err := rows.Next(make([]driver.Value, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after Close: %v", err)
	}
}

func TestErrorOfTheScanEndsTheRows(t *testing.T) {
	sc, batches := accounts(t)
	broken := errors.New("broken")
	failing := func(yield func(arrow.RecordBatch, error) bool) {
		batches[0].Retain()
		if yield(batches[0], nil) {
			yield(nil, broken)
		}
	}
	for _, text := range []string{"SELECT id FROM t", "SELECT id FROM t ORDER BY id", "SELECT count(*) FROM t", "SELECT city, count(*) FROM t GROUP BY city"} {
		rows := open(t, sc, failing, text)
		_, err := drain(rows)
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestComputedValueThatCannotBeIsAnError(t *testing.T) {
	sc := schema(field("l", primitive.Int64), field("m", iceberg.DecimalTypeOf(38, 2)), field("z", primitive.Int32), field("d", primitive.Float64))
	b := batch(t, sc, []any{int64(math.MaxInt64), strings.Repeat("9", 36) + ".99", 0, 1.0}, []any{int64(math.MaxInt64), strings.Repeat("9", 36) + ".99", 1, 2.0},
		[]any{int64(math.MinInt64), nil, 2, nil})
	for text, want := range map[string]string{
		"SELECT l + 1 FROM t":                    "l + 1: the result is out of the range",
		"SELECT l * 2 FROM t":                    "out of the range",
		"SELECT - l FROM t WHERE z = 2":          "out of the range",
		"SELECT l / -1 FROM t WHERE z = 2":       "out of the range",
		"SELECT l - 1 FROM t WHERE z = 2":        "out of the range",
		"SELECT m + m FROM t":                    "out of the range",
		"SELECT 1 / z FROM t":                    "division by zero",
		"SELECT m / z FROM t":                    "division by zero",
		"SELECT d / 0 FROM t":                    "division by zero",
		"SELECT sum(l) FROM t WHERE z < 2":       "sum(l): the sum 18446744073709551614 is out of the range of a long",
		"SELECT sum(m) FROM t":                   "sum(m): the result has more than 38 digits",
		"SELECT 1 / z FROM t WHERE z <> 0":       "",
		"SELECT sum(l) FROM t WHERE z <> 1":      "", // -1, and no order overflows
		"SELECT avg(l) FROM t WHERE z < 2":       "",
		"SELECT l + 1 FROM t WHERE z = 2":        "",
		"SELECT d * 1e308 * 10 FROM t":           "",
		"SELECT m * 1.000000000000000001 FROM t": "out of the range",
	} {
		_, err := drain(open(t, sc, scan(nil, b), text))
		var refused *icesql.EvalError
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	rows, err := drain(open(t, sc, scan(nil, b), "SELECT sum(l), avg(l) FROM t WHERE z <> 1"))
	if d := cmp.Diff([][]driver.Value{{int64(-1), -0.5}}, rows, cmpopts.EquateNaNs()); d != "" || err != nil {
		t.Errorf("%s %v", d, err)
	}
}

func TestArithmeticIsExactOnDecimals(t *testing.T) {
	sc := schema(field("m", iceberg.DecimalTypeOf(9, 2)), field("i", primitive.Int32), field("d", primitive.Float64), field("k", iceberg.DecimalTypeOf(9, 4)))
	b := batch(t, sc, []any{"0.10", 7, 0.5, "0.0001"}, []any{"-0.05", -7, nil, "1"})
	for text, want := range map[string]string{
		"SELECT m + $1 FROM t":          "0.20 0.05", // the float 0.1 is ten cents
		"SELECT m + k FROM t":           "0.1001 0.9500",
		"SELECT m * k FROM t":           "0.000010 -0.050000",
		"SELECT m / 3 FROM t":           "0.03333333 -0.01666667",
		"SELECT - m - -1 FROM t":        "0.90 1.05",
		"SELECT i / 2, i * 1.5 FROM t":  "3,10.5 -3,-10.5",
		"SELECT i * d, m * d FROM t":    "3.5,0.05 -,-",
		"SELECT i + NULL FROM t":        "- -",
		"SELECT i + $2 FROM t":          "8 -6",
		"SELECT i - (2 - 1) * 3 FROM t": "4 -10",
	} {
		rows, err := drain(open(t, sc, scan(nil, b), text, 0.1, "1"))
		if got := printed(rows); err != nil || got != want {
			t.Errorf("%s: %s, want %s (%v)", text, got, want, err)
		}
	}
}

func TestSelectRefusesWhatCannotBe(t *testing.T) {
	sc := schema(field("a", primitive.Int64), field("s", primitive.String), field("l", &iceberg.ListType{ElementID: 99, Element: primitive.Bool}))
	for text, want := range map[string]string{
		"SELECT a, count(*) FROM t":             "value a: it must be an aggregate or stand in GROUP BY",
		"SELECT * FROM t GROUP BY a":            "it cannot stand beside aggregates",
		"SELECT a FROM t GROUP BY a ORDER BY s": "value s: it must be an aggregate",
		"SELECT a FROM t ORDER BY 2":            "a position that the select list does not have",
		"SELECT a FROM t ORDER BY 'a'":          "takes columns, expressions and positions",
		"SELECT l FROM t ORDER BY l":            "column l of type list<boolean>: values of this type have no order",
		"SELECT count(*) FROM t GROUP BY l":     "cannot be grouped",
		"SELECT sum(s) FROM t":                  "column s of type string: sum is for numbers",
		"SELECT max(l) FROM t":                  "have no order",
		"SELECT count(DISTINCT l) FROM t":       "cannot be told apart",
		"SELECT a || s FROM t":                  "|| joins strings",
		"SELECT s + 1 FROM t":                   "column s of type string: arithmetic is for numbers",
		"SELECT a + 'x' FROM t":                 "value x: arithmetic is for numbers",
		"SELECT nosuch FROM t":                  "column nosuch: there is no such column",
		"SELECT a FROM t LIMIT -1":              "LIMIT takes a whole number of rows",
		"SELECT a FROM t LIMIT 1.5":             "LIMIT takes a whole number of rows",
		"SELECT a FROM t OFFSET $1":             "OFFSET takes a whole number of rows",
		"SELECT a FROM t GROUP BY count(*)":     "",
	} {
		if want == "" {
			if _, err := icesql.Parse(text); err == nil {
				t.Errorf("%s: parsed", text)
			}
			continue
		}
		if _, err := bindSelect(t, sc, text, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestColumnsToRead(t *testing.T) {
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 20, Name: "x", Type: primitive.Int64}}}
	sc := schema(field("s", primitive.String), field("a", primitive.Int64), field("b", primitive.Int64), field("st", inner), field("c", primitive.Date))
	for text, want := range map[string]string{
		"SELECT c, a FROM t":                        "a c",
		"SELECT a FROM t WHERE st.x = 1 ORDER BY b": "a b st",
		"SELECT * FROM t":                           "s a b st c",
		"SELECT count(*) FROM t":                    "a",
		"SELECT count(*) FROM t WHERE c IS NULL":    "c",
		"SELECT sum(a + b) FROM t GROUP BY s":       "s a b",
		"SELECT 1 FROM t":                           "a",
	} {
		q, err := bindSelect(t, sc, text)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(q.Columns(), " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
