package icesql_test

import (
	"database/sql/driver"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

func newRows(t fataler, sc *iceberg.Schema) *icevalue.Rows {
	t.Helper()
	as, err := table.SchemaToArrowSchema(sc, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := icevalue.NewRows(memory.DefaultAllocator, sc, as)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func bindInsert(t fataler, sc *iceberg.Schema, text string) (*icesql.InsertPlan, error) {
	t.Helper()
	s, err := icesql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return icesql.BindInsert(s.(*icesql.Insert), sc)
}

// contents are the rows of the batches, as SELECT * prints them.
func contents(t *testing.T, sc *iceberg.Schema, batches ...arrow.RecordBatch) string {
	t.Helper()
	rows, err := drain(open(t, sc, scan(nil, batches...), "SELECT * FROM t"))
	if err != nil {
		t.Fatal(err)
	}
	return printed(rows)
}

func insertable() *iceberg.Schema {
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 20, Name: "x", Type: primitive.Int64}}}
	return schema(iceberg.NestedField{Name: "id", Type: primitive.Int64, Required: true}, field("s", primitive.String), field("m", iceberg.DecimalTypeOf(9, 2)),
		field("f", primitive.Float64), field("d", primitive.Date), field("tz", primitive.TimestampTz), field("b", primitive.Binary), field("st", inner),
		iceberg.NestedField{Name: "w", Type: primitive.String, WriteDefault: "by default"})
}

