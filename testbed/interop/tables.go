package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// column is a type with values that are hard for somebody, and the transforms
// that tables are partitioned by it with.
type column struct {
	name       string
	sql        string // the type
	values     []canon.Cell
	transforms string
	oldest     int // the first format version that has the type
}

// texts makes cells of texts.
func texts(all ...string) []canon.Cell {
	cells := make([]canon.Cell, len(all))
	for i, s := range all {
		cells[i] = s
	}
	return cells
}

const (
	firstMicro = "-62135596800000000"   // 0001-01-01T00:00:00
	lastMicro  = "253402300799999999"   // 9999-12-31T23:59:59.999999
	firstNano  = "-9223372036854775000" // 1677
	lastNano   = "9223372036854775000"  // 2262
)

func columns() []column {
	micros := texts(firstMicro, "-31536000000001", "-86400000001", "-86400000000", "-3600000001", "-3600000000", "-1", "0", "1",
		"3599999999", "86399999999", "86400000000", "1796040123456789", lastMicro)
	nanos := texts(firstNano, "-86400000000001", "-3600000000001", "-1001", "-1", "0", "1", "999", "1796040123456789123", lastNano)
	strs := texts("a", "ab", "abc", "abcd", "ABC", "æøå", "€𝄞x!", "a/b c=d%25&e", "oslo", "riga", strings.Repeat("long", 20),
		"\u00e9", "e\u0301", " lead", "tail ", ".", "..", "null", "__HIVE_DEFAULT_PARTITION__")
	floats := []canon.Cell{
		canon.Float(0), canon.Float(float32(math.Copysign(0, -1))), canon.Float(1.5), canon.Float(-math.MaxFloat32),
		canon.Float(float32(math.NaN())), canon.Float(float32(math.Inf(-1))),
	}
	doubles := []canon.Cell{
		canon.Double(0), canon.Double(math.Copysign(0, -1)), canon.Double(0.1), canon.Double(math.MaxFloat64),
		canon.Double(math.Float64frombits(0x7ff8000000000000)), canon.Double(math.Inf(1)),
	}
	return []column{
		{"bool", "boolean", []canon.Cell{true, false}, "identity", 1},
		{"int", "int", texts("-2147483648", "-11", "-10", "-1", "0", "1", "9", "10", "34", "2147483647"), "identity bucket16 truncate10", 1},
		{"long", "long", texts("-9223372036854775808", "-11", "-1", "0", "9", "34", "9223372036854775807"), "identity bucket16 truncate10", 1},
		{"float", "float", floats, "identity", 1},
		{"double", "double", doubles, "identity", 1},
		{"dec9", "decimal(9,2)", texts("-9999999.99", "-10.65", "-0.01", "0.00", "0.50", "14.20", "9999999.99"), "identity bucket16 truncate50", 1},
		{"dec18", "decimal(18,4)", texts("-99999999999999.9999", "-0.0001", "0.0000", "1.2300", "99999999999999.9999"), "identity bucket16 truncate50", 1},
		{
			"dec38", "decimal(38,10)", texts("-9999999999999999999999999999.9999999999", "-0.0000000001", "0.0000000000",
				"12345678901234567890.0123456789", "9999999999999999999999999999.9999999999"), "identity bucket16 truncate50", 1,
		},
		{
			"date", "date", texts("-719162", "-25567", "-366", "-365", "-31", "-1", "0", "1", "31", "365", "20787", "2932896"),
			"identity bucket16 year month day", 1,
		},
		{"time", "time", texts("0", "1", "81068000000", "86399999999"), "identity bucket16", 1},
		{"ts", "timestamp", micros, "identity bucket16 year month day hour", 1},
		{"tz", "timestamptz", micros, "identity bucket16 year month day hour", 1},
		{"str", "string", strs, "identity bucket16 truncate3", 1},
		{
			"uuid", "uuid", texts("00000000-0000-0000-0000-000000000000", "f79c3e09-677c-4bbd-a479-3f349cb785e7",
				"ffffffff-ffff-ffff-ffff-ffffffffffff"), "identity bucket16", 1,
		},
		{"fix", "fixed(5)", texts("0000000000", "0001020304", "ffffffffff"), "identity bucket16", 1},
		{"bin", "binary", texts("", "00", "0001", "000102030405", "ff"), "identity bucket16 truncate2", 1},
		{"tsn", "timestamp_ns", nanos, "identity bucket16 year month day hour", 3},
		{"tzn", "timestamptz_ns", nanos, "identity bucket16 year month day hour", 3},
	}
}

// nestedColumns are the ones of the tables of all types.
var nestedColumns = []struct{ name, sql string }{
	{"li", "list<int>"},
	{"lr", "list<string not null>"},
	{"mp", "map<string, long>"},
	{"ms", "map<int, struct<x: decimal(9,2), y: timestamptz>>"},
	{"st", "struct<a: int, b: string, c: struct<d: date, u: uuid>>"},
	{"ls", "list<struct<x: long, y: list<string>>>"},
}

