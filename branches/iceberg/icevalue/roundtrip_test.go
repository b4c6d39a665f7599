package icevalue_test

import (
	"fmt"
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
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

var primitive = iceberg.PrimitiveTypes

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newRows(t fataler, mem memory.Allocator, fields ...iceberg.NestedField) *icevalue.Rows {
	t.Helper()
	for i := range fields {
		fields[i].ID = i + 1
	}
	sc := iceberg.NewSchema(0, fields...)
	as, err := table.SchemaToArrowSchema(sc, nil, true, false)
	if err != nil {
		t.Fatalf("arrow schema: %v", err)
	}
	rows, err := icevalue.NewRows(mem, sc, as)
	if err != nil {
		t.Fatalf("rows: %v", err)
	}
	return rows
}

// through writes values to a column of typ and reads them back.
func through(t fataler, typ iceberg.Type, values ...any) []any {
	t.Helper()
	mem := memory.NewGoAllocator()
	rows := newRows(t, mem, iceberg.NestedField{Name: "c", Type: typ})
	defer rows.Release()
	for _, v := range values {
		if err := rows.Append([]any{v}); err != nil {
			t.Fatalf("append %v to %s: %v", v, typ, err)
		}
	}
	var out []any
	for _, batch := range rows.Take() {
		out = append(out, readColumn(t, rows.Schema().Field(0), batch)...)
		batch.Release()
	}
	return out
}

func readColumn(t fataler, f iceberg.NestedField, batch arrow.RecordBatch) []any {
	t.Helper()
	r, err := icevalue.NewReader(f, batch.Column(0))
	if err != nil {
		t.Fatalf("reader: %v", err)
	}
	out := make([]any, batch.NumRows())
	for i := range out {
		out[i] = r.Value(i)
	}
	return out
}

var zone = time.FixedZone("east", 2*3600)

type named string

func nestedTypes() (list, byInt, byStruct, object iceberg.Type) {
	point := &iceberg.StructType{FieldList: []iceberg.NestedField{
		{ID: 101, Name: "x", Type: primitive.Int64, Required: true},
		{ID: 102, Name: "y \"q\"", Type: iceberg.DecimalTypeOf(9, 2)},
	}}
	list = &iceberg.ListType{ElementID: 103, Element: primitive.TimestampTz}
	byInt = &iceberg.MapType{KeyID: 104, KeyType: primitive.Int32, ValueID: 105, ValueType: primitive.Binary}
	byStruct = &iceberg.MapType{KeyID: 106, KeyType: point, ValueID: 107, ValueType: primitive.Float64}
	object = &iceberg.StructType{FieldList: []iceberg.NestedField{
		{ID: 108, Name: "day", Type: primitive.Date},
		{ID: 109, Name: "at", Type: primitive.Time},
		{ID: 110, Name: "u", Type: primitive.UUID},
		{ID: 111, Name: "ts", Type: primitive.Timestamp},
		{ID: 112, Name: "f", Type: primitive.Float32},
		{ID: 113, Name: "b", Type: primitive.Bool},
		{ID: 114, Name: "l", Type: &iceberg.ListType{ElementID: 115, Element: primitive.String}},
	}}
	return list, byInt, byStruct, object
}

func TestEveryTypeBothWays(t *testing.T) {
	id := uuid.MustParse("018f2e3c-1111-7000-8000-00000000abcd")
	clock := time.Date(2026, 2, 3, 4, 5, 6, 123456789, zone)
	wall := time.Date(2026, 2, 3, 4, 5, 6, 123456000, time.UTC)
	list, byInt, byStruct, object := nestedTypes()
	half, n7 := 0.5, 7
	for _, c := range []struct {
		typ       iceberg.Type
		give, get any
	}{
		{primitive.Bool, true, true},
		{primitive.Bool, "F", false},
		{primitive.Int32, math.MinInt32, int64(math.MinInt32)},
		{primitive.Int32, int8(-7), int64(-7)},
		{primitive.Int32, " 5"[1:], int64(5)},
		{primitive.Int32, 3.0, int64(3)},
		{primitive.Int32, &n7, int64(7)},
		{primitive.Int64, int64(math.MinInt64), int64(math.MinInt64)},
		{primitive.Int64, uint64(math.MaxInt64), int64(math.MaxInt64)},
		{primitive.Int64, "9223372036854775807", int64(math.MaxInt64)},
		{primitive.Int64, "1e3", int64(1000)},
		{primitive.Float32, float32(0.1), float64(float32(0.1))},
		{primitive.Float32, 0.1, float64(float32(0.1))},
		{primitive.Float32, math.Inf(-1), math.Inf(-1)},
		{primitive.Float64, &half, 0.5},
		{primitive.Float64, "-Infinity", math.Inf(-1)},
		{primitive.Float64, math.NaN(), math.NaN()},
		{primitive.Float64, math.Copysign(0, -1), math.Copysign(0, -1)},
		{primitive.Float64, int64(3), 3.0},
		{primitive.Date, clock, time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)},
		{primitive.Date, "1969-12-31", time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)},
		{primitive.Date, "-0044-03-15", time.Date(-44, 3, 15, 0, 0, 0, 0, time.UTC)},
		{primitive.Date, "12345-01-02", time.Date(12345, 1, 2, 0, 0, 0, 0, time.UTC)},
		{primitive.Time, "23:59:59.999999", "23:59:59.999999"},
		{primitive.Time, "00:00", "00:00:00"},
		{primitive.Time, clock, "04:05:06.123456"},
		{primitive.Time, 90 * time.Second, "00:01:30"},
		{primitive.Timestamp, clock, wall},
		{primitive.Timestamp, "2026-02-03 04:05:06.123456", wall},
		{primitive.Timestamp, "2026-02-03", time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)},
		{primitive.Timestamp, time.Unix(-1, 999999999).UTC(), time.Unix(-1, 999999000).UTC()},
		{primitive.Timestamp, time.UnixMicro(math.MaxInt64).UTC(), time.UnixMicro(math.MaxInt64).UTC()},
		{primitive.Timestamp, time.UnixMicro(math.MinInt64).UTC(), time.UnixMicro(math.MinInt64).UTC()},
		{primitive.TimestampTz, clock, wall.Add(-2 * time.Hour)},
		{primitive.TimestampTz, "2026-02-03T04:05:06.123456+02", wall.Add(-2 * time.Hour)},
		{primitive.TimestampTz, "2026-02-03 04:05:06.123456 -0330", wall.Add(3*time.Hour + 30*time.Minute)},
		{primitive.TimestampTz, "2026-02-03 04:05:06.123456Z", wall},
		{primitive.TimestampNs, clock, wall.Add(789)},
		{primitive.TimestampTzNs, clock, wall.Add(789 - 2*time.Hour)},
		{primitive.TimestampTzNs, time.Unix(0, math.MinInt64), time.Unix(0, math.MinInt64).UTC()},
		{primitive.String, "héllo", "héllo"},
		{primitive.String, "", ""},
		{primitive.String, []byte("bytes"), "bytes"},
		{primitive.String, named("named"), "named"},
		{primitive.UUID, id, id.String()},
		{primitive.UUID, [16]byte(id), id.String()},
		{primitive.UUID, id[:], id.String()},
		{primitive.UUID, strings.ToUpper(id.String()), id.String()},
		{iceberg.FixedTypeOf(3), []byte{0, 1, 2}, []byte{0, 1, 2}},
		{primitive.Binary, []byte{}, []byte{}},
		{primitive.Binary, "ab", []byte("ab")},
		{iceberg.DecimalTypeOf(38, 10), "-9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999"},
		{iceberg.DecimalTypeOf(9, 2), 0.1, "0.10"},
		{iceberg.DecimalTypeOf(9, 2), "-0.05", "-0.05"},
		{iceberg.DecimalTypeOf(9, 2), "1e3", "1000.00"},
		{iceberg.DecimalTypeOf(9, 2), int64(9999999), "9999999.00"},
		{iceberg.DecimalTypeOf(38, 0), new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), big.NewInt(1)), strings.Repeat("9", 38)},
		{iceberg.DecimalTypeOf(9, 2), big.NewRat(1, 4), "0.25"},
		{iceberg.DecimalTypeOf(2, 2), "0.99", "0.99"},
		{list, []time.Time{clock}, `["2026-02-03T02:05:06.123456+00:00"]`},
		{list, `["2026-02-03T02:05:06.123456+00:00", null]`, `["2026-02-03T02:05:06.123456+00:00",null]`},
		{list, []any{}, `[]`},
		{byInt, map[int][]byte{2: {255}, 1: nil}, `{"1":null,"2":"ff"}`},
		{byInt, `{"2": "FF"}`, `{"2":"ff"}`},
		{byStruct, `[[{"x": 1, "y \"q\"": "0.5"}, "NaN"], [{"x": 2}, 1.5]]`, `[[{"x":1,"y \"q\"":"0.50"},"NaN"],[{"x":2,"y \"q\"":null},1.5]]`},
		{
			object,
			map[string]any{"day": clock, "at": "01:02:03.5", "u": id, "ts": clock, "f": 0.1, "b": true, "l": []string{"<a>", ""}},
			`{"day":"2026-02-03","at":"01:02:03.5","u":"` + id.String() + `","ts":"2026-02-03T04:05:06.123456","f":0.1,"b":true,"l":["<a>",""]}`,
		},
		{object, `{}`, `{"day":null,"at":null,"u":null,"ts":null,"f":null,"b":null,"l":null}`},
	} {
		t.Run(fmt.Sprintf("%s/%T", c.typ, c.give), func(t *testing.T) {
			got := through(t, c.typ, nil, c.give, nil)
			want := []any{nil, c.get, nil}
			if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
				t.Errorf("%v: %s", c.give, d)
			}
			if f, ok := c.get.(float64); ok && f == 0 && math.Signbit(f) != math.Signbit(got[1].(float64)) {
				t.Errorf("the sign of zero is lost")
			}
			// What was read can be written, and is read as the same.
			if again := through(t, c.typ, got[1]); c.typ != primitive.Binary {
				if d := cmp.Diff(got[1], again[0], cmpopts.EquateNaNs()); d != "" {
					t.Errorf("written again: %s", d)
				}
			}
		})
	}
}