func TestInsert(t *testing.T) {
	sc := insertable()
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, c := range []struct {
		text, want string
		args       []driver.NamedValue
	}{
		{"INSERT INTO t (id) VALUES (1), (2)", "1,-,-,-,-,-,-,-,by default 2,-,-,-,-,-,-,-,by default", nil},
		{
			`INSERT INTO t VALUES (1, 'a''b', 1.5, 1e3, DATE '2026-02-03', TIMESTAMPTZ '2026-02-03 04:05:06Z', X'6869', '{"x": 5}', NULL)`,
			`1,a'b,1.50,1000,2026-02-03T00:00:00,2026-02-03T04:05:06,[104 105],{"x":5},-`, nil,
		},
		{"INSERT INTO t (m, id, d) VALUES ($2, $1, $3), (?, ?, ?)", "", nil},
		{
			"INSERT INTO t (m, id, d, st) VALUES ($2, $1, $3, $4), (DECIMAL '0.01', $1, '2026-01-01', NULL)",
			`7,-,0.10,-,2026-02-03T00:00:00,-,-,{"x":9},by default 7,-,0.01,-,2026-01-01T00:00:00,-,-,-,by default`,
			named(int64(7), 0.1, at, map[string]any{"x": 9}),
		},
		{
			"INSERT INTO t (id, s) VALUES (:id, @s)", "5,five,-,-,-,-,-,-,by default",
			[]driver.NamedValue{{Name: "s", Ordinal: 1, Value: "five"}, {Name: "id", Ordinal: 2, Value: int64(5)}},
		},
	} {
		if c.want == "" { // ? and $n do not mix
			if _, err := icesql.Parse(c.text); err == nil {
				t.Errorf("%s: parsed", c.text)
			}
			continue
		}
		plan, err := bindInsert(t, sc, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		rows := newRows(t, sc)
		n, err := plan.AppendTo(rows, c.args)
		if err != nil || int(n) != rows.Len() {
			t.Errorf("%s: %d rows of %d (%v)", c.text, n, rows.Len(), err)
		}
		if got := contents(t, sc, rows.Take()...); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
		rows.Release()
	}
}

func TestInsertLeavesNothingOfAStatementThatFails(t *testing.T) {
	sc := insertable()
	rows := newRows(t, sc)
	defer rows.Release()
	plan, err := bindInsert(t, sc, "INSERT INTO t (id, s, m) VALUES ($1, 'x', 1), ($2, 'y', $3)")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]driver.NamedValue{
		named(int64(1), int64(2), "1.00"),
		named(int64(3), int64(4), "1.001"), // too many places
		named(int64(5), nil, "1.00"),       // NULL in a required column
		named(int64(6), int64(7)),          // an argument is missing
		named(int64(8), int64(9), 0.5),
	} {
		before := rows.Len()
		n, err := plan.AppendTo(rows, args)
		var kind interface{ Kind() branches.Kind }
		switch {
		case err == nil && (n != 2 || rows.Len() != before+2):
			t.Errorf("%v: %d rows, %d in all", args, n, rows.Len())
		case err != nil && (n != 0 || rows.Len() != before || !errors.As(err, &kind) || kind.Kind() != branches.Permanent):
			t.Errorf("%v: %d rows, %d in all: %v", args, n, rows.Len(), err)
		}
	}
	if got, want := contents(t, sc, rows.Take()...), "1,x,1.00 2,y,1.00 8,x,1.00 9,y,0.50"; strings.ReplaceAll(got, ",-,-,-,-,-,by default", "") != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestInsertRefusesWhatCannotBe(t *testing.T) {
	sc := insertable()
	for text, want := range map[string]string{
		"INSERT INTO t (id, nosuch) VALUES (1, 2)":                   "column nosuch: there is no such column",
		"INSERT INTO t (id, id) VALUES (1, 2)":                       "column id: it stands twice",
		"INSERT INTO t VALUES (1, 2)":                                "a row has 2 values and the table 9 columns",
		"INSERT INTO t (s) VALUES (5)":                               "column s of type string: value 5: it is of another type",
		"INSERT INTO t (id) VALUES (TRUE)":                           "column id of type long: value true: it is of another type",
		"INSERT INTO t (d) VALUES (TIMESTAMP '2026-01-01 00:00:00')": "it is of another type",
		"INSERT INTO t (id) VALUES (1 + 1)":                          "VALUES takes literals and parameters",
		"INSERT INTO t (id) VALUES (id)":                             "VALUES takes literals and parameters",
	} {
		if _, err := bindInsert(t, sc, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func bindUpdate(t fataler, sc *iceberg.Schema, text string, args ...any) (*icesql.UpdatePlan, error) {
	t.Helper()
	s, err := icesql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return icesql.BindUpdate(s.(*icesql.Update), sc, named(args...))
}

func update(t *testing.T, sc *iceberg.Schema, b arrow.RecordBatch, text string, args ...any) (string, error) {
	t.Helper()
	plan, err := bindUpdate(t, sc, text, args...)
	if err != nil {
		return "", err
	}
	mask, err := plan.Predicate().Eval(b)
	if err != nil {
		return "", err
	}
	out, err := plan.Apply(t.Context(), b, mask)
	if err != nil {
		return "", err
	}
	defer out.Release()
	if !out.Schema().Equal(b.Schema()) {
		t.Errorf("%s: the schema changed to %s", text, out.Schema())
	}
	return contents(t, sc, out), nil
}

func updatable(t fataler) (*iceberg.Schema, arrow.RecordBatch) {
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 20, Name: "x", Type: primitive.Int64}}}
	sc := schema(iceberg.NestedField{Name: "id", Type: primitive.Int64, Required: true}, field("n", primitive.Int32), field("m", iceberg.DecimalTypeOf(5, 2)),
		field("s", primitive.String), field("u", primitive.UUID), field("d", primitive.Date), field("ts", primitive.Timestamp), field("st", inner), field("f", primitive.Float64))
	return sc, batch(t, sc,
		[]any{1, 10, "1.00", "a", uuid.UUID{1}, "2026-01-01", nil, `{"x": 1}`, 0.5},
		[]any{2, nil, "2.50", nil, nil, nil, nil, nil, nil},
		[]any{3, 0, "-0.01", "c", uuid.UUID{3}, "1969-12-31", nil, `{"x": null}`, 2.0})
}

func TestUpdate(t *testing.T) {
	sc, b := updatable(t)
	const (
		r1 = "1,10,1.00,a,01000000-0000-0000-0000-000000000000,2026-01-01T00:00:00,-,{\"x\":1},0.5"
		r2 = "2,-,2.50,-,-,-,-,-,-"
		r3 = "3,0,-0.01,c,03000000-0000-0000-0000-000000000000,1969-12-31T00:00:00,-,{\"x\":null},2"
	)
	for _, c := range []struct {
		text, want string
		args       []any
	}{
		{"UPDATE t SET n = 5 WHERE id = 2", r1 + " " + strings.Replace(r2, "2,-,", "2,5,", 1) + " " + r3, nil},
		{"UPDATE t SET n = n + 1, m = m * 2", strings.Join([]string{strings.Replace(r1, "10,1.00", "11,2.00", 1), strings.Replace(r2, "2.50", "5.00", 1), strings.Replace(r3, "0,-0.01", "1,-0.02", 1)}, " "), nil},
		{"UPDATE t SET n = 100 / n WHERE n <> 0", strings.Replace(r1, "10", "10", 1) + " " + r2 + " " + r3, nil},
		{"UPDATE t SET m = m / 3 WHERE id < 3", strings.Replace(r1, "1.00", "0.33", 1) + " " + strings.Replace(r2, "2.50", "0.83", 1) + " " + r3, nil},
		{"UPDATE t SET m = m + 0.005 WHERE id = 3", r1 + " " + r2 + " " + strings.Replace(r3, "-0.01", "-0.01", 1), nil}, // -0.005 rounds away
		{"UPDATE t SET m = $1 WHERE id = 1", strings.Replace(r1, "1.00", "0.10", 1) + " " + r2 + " " + r3, []any{0.1}},
		{"UPDATE t SET s = s || '-' || $1 WHERE id <> 9", strings.Replace(r1, ",a,", ",a-z,", 1) + " " + r2 + " " + strings.Replace(r3, ",c,", ",c-z,", 1), []any{"z"}},
		{"UPDATE t SET s = NULL, u = '05000000-0000-0000-0000-000000000000', st = '{\"x\": 9}' WHERE id = 3", r1 + " " + r2 + " " + `3,0,-0.01,-,05000000-0000-0000-0000-000000000000,1969-12-31T00:00:00,-,{"x":9},2`, nil},
		{"UPDATE t SET ts = d WHERE id = 3", r1 + " " + r2 + " " + strings.Replace(r3, "00:00:00,-,", "00:00:00,1969-12-31T00:00:00,", 1), nil},
		{"UPDATE t SET f = n, n = f WHERE id = 3", r1 + " " + r2 + " " + `3,2,-0.01,c,03000000-0000-0000-0000-000000000000,1969-12-31T00:00:00,-,{"x":null},0`, nil}, // both from the old row
		{"UPDATE t SET id = st.x + 1 WHERE st.x IS NOT NULL", "2" + r1[1:] + " " + r2 + " " + r3, nil},
		{"UPDATE t SET n = 1 WHERE FALSE", r1 + " " + r2 + " " + r3, nil},
		{"UPDATE t SET st = st, u = u", r1 + " " + r2 + " " + r3, nil},
	} {
		got, err := update(t, sc, b, c.text, c.args...)
		if err != nil || got != c.want {
			t.Errorf("%s\n got %s\nwant %s\n%v", c.text, got, c.want, err)
		}
	}
	for text, want := range map[string]string{
		"UPDATE t SET n = 1 / n":                "division by zero",
		"UPDATE t SET n = 2147483647 + n":       "SET n: the result is out of the range",
		"UPDATE t SET n = n * 0.25":             "SET n: the result is not a whole number",
		"UPDATE t SET m = m * 1000":             "SET m: the result is out of the range",
		"UPDATE t SET id = n":                   "SET id: the column is NOT NULL",
		"UPDATE t SET id = NULL":                "column id of type long: value NULL: the column is NOT NULL",
		"UPDATE t SET m = 1.001":                "column m of type decimal(5, 2): value 1.001: it has more decimal places",
		"UPDATE t SET m = 1000":                 "out of the type's range",
		"UPDATE t SET n = 'x'":                  "it is not a number",
		"UPDATE t SET n = s":                    "column n of type int: it cannot be set to a value of type string",
		"UPDATE t SET d = ts":                   "column d of type date: it cannot be set to a value of type timestamp",
		"UPDATE t SET s = 5":                    "column s of type string: value 5: it is of another type",
		"UPDATE t SET nosuch = 1":               "column nosuch: there is no such column",
		"UPDATE t SET n = 1, n = 2":             "column n: it is set twice",
		"UPDATE t SET n = d + 1":                "column d of type date: arithmetic is for numbers",
		"UPDATE t SET m = f / 0.3 WHERE id = 9": "",
	} {
		_, err := update(t, sc, b, text)
		var kind interface{ Kind() branches.Kind }
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		case want != "" && (!errors.As(err, &kind) || kind.Kind() != branches.Permanent):
			t.Errorf("%s: %T is not PERMANENT", text, err)
		}
	}
}

