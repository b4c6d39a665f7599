package icesql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
)

func TestSyntaxErrorSaysWhereAndWhat(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		want         string
	}{
		{"", 1, 1, "unexpected end of the statement; expected one of SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, SHOW, DESCRIBE, DESC"},
		{"SELEC 1", 1, 1, "unexpected “SELEC”; expected one of SELECT,"},
		{"SELECT a FROM", 1, 14, "unexpected end of the statement; expected a table"},
		{"SELECT a\nFROM t\nWHERE ä = ", 3, 11, "unexpected end of the statement; expected one of -, +, a value, a column, ("},
		{"SELECT a FROM t WHERE a == 1", 1, 26, "unexpected “=”; expected one of -, +, a value"},
		{"SELECT a FROM t WHERE a NOT 5", 1, 29, "unexpected “5”; expected one of BETWEEN, IN, LIKE"},
		{"SELECT a FROM t WHERE a = 1 b", 1, 29, "unexpected “b”; expected one of *, /, +, -, ||, AND, OR, GROUP, ORDER, LIMIT, OFFSET, ;, the end of the statement"},
		{"SELECT a FROM t GROUP a", 1, 23, "unexpected “a”; expected BY"},
		{"SELECT a FROM t; SELECT b FROM t", 1, 18, "unexpected “SELECT”; expected the end of the statement"},
		{"SELECT from FROM t", 1, 8, "unexpected “from”; expected one of *, NOT, -, +, a value, a column, ("},
		{"SELECT a AS from FROM t", 1, 13, "the reserved word FROM cannot be an alias unless it is quoted near “from FROM t”"},
		{"SELECT DISTINCT a FROM t", 1, 8, "SELECT DISTINCT is not supported: name the columns in GROUP BY"},
		{"SELECT a FROM t HAVING a", 1, 17, "HAVING is not supported"},
		{"SELECT a FROM t, u", 1, 16, "a query reads one table"},
		{"SELECT a FROM t JOIN u", 1, 17, "a query reads one table"},
		{"SELECT a FROM t WHERE a IN (SELECT 1)", 1, 29, "expected one of"},
		{"SELECT a FROM t WHERE a = (SELECT 1)", 1, 28, "a query inside a statement is not supported"},
		{"SELECT now() FROM t", 1, 8, "there is no function now: this grammar has count, sum, min, max and avg"},
		{"SELECT CASE a FROM t", 1, 8, "CASE is not supported"},
		{"SELECT sum(*) FROM t", 1, 12, "unexpected “*”"},
		{"SELECT sum(count(a)) FROM t", 1, 12, "an aggregate inside an aggregate"},
		{"SELECT sum(a) / 2 FROM t", 1, 19, "the aggregate sum cannot stand in a larger expression"},
		{"DELETE FROM t WHERE count(*) > 1", 1, 33, "the aggregate count cannot stand in WHERE"},
		{"SELECT a FROM t LIMIT 'x'", 1, 26, "LIMIT takes a number or a parameter"},
		{"SELECT a FROM t LIMIT b", 1, 23, "here must stand a number of rows as a literal or a parameter"},
		{"SELECT a FROM t FOR BRANCH x", 1, 21, "expected one of VERSION, SYSTEM_VERSION, TIMESTAMP, SYSTEM_TIME"},
		{"SELECT 'abc FROM t", 1, 8, "a string that is not closed near “'abc FROM t”"},
		{`SELECT "abc FROM t`, 1, 8, "a quoted identifier that is not closed"},
		{`SELECT "" FROM t`, 1, 8, "an empty identifier"},
		{"SELECT 1 /* x /* y */ FROM t", 1, 10, "a comment that is not closed"},
		{"SELECT X'0' FROM t", 1, 8, "a binary string that is not pairs of hexadecimal digits"},
		{"SELECT 1a FROM t", 1, 8, "a number that runs into other text"},
		{"SELECT 1e FROM t", 1, 9, "an exponent without digits"},
		{"SELECT 1.2.3 FROM t", 1, 8, "a number that runs into other text"},
		{"SELECT $0 FROM t", 1, 8, "a parameter that is not $1 to $99999"},
		{"SELECT $1000000 FROM t", 1, 8, "a parameter that is not $1 to $99999"},
		{"SELECT : FROM t", 1, 8, "a parameter without a name"},
		{"SELECT a FROM t WHERE a = ? AND b = $1", 1, 37, "?, $n and :name do not mix in one statement"},
		{"SELECT a FROM t WHERE a = :x AND b = ?", 1, 38, "?, $n and :name do not mix in one statement"},
		{"SELECT a & b FROM t", 1, 10, "a character that no statement has near “& b FROM t”"},
		{"SELECT a FROM t WHERE 'x\xff' = a", 1, 23, "a string that is not UTF-8 (bytes are written X'…')"},
		{"INSERT INTO t VALUES (1, 2), (1)", 1, 30, "a row of 1 values where 2 are expected"},
		{"INSERT INTO t (a) VALUES (1, 2)", 1, 26, "a row of 2 values where 1 are expected"},
		{"INSERT INTO t (a) VALUES ()", 1, 27, "unexpected “)”"},
		{"INSERT INTO t SELECT 1", 1, 15, "INSERT … SELECT is not supported: insert VALUES"},
		{"INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", 1, 26, "an Iceberg table has no keys"},
		{"UPDATE t SET a.b = 1", 1, 18, "a field inside a struct cannot be set alone"},
		{"UPDATE t SET a = ", 1, 18, "unexpected end of the statement"},
		{"CREATE VIEW v", 1, 8, "unexpected “VIEW”; expected one of NAMESPACE, SCHEMA, DATABASE, TABLE"},
		{"CREATE TABLE t (a int, a int)", 1, 24, "the column stands twice"},
		{"CREATE TABLE t (a struct<b int, b int>)", 1, 33, "the field stands twice"},
		{"CREATE TABLE t (a tinyint)", 1, 19, "there is no type tinyint: Iceberg has boolean, int, long,"},
		{"CREATE TABLE t (a decimal(39, 2))", 1, 27, "the precision must be a whole number from 1 to 38"},
		{"CREATE TABLE t (a decimal(5, 6))", 1, 30, "the scale must not be greater than the precision, 5"},
		{"CREATE TABLE t (a fixed(0))", 1, 25, "the length must be a whole number from 1"},
		{"CREATE TABLE t (a varchar(20))", 1, 26, "a string has no greatest length in Iceberg"},
		{"CREATE TABLE t (a int PRIMARY KEY)", 1, 23, "an Iceberg table has no constraints but NOT NULL"},
		{"CREATE TABLE t (PRIMARY KEY (a))", 1, 17, "an Iceberg table has no constraints but NOT NULL"},
		{"CREATE TABLE t (a int DEFAULT 5)", 1, 23, "DEFAULT is not supported"},
		{"CREATE TABLE t (a int) PARTITIONED BY (log(a))", 1, 40, "there is no partition transform log"},
		{"CREATE TABLE t (a int) PARTITIONED BY (bucket(0, a))", 1, 47, "the number of buckets must be a whole number from 1"},
		{"CREATE TABLE t (a int) TBLPROPERTIES ('k' = 'v', 'k' = 'w')", 1, 50, "the property stands twice"},
		{"CREATE TABLE t (a int) TBLPROPERTIES (k = 'v')", 1, 39, "expected a property's name in quotes"},
		{"DROP NAMESPACE IF erp", 1, 19, "unexpected “erp”; expected EXISTS"},
		{"SHOW COLUMNS", 1, 6, "expected one of TABLES, NAMESPACES, SCHEMAS, DATABASES"},
	} {
		_, err := icesql.Parse(c.text)
		var s *icesql.SyntaxError
		switch {
		case !errors.As(err, &s):
			t.Errorf("%q: %v", c.text, err)
		case s.Line != c.line || s.Column != c.column || !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: %v\nwant line %d, column %d: %s", c.text, err, c.line, c.column, c.want)
		case !strings.HasPrefix(err.Error(), fmt.Sprintf("rhizodat: parse statement: line %d, column %d: ", c.line, c.column)):
			t.Errorf("%q: %v", c.text, err)
		case s.Kind() != branches.Permanent:
			t.Errorf("%q is not PERMANENT", c.text)
		}
	}
}