func TestAnyValueComesBack(t *testing.T) {
	decimals := func(rt *rapid.T) string {
		digits := rapid.StringMatching(`[1-9][0-9]{0,27}`).Draw(rt, "digits")
		return rapid.SampledFrom([]string{"", "-"}).Draw(rt, "sign") + digits + "." + rapid.StringMatching(`[0-9]{10}`).Draw(rt, "places")
	}
	rapid.Check(t, func(rt *rapid.T) {
		micros := time.UnixMicro(rapid.Int64().Draw(rt, "micros")).UTC()
		nanos := time.Unix(0, rapid.Int64().Draw(rt, "nanos")).UTC()
		day := time.Unix(86400*int64(rapid.Int32().Draw(rt, "day")), 0).UTC()
		for _, c := range []struct {
			typ iceberg.Type
			v   any
		}{
			{primitive.Int64, rapid.Int64().Draw(rt, "long")},
			{primitive.Float64, rapid.Float64().Draw(rt, "double")},
			{primitive.Float32, float64(rapid.Float32().Draw(rt, "float"))},
			{primitive.Date, day},
			{primitive.Timestamp, micros},
			{primitive.TimestampTz, micros},
			{primitive.TimestampNs, nanos},
			{primitive.TimestampTzNs, nanos},
			{primitive.String, rapid.String().Draw(rt, "string")},
			{primitive.Binary, rapid.SliceOf(rapid.Byte()).Draw(rt, "binary")},
			{iceberg.DecimalTypeOf(38, 10), decimals(rt)},
		} {
			if got := through(rt, c.typ, c.v); !cmp.Equal(got[0], c.v, cmpopts.EquateNaNs()) {
				rt.Fatalf("%s: wrote %v, read %v", c.typ, c.v, got[0])
			}
			list := &iceberg.ListType{ElementID: 9, Element: c.typ}
			first := through(rt, list, []any{c.v, nil})
			if again := through(rt, list, first[0]); again[0] != first[0] {
				rt.Fatalf("list of %s: %s became %s", c.typ, first[0], again[0])
			}
		}
	})
}
