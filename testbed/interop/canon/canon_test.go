package canon_test

import (
	"testing"

	lib "github.com/apache/iceberg-go"
	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

func nested() lib.Type {
	p := lib.PrimitiveTypes
	return &lib.StructType{FieldList: []lib.NestedField{
		{ID: 1, Name: "d", Type: p.Date},
		{ID: 2, Name: "m", Type: &lib.MapType{KeyID: 3, KeyType: p.Int32, ValueID: 4, ValueType: p.TimestampTz}},
		{ID: 5, Name: "l", Type: &lib.ListType{ElementID: 6, Element: p.Float32}},
		{ID: 7, Name: "u", Type: p.UUID},
	}}
}

// What is written and what is read are spelled alike, for every type.
func TestBothWays(t *testing.T) {
	p := lib.PrimitiveTypes
	for _, c := range []struct {
		t    lib.Type
		cell canon.Cell
	}{
		{p.Bool, true},
		{p.Int32, "-2147483648"},
		{p.Int64, "9223372036854775807"},
		{p.Float32, "7fc00000"}, // NaN
		{p.Float32, "80000000"}, // -0
		{p.Float64, "fff0000000000000"},
		{lib.DecimalTypeOf(9, 2), "-0.01"},
		{p.Date, "-719162"},
		{p.Time, "86399999999"},
		{p.Timestamp, "-62135596800000000"},
		{p.TimestampTz, "253402300799999999"},
		{p.TimestampNs, "-9223372036854775000"},
		{p.TimestampTzNs, "1"},
		{p.String, "€𝄞"},
		{p.UUID, "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
		{lib.FixedTypeOf(2), "00ff"},
		{p.Binary, ""},
		{p.Binary, nil},
		{nested(), canon.Row{
			"d": "-1", "u": nil,
			"m": []any{[]any{"-1", nil}, []any{"7", "-1"}},
			"l": []any{canon.Float(1.5), nil},
		}},
		{nested(), canon.Row{"d": nil, "u": "f79c3e09-677c-4bbd-a479-3f349cb785e7", "m": []any{}, "l": nil}},
	} {
		arg, err := canon.Arg(c.t, c.cell)
		if err != nil {
			t.Fatalf("%s %v: %v", c.t, c.cell, err)
		}
		got, err := canon.Of(c.t, arg)
		if err != nil {
			t.Fatalf("%s %v: %v", c.t, c.cell, err)
		}
		if diff := cmp.Diff(c.cell, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.t, diff)
		}
	}
}

func TestDifferences(t *testing.T) {
	a, b := canon.Row{"id": "1", "v": nil}, canon.Row{"id": "2", "v": "<&>"}
	for _, c := range []struct {
		name      string
		want, got []canon.Row
		lines     []string
	}{
		{"equal in another order", []canon.Row{a, b}, []canon.Row{b, a}, nil},
		{"lost", []canon.Row{a, b}, []canon.Row{a}, []string{`missing {"id":"2","v":"<&>"}`}},
		{"doubled", []canon.Row{a, b}, []canon.Row{a, b, b}, []string{`unexpected {"id":"2","v":"<&>"}`}},
		{"changed", []canon.Row{a}, []canon.Row{{"id": "1", "v": ""}}, []string{`unexpected {"id":"1","v":""}`, `missing {"id":"1","v":null}`}},
	} {
		if diff := cmp.Diff(c.lines, canon.Differences(c.want, c.got)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}