// nestedRow is the k-th row's: full, empty, NULL in turn.
func nestedRow(k int) canon.Row {
	switch k % 3 {
	case 0:
		return canon.Row{
			"li": []any{"1", nil, "-3"}, "lr": []any{"", "æ"},
			"mp": []any{[]any{"", "1"}, []any{"k", nil}},
			"ms": []any{[]any{"-1", nil}, []any{"7", canon.Row{"x": "-1.50", "y": "-1"}}},
			"st": canon.Row{"a": "5", "b": nil, "c": canon.Row{"d": "-1", "u": "f79c3e09-677c-4bbd-a479-3f349cb785e7"}},
			"ls": []any{canon.Row{"x": "1", "y": []any{"p", nil}}, nil, canon.Row{"x": nil, "y": []any{}}},
		}
	case 1:
		return canon.Row{
			"li": []any{}, "lr": []any{}, "mp": []any{}, "ms": []any{},
			"st": canon.Row{"a": nil, "b": "", "c": nil}, "ls": []any{},
		}
	}
	return canon.Row{"li": nil, "lr": nil, "mp": nil, "ms": nil, "st": nil, "ls": nil}
}

// design is a table: two columns, one of which it is partitioned by, or all types.
type design struct {
	name    string
	version int
	columns string // between the parentheses of CREATE TABLE
	clause  string // PARTITIONED BY …
	moved   string // the column that UPDATE changes, to the value of another row
	rows    []canon.Row
}

func (c column) design(transform string, version int) design {
	clause := map[string]string{
		"identity": "v", "bucket16": "bucket(16, v)", "truncate10": "truncate(10, v)", "truncate50": "truncate(50, v)",
		"truncate3": "truncate(3, v)", "truncate2": "truncate(2, v)",
		"year": "year(v)", "month": "month(v)", "day": "day(v)", "hour": "hour(v)",
	}[transform]
	d := design{
		name: fmt.Sprintf("%s_%s_v%d", c.name, transform, version), version: version,
		columns: "id long NOT NULL, v " + c.sql, clause: "PARTITIONED BY (" + clause + ")", moved: "v",
	}
	cells := append(slices.Clone(c.values), nil)
	if c.name == "str" && transform == "bucket16" {
		cells = append(cells, "") // refused where a partition is named by the text itself
	}
	for i, cell := range cells {
		d.rows = append(d.rows, canon.Row{"id": fmt.Sprint(i), "v": cell})
	}
	return d
}

// typesDesign is a table of every type that a format version has.
func typesDesign(version int) design {
	d := design{name: fmt.Sprintf("types_v%d", version), version: version, moved: "c_dec9"}
	names := []string{"id long NOT NULL"}
	n := 0
	var all []column
	for _, c := range columns() {
		if c.oldest <= version {
			if c.name == "str" {
				c.values = append(c.values, "")
			}
			all = append(all, c)
			names = append(names, "c_"+c.name+" "+c.sql)
			n = max(n, len(c.values))
		}
	}
	for _, c := range nestedColumns {
		names = append(names, c.name+" "+c.sql)
	}
	d.columns = strings.Join(names, ", ")
	for k := range n + 1 {
		row := nestedRow(k)
		if k == n {
			row = nestedRow(2)
		}
		row["id"] = fmt.Sprint(k)
		for _, c := range all {
			if row["c_"+c.name] = c.values[k%len(c.values)]; k == n {
				row["c_"+c.name] = nil
			}
		}
		d.rows = append(d.rows, row)
	}
	return d
}

// fewDesigns are those of the short form: each type, each transform and each version
// is in one of them.
var fewDesigns = strings.Fields(`types_v2 types_v3 bool_identity_v1 int_identity_v2 long_truncate10_v2 double_identity_v2 dec38_bucket16_v3 dec9_truncate50_v2
	date_month_v2 date_year_v1 time_identity_v2 ts_day_v3 tz_hour_v2 str_identity_v2 str_truncate3_v3 uuid_bucket16_v2 fix_identity_v2
	bin_truncate2_v3 tsn_identity_v3`)

// extent says how many of the tables are made.
type extent int

// The extents: everything; each type and transform in one format version, for what
// only differs in its catalog; and few.
const (
	every extent = iota
	oneVersion
	few
)

// tables that there are at least.
func (e extent) least() int { return map[extent]int{every: 150, oneVersion: 60, few: 20}[e] }

// designs are the tables of a run, but the one whose schema changes.
func designs(e extent) []design {
	var all []design
	for version := 1; version <= 3; version++ {
		all = append(all, typesDesign(version))
		for _, c := range columns() {
			if c.oldest > version || e == oneVersion && version != max(2, c.oldest) {
				continue
			}
			for transform := range strings.FieldsSeq(c.transforms) {
				all = append(all, c.design(transform, version))
			}
		}
	}
	if e != few {
		return all
	}
	return slices.DeleteFunc(all, func(d design) bool { return !slices.Contains(fewDesigns, d.name) })
}
