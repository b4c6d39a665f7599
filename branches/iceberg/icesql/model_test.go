package icesql_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// The model: a second implementation of the conditions, by the row, in the plainest
// words. Values are nil, int64, float64, string, []byte, time.Time or bool.

type modelColumn struct {
	name   string
	typ    iceberg.Type
	values []any // the values that both rows and conditions draw from
	text   func(v any) string
}

// timeColumns are the types that modelColumns leaves out.
func timeColumns() []modelColumn {
	base := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	instants := []any{base, base.Add(1), base.Add(-1), base.Add(36 * time.Hour), time.Unix(0, -1).UTC(), time.Unix(0, math.MaxInt64).UTC()}
	text := func(layout string) func(any) string {
		return func(v any) string { return quoted(v.(time.Time).Format(layout)) }
	}
	var days []any
	for _, n := range []int64{0, -1, 1, 20454, -719162} {
		days = append(days, time.Unix(n*86400, 0).UTC())
	}
	micros := []any{base, base.Add(time.Microsecond), time.Unix(-1, 999999000).UTC()}
	return []modelColumn{
		{"tn", primitive.TimestampNs, instants, text("2006-01-02 15:04:05.999999999")},
		{"tzn", primitive.TimestampTzNs, instants, text(time.RFC3339Nano)},
		{"ts", primitive.Timestamp, micros, text("2006-01-02T15:04:05.999999")},
		{"day", primitive.Date, days, text("2006-01-02")},
		{"clock", primitive.Time, []any{"00:00:00", "12:00:00.000001", "23:59:59.999999"}, func(v any) string { return quoted(v.(string)) }},
		{"fx", iceberg.FixedTypeOf(2), []any{[]byte{0, 0}, []byte{0, 255}, []byte{255, 0}}, func(v any) string { return fmt.Sprintf("X'%x'", v) }},
		{"f", primitive.Float32, []any{-1.5, 0.0, math.Copysign(0, -1), 2.25, math.NaN(), math.Inf(1), math.Inf(-1)}, func(v any) string {
			return "'" + strings.Replace(fmt.Sprint(v), "+Inf", "Infinity", 1) + "'"
		}},
	}
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
