package icesql_test

import (
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

func TestLike(t *testing.T) {
	sc := schema(field("s", primitive.String))
	for _, c := range []struct {
		text, pattern, escape string
		want                  bool
	}{
		{"", "", "", true},
		{"", "%", "", true},
		{"", "_", "", false},
		{"abc", "abc", "", true},
		{"abc", "ab", "", false},
		{"abc", "ab%", "", true},
		{"abc", "%bc", "", true},
		{"abc", "%b%", "", true},
		{"abc", "a%c", "", true},
		{"ac", "a%c", "", true},
		{"a", "a%a", "", false},
		{"aa", "a%a", "", true},
		{"abab", "%ab", "", true},
		{"abcab", "a%b%b", "", true},
		{"abc", "a_c", "", true},
		{"aøc", "a_c", "", true},
		{"aøøc", "a__c", "", true},
		{"abc", "_%_", "", true},
		{"a", "_%_", "", false},
		{"xaby", "%a_y", "", true},
		{"xabaøy", "%a_y%", "", true},
		{"xaby", "%_b_", "", true},
		{"100%", `100\%`, "", true},
		{"1000", `100\%`, "", false},
		{"a_b", `a\_b`, "", true},
		{"axb", `a\_b`, "", false},
		{`a\b`, `a\\b`, "", true},
		{"100%", "100!%", "!", true},
		{"100!", "100!!", "!", true},
		{"aøb", "aøøb", "ø", true},
		{`a\b`, `a\b`, "none", true},
		{`a\x`, `a\%`, "none", true},
		{"ABC", "abc", "", false},
		{"a\nb", "a%b", "", true},
		{strings.Repeat("a", 2000) + "b", strings.Repeat("%a", 50) + "c", "", false},
	} {
		condition, args := "s LIKE $1", []any{c.pattern}
		switch c.escape {
		case "":
		case "none":
			condition, args = "s LIKE $1 ESCAPE $2", []any{c.pattern, ""}
		default:
			condition, args = "s LIKE $1 ESCAPE $2", []any{c.pattern, c.escape}
		}
		b := batch(t, sc, []any{c.text}, []any{nil})
		want := map[bool]string{true: "TU", false: "FU"}[c.want]
		if got := truths(t, sc, b, condition, args...); got != want {
			t.Errorf("%q LIKE %q ESCAPE %q: %s, want %s", c.text, c.pattern, c.escape, got, want)
		}
		not := map[bool]string{true: "FU", false: "TU"}[c.want]
		if got := truths(t, sc, b, strings.Replace(condition, "LIKE", "NOT LIKE", 1), args...); got != not {
			t.Errorf("%q NOT LIKE %q: %s, want %s", c.text, c.pattern, got, not)
		}
		b.Release()
	}
	b := batch(t, sc, []any{"a"}, []any{nil})
	defer b.Release()
	if got := truths(t, sc, b, "s LIKE NULL"); got != "UU" {
		t.Errorf("LIKE NULL: %s", got)
	}
}

func TestFieldsOfAStruct(t *testing.T) {
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 20, Name: "x", Type: primitive.Int64}}}
	outer := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 21, Name: "in", Type: inner}, {ID: 22, Name: "y", Type: primitive.String}}}
	sc := schema(field("id", primitive.Int64), field("st", outer), field("l", &iceberg.ListType{ElementID: 23, Element: primitive.Int64}))
	rows := [][]any{
		{1, `{"in": {"x": 5}, "y": "a"}`, `[]`},
		{2, `{"in": {"x": null}, "y": "b"}`, nil},
		{3, `{"in": null, "y": null}`, nil},
		{4, nil, nil},
	}
	cases := []comparison{
		{"st.in.x = 5", nil, "TUUU"},
		{"st.in.x IS NULL", nil, "FTTT"},
		{"st.in IS NULL", nil, "FFTT"},
		{"st IS NULL", nil, "FFFT"},
		{"st.y > 'a'", nil, "FTUU"},
		{"st.y IN ('a')", nil, "TFUU"},
		{"l IS NOT NULL", nil, "TFFF"},
		{"t.st.in.x = t.id OR id = 4", nil, "FUUT"},
	}
	checkComparisons(t, sc, rows, cases)
	// A slice of a batch has its own offset.
	b := batch(t, sc, rows...)
	defer b.Release()
	s := b.NewSlice(1, 4)
	defer s.Release()
	for _, c := range cases {
		if got := truths(t, sc, s, c.condition); got != c.want[1:] {
			t.Errorf("sliced: %s: %s, want %s", c.condition, got, c.want[1:])
		}
	}
}