func TestHostileNestingIsAnError(t *testing.T) {
	deep := func(n int, open, middle, end string) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	for _, text := range []string{
		"DELETE FROM t WHERE " + deep(1_000_000, "(", "a", ")"),
		"DELETE FROM t WHERE " + deep(1_000_000, "NOT ", "a", ""),
		"DELETE FROM t WHERE a = " + deep(1_000_000, "- ", "1", ""),
		"DELETE FROM t WHERE a = 1" + strings.Repeat(" + 1", 1_000_000),
		"CREATE TABLE t (a " + deep(1_000_000, "list<", "int", ">") + ")",
		"SELECT " + deep(1_000_000, "sum(", "a", ")") + " FROM t",
	} {
		if _, err := icesql.Parse(text); err == nil || len(err.Error()) > 500 {
			t.Errorf("%.40s: %.200v", text, err)
		}
	}
	// A flat list of conditions, as an ORM writes it, may be long.
	flat := "DELETE FROM t WHERE a = 1" + strings.Repeat(" OR a = 1", 20_000)
	s := mustParse(t, flat)
	if got := len(s.(*icesql.Delete).Where.(*icesql.Or).Terms); got != 20_001 {
		t.Errorf("%d terms", got)
	}
}

func TestStatementsAreWhatTheySay(t *testing.T) {
	for text, want := range map[string]icesql.Statement{
		"create namespace Erp.\"Eu\"": &icesql.CreateNamespace{Name: []string{"erp", "Eu"}},
		"SHOW TABLES IN erp":          &icesql.ShowTables{Namespace: []string{"erp"}},
		"DESCRIBE TABLE a.b.c;":       &icesql.Describe{Table: icesql.Name{Namespace: []string{"a", "b"}, Table: "c"}},
		"DELETE FROM ns.t AS x WHERE x.a = -9223372036854775808 -- all of it": &icesql.Delete{
			Table: icesql.Name{Namespace: []string{"ns"}, Table: "t"}, Alias: "x",
			Where: &icesql.Binary{Op: icesql.Eq, Left: &icesql.ColumnRef{Path: []string{"a"}}, Right: &icesql.Literal{Kind: icesql.NumberLiteral, Text: "-9223372036854775808"}},
		},
		`UPDATE t SET "A b" = ?, c = ? WHERE ns IS NULL`: &icesql.Update{
			Table: icesql.Name{Table: "t"},
			Set:   []icesql.Assignment{{Column: "A b", Value: &icesql.Param{Ordinal: 1}}, {Column: "c", Value: &icesql.Param{Ordinal: 2}}},
			Where: &icesql.IsNull{X: &icesql.ColumnRef{Path: []string{"ns"}}},
		},
		"SELECT Count(*) AS n FROM t WHERE date = DATE '2026-01-01' AND timestamp > $2": &icesql.Select{
			Items: []icesql.Item{{Expr: &icesql.Aggregate{Func: icesql.Count}, Alias: "n"}},
			From:  icesql.Name{Table: "t"},
			Where: &icesql.And{Terms: []icesql.Expr{
				&icesql.Binary{Op: icesql.Eq, Left: &icesql.ColumnRef{Path: []string{"date"}}, Right: &icesql.Literal{Kind: icesql.DateLiteral, Text: "2026-01-01"}},
				&icesql.Binary{Op: icesql.Gt, Left: &icesql.ColumnRef{Path: []string{"timestamp"}}, Right: &icesql.Param{Ordinal: 2}},
			}},
		},
	} {
		if d := cmp.Diff(want, mustParse(t, text), exact); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
	for text, want := range map[string]int{
		"SELECT a FROM t": 0, "SELECT a FROM t WHERE a = $3": 3, "INSERT INTO t VALUES (?, ?), (?, 1)": 3, "DELETE FROM t WHERE a = :x": -1,
		"SELECT a FROM t FOR VERSION AS OF $1 LIMIT $2 OFFSET $4": 4, "UPDATE t SET a = ? WHERE b = ?": 2, "SHOW TABLES": 0,
	} {
		if got := icesql.NumInput(mustParse(t, text)); got != want {
			t.Errorf("%s takes %d, want %d", text, got, want)
		}
	}
}

func TestCreateTableMakesSchemaAndPartitions(t *testing.T) {
	text := `CREATE TABLE t (id long NOT NULL COMMENT 'key', name string, at timestamptz, st struct<x: int, y: list<struct<z: uuid NOT NULL>>>)
		PARTITIONED BY (bucket(16, id), truncate(4, name), day(at), st.x)`
	create := mustParse(t, text).(*icesql.CreateTable)
	sc := create.Schema()
	if f, ok := sc.FindFieldByName("st.y.element.z"); !ok || !f.Required || f.ID == 0 {
		t.Errorf("%v %v", f, ok)
	}
	if f, _ := sc.FindFieldByName("id"); f.ID != 1 || !f.Required || f.Doc != "key" {
		t.Errorf("%v", f)
	}
	spec, err := create.PartitionSpec(sc)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range spec.Fields() {
		names = append(names, f.Name+"="+f.Transform.String())
	}
	if got := strings.Join(names, " "); got != "id_bucket_16=bucket[16] name_trunc_4=truncate[4] at_day=day st.x=identity" {
		t.Error(got)
	}
	for clause, want := range map[string]string{
		"(nosuch)":            "column nosuch: there is no such column to partition by",
		"(day(name))":         "column name of type string: the transform day does not take this type",
		"(truncate(4, at))":   "does not take this type",
		"(day(at), hour(at))": "partition the table",
		"(st)":                "does not take this type",
	} {
		create := mustParse(t, text[:strings.Index(text, "PARTITIONED")]+"PARTITIONED BY "+clause).(*icesql.CreateTable)
		if _, err := create.PartitionSpec(sc); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", clause, err, want)
		}
	}
	if spec, err := mustParse(t, "CREATE TABLE t (a int)").(*icesql.CreateTable).PartitionSpec(sc); spec != nil || err != nil {
		t.Errorf("%v %v", spec, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text)
	}
	for _, text := range []string{"SELECT $1", "'", `"`, "/*", "X'", "1e", "((((", "CREATE TABLE t (a struct<a:b", "--"} {
		f.Add(text)
	}
	for _, deep := range []string{"(", "NOT ", "-", "a + ", "a AND ", "a IN (", "CASE WHEN ", "CAST("} {
		f.Add("SELECT " + strings.Repeat(deep, 300) + "1 FROM t")
	}
	f.Add("CREATE TABLE t (a " + strings.Repeat("list<", 300) + "int)")
	for _, text := range []string{
		"SELECT $1, ?", "SELECT :a, $1", "SELECT $0", "SELECT $99999999999999999999", "SELECT 'ü', '''' FROM \"ü\"\"\"",
		"SELECT 1e999999999, -9223372036854775808, 0x", "SELECT /* /* */ 1", "-- only a comment", ";", "SELECT 1;;", "\xff\xfe",
	} {
		f.Add(text)
	}
	f.Fuzz(checkParse)
}