func TestFilterAndRestDivideTheRows(t *testing.T) {
	sc, b := updatable(t)
	p, err := icesql.Bind(where(t, "s = 'a'"), sc, nil) // true, unknown, false
	if err != nil {
		t.Fatal(err)
	}
	mask, err := p.Eval(b)
	if err != nil {
		t.Fatal(err)
	}
	if mask.Count() != 1 {
		t.Errorf("%d rows", mask.Count())
	}
	ids := func(keep func() (arrow.RecordBatch, error)) string {
		out, err := keep()
		if err != nil {
			t.Fatal(err)
		}
		defer out.Release()
		rows, err := drain(open(t, sc, scan(nil, out), "SELECT id, u, st FROM t"))
		if err != nil {
			t.Fatal(err)
		}
		return printed(rows)
	}
	if got := ids(func() (arrow.RecordBatch, error) { return mask.Filter(t.Context(), b) }); got != `1,01000000-0000-0000-0000-000000000000,{"x":1}` {
		t.Errorf("Filter: %s", got)
	}
	if got := ids(func() (arrow.RecordBatch, error) { return mask.Rest(t.Context(), b) }); got != `2,-,- 3,03000000-0000-0000-0000-000000000000,{"x":null}` {
		t.Errorf("Rest: %s", got)
	}
	if _, err := mask[:2].Filter(t.Context(), b); err == nil {
		t.Error("a mask of another length was taken")
	}
}