// TestDamagedStatements is the fuzz test's short form for every run: the corpus
// with pieces cut out, doubled and exchanged.
func TestDamagedStatements(t *testing.T) {
	texts := corpus(t)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SampledFrom(texts).Draw(rt, "text")
		for range rapid.IntRange(0, 4).Draw(rt, "wounds") {
			at := rapid.IntRange(0, len(text)).Draw(rt, "at")
			end := rapid.IntRange(at, min(len(text), at+12)).Draw(rt, "end")
			other := rapid.SampledFrom(texts).Draw(rt, "other")
			from := rapid.IntRange(0, len(other)).Draw(rt, "from")
			text = text[:at] + other[from:min(len(other), from+rapid.IntRange(0, 12).Draw(rt, "length"))] + text[end:]
		}
		checkParse(t, text)
	})
}

func checkParse(t *testing.T, text string) {
	t.Helper()
	s, err := icesql.Parse(text)
	if err != nil {
		var e *icesql.SyntaxError
		if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 || e.Offset < 0 || e.Offset > len(text) {
			t.Fatalf("%q: %v", text, err)
		}
		return
	}
	again, err := icesql.Parse(s.String())
	if err != nil {
		t.Fatalf("%q was printed as %q: %v", text, s, err)
	}
	if d := cmp.Diff(s, again, exact); d != "" {
		t.Fatalf("%q was printed as %q: %s", text, s, d)
	}
}