func TestArgumentsSurviveThePayload(t *testing.T) {
	east := time.FixedZone("", 2*3600)
	number, err := icevalue.ParseNumber("-12.340")
	if err != nil {
		t.Fatal(err)
	}
	args := named(nil, true, int64(math.MinInt64), uint64(math.MaxUint64), 0.1, math.Inf(-1), "text\x00\xff", []byte{0, 255}, []byte{},
		time.Date(2026, 2, 3, 4, 5, 6, 123456789, east), time.Date(-5, 1, 1, 0, 0, 0, 1, time.UTC), 90*time.Second, uuid.UUID{7}, number)
	args[3].Name = "name"
	raw, err := icesql.EncodeArgs(args)
	if err != nil {
		t.Fatal(err)
	}
	back, err := icesql.DecodeArgs(raw)
	if err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(a, b time.Time) bool {
		_, x := a.Zone()
		_, y := b.Zone()
		return a.Equal(b) && x == y
	})
	bigs := cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })
	if d := cmp.Diff(args, back, same, bigs); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "[{}]", `[{"o":1,"t":"time","v":"x"}]`} {
		if _, err := icesql.DecodeArgs([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestNestedArgumentsSurviveThePayload(t *testing.T) {
	east := time.FixedZone("", 2*3600)
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{
		{ID: 20, Name: "b", Type: primitive.Binary},
		{ID: 21, Name: "ts", Type: primitive.Timestamp},
		{ID: 22, Name: "d", Type: primitive.Date},
		{ID: 23, Name: "m", Type: &iceberg.MapType{KeyID: 24, KeyType: primitive.Int32, ValueID: 25, ValueType: primitive.Time}},
		{ID: 26, Name: "l", Type: &iceberg.ListType{ElementID: 27, Element: primitive.UUID}},
	}}
	sc := schema(field("id", primitive.Int64), field("st", inner))
	b := batch(t, sc, []any{1, nil})
	at := time.Date(2026, 2, 3, 1, 0, 0, 0, east)
	value := map[string]any{"b": []byte{0, 255}, "ts": at, "d": at, "m": map[int]any{7: at, 8: nil}, "l": []uuid.UUID{{1}}}
	type object struct {
		B string `json:"b"`
	}
	for _, arg := range []any{value, object{"00ff"}, map[string]any{}, `{"b": "00ff"}`} {
		raw, err := icesql.EncodeArgs(named(arg))
		if err != nil {
			t.Fatal(err)
		}
		back, err := icesql.DecodeArgs(raw)
		if err != nil {
			t.Fatal(err)
		}
		want, err := update(t, sc, b, "UPDATE t SET st = $1", arg)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := update(t, sc, b, "UPDATE t SET st = $1", back[0].Value); err != nil || got != want {
			t.Errorf("%v: %s, want %s (%v)", arg, got, want, err)
		}
	}
}

func TestTravel(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		text string
		args []any
		want icesql.Travel
	}{
		{"FOR VERSION AS OF 8954597067493422955", nil, icesql.Travel{SnapshotID: 8954597067493422955}},
		{"FOR VERSION AS OF $1", []any{int64(-7)}, icesql.Travel{SnapshotID: -7}},
		{"FOR VERSION AS OF $1", []any{"42"}, icesql.Travel{SnapshotID: 42}},
		{"FOR SYSTEM_VERSION AS OF 'audit'", nil, icesql.Travel{Ref: "audit"}},
		{"FOR TIMESTAMP AS OF TIMESTAMP '2026-01-02 03:04:05'", nil, icesql.Travel{At: at}},
		{"FOR TIMESTAMP AS OF '2026-01-02T05:04:05+02:00'", nil, icesql.Travel{At: at}},
		{"FOR SYSTEM_TIME AS OF ?", []any{at}, icesql.Travel{At: at}},
	} {
		s := mustParse(t, "SELECT * FROM t "+c.text).(*icesql.Select)
		got, err := s.AsOf.Resolve(named(c.args...))
		if err != nil || got.SnapshotID != c.want.SnapshotID || got.Ref != c.want.Ref || !got.At.Equal(c.want.At) {
			t.Errorf("%s: %+v, want %+v (%v)", c.text, got, c.want, err)
		}
	}
	for text, arg := range map[string]any{
		"FOR VERSION AS OF 1.5":    nil,
		"FOR VERSION AS OF $1":     nil,
		"FOR TIMESTAMP AS OF 5":    nil,
		"FOR TIMESTAMP AS OF $1":   "yesterday",
		"FOR TIMESTAMP AS OF NULL": nil,
	} {
		s := mustParse(t, "SELECT * FROM t "+text).(*icesql.Select)
		if got, err := s.AsOf.Resolve(named(arg)); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
