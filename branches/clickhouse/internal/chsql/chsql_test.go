package chsql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

func TestKindOf(t *testing.T) {
	for text, want := range map[string]chsql.Kind{
		"":                               chsql.Empty,
		" -- SELECT 1":                   chsql.Empty,
		"SELECT 1":                       chsql.Read,
		"(((select 1)))":                 chsql.Read,
		"/* a /* b */ c */ SHOW TABLES":  chsql.Read,
		"# x\nDESCRIBE t":                chsql.Read,
		"EXPLAIN INSERT INTO t SELECT 1": chsql.Read,
		"FROM t SELECT a":                chsql.Read,
		"CHECK TABLE t":                  chsql.Read,
		"WITH 'insert' AS x SELECT x":    chsql.Read,
		"WITH `insert` AS x SELECT x":    chsql.Read,
		"WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x": chsql.Insert,
		"insert into t values (1)":                           chsql.Insert,
		"SET x = 1":                                          chsql.Session,
		"use d":                                              chsql.Session,
		"ALTER TABLE t ADD COLUMN a Int8":                    chsql.Change,
		"KILL QUERY WHERE 1":                                 chsql.Change,
		"selects":                                            chsql.Change,
		"?":                                                  chsql.Change,
	} {
		if got, _ := chsql.KindOf(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestParseInsert(t *testing.T) {
	cell := func(text string, kind chsql.CellKind, value string, index int) chsql.Cell {
		return chsql.Cell{Text: text, Kind: kind, Value: value, Index: index}
	}
	for text, want := range map[string]chsql.InsertInto{
		"INSERT INTO t VALUES (?, ?)": {Table: "t", Rows: [][]chsql.Cell{
			{cell("?", chsql.Positional, "", 0), cell("?", chsql.Positional, "", 1)},
		}},
		"INSERT INTO `d`.\"t\" (a, `b c`, n.x) VALUES":   {Database: "d", Table: "t", Columns: []string{"a", "b c", "n.x"}},
		"INSERT INTO table.t":                            {Database: "table", Table: "t"},
		"INSERT INTO TABLE t (values)":                   {Table: "t", Columns: []string{"values"}},
		"INSERT INTO t VALUES (f(?, ?), ?, $$a), ($$)":   {Table: "t", Rows: [][]chsql.Cell{{{Text: "f(?, ?)", Params: 2}, cell("?", chsql.Positional, "", 2), {Text: "$$a), ($$"}}}},
		"INSERT INTO t VALUES (-1) (+2.5e-3), (null);":   {Table: "t", Rows: [][]chsql.Cell{{cell("-1", chsql.Number, "-1", 0)}, {cell("+2.5e-3", chsql.Number, "2.5e-3", 0)}, {cell("null", chsql.Null, "", 0)}}},
		"INSERT INTO t VALUES ('\\x41', TRUE, {a:Int8})": {Table: "t", Rows: [][]chsql.Cell{{{Text: "'\\x41'"}, cell("TRUE", chsql.Bool, "true", 0), cell("{a:Int8}", chsql.Named, "a", 0)}}},
		"INSERT INTO t VALUES (@n, $2 -- c\n, [1, (2)])": {Table: "t", Rows: [][]chsql.Cell{{cell("@n", chsql.Named, "n", 0), cell("$2", chsql.Numbered, "", 1), {Text: "[1, (2)]"}}}},
	} {
		got, err := chsql.ParseInsert(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, text := range []string{
		"INSERT t VALUES (1)", "INSERT INTO", "INSERT INTO t VALUES (", "INSERT INTO t VALUES (1", "INSERT INTO t VALUES ()",
		"INSERT INTO t VALUES (1,)", "INSERT INTO t VALUES (1) x", "INSERT INTO t (a", "INSERT INTO t (a b) VALUES (1, 2)",
		"INSERT INTO t VALUES ($0)", "INSERT INTO t VALUES ($99999999999999999999)", "INSERT INTO 't' VALUES (1)", "INSERT INTO t VALUES 1",
	} {
		in, err := chsql.ParseInsert(text)
		if _, ok := errors.AsType[*chsql.Refused](err); !ok {
			t.Errorf("%s: %+v, %v", text, in, err)
		}
	}
}

func TestConstraints(t *testing.T) {
	create := "CREATE TABLE d.t (`constraint` Int8, `a` String DEFAULT 'CONSTRAINT x CHECK 1, (', CONSTRAINT one CHECK (a > 0) AND b IN (1, 2), " +
		"INDEX i a TYPE minmax, CONSTRAINT `t w` CHECK f(')', a), CONSTRAINT no ASSUME 1) ENGINE = MergeTree COMMENT 'CONSTRAINT z CHECK 0'"
	want := []chsql.Constraint{{"one", "(a > 0) AND b IN (1, 2)"}, {"t w", "f(')', a)"}}
	if diff := cmp.Diff(want, chsql.Constraints(create)); diff != "" {
		t.Error(diff)
	}
	if got := chsql.Constraints("CREATE TABLE t (a Int8, CONSTRAINT x CHECK ("); len(got) > 0 {
		t.Errorf("constraints of half a statement: %v", got)
	}
}

func TestQuote(t *testing.T) {
	for _, text := range []string{"", "a", "it's", "back\\slash", "tick`", "line\nbreak", "zero\x00byte", "é", `"`} {
		for _, quoted := range []string{chsql.Text(text), chsql.Name(text)} {
			if got, ok := chsql.Unquote(quoted); !ok || got != text {
				t.Errorf("%q quoted %s reads %q, %t", text, quoted, got, ok)
			}
		}
	}
	for _, bad := range []string{"", "'", "'a", `'a\q'`, `'a\`, "a"} {
		if got, ok := chsql.Unquote(bad); ok {
			t.Errorf("%s reads %q", bad, got)
		}
	}
}

// FuzzParseInsert: no text makes it fail otherwise than by refusal, and what it
// reads of a cell lies in the text.
func FuzzParseInsert(f *testing.F) {
	for _, seed := range []string{
		"INSERT INTO t VALUES (?, $1, @n, 'x''y', [1], {a:Int8}, f('('))", "INSERT INTO `d`.t (a, b) VALUES (1, 2), (3, 4);",
		"INSERT INTO t -- c\n VALUES /* ( /* */ */ ($$x$$)", "insert into t(a)values('\\'')",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		chsql.KindOf(text)
		chsql.Constraints(text)
		in, err := chsql.ParseInsert(text)
		if err != nil {
			if _, ok := errors.AsType[*chsql.Refused](err); !ok {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, row := range in.Rows {
			if len(row) != len(in.Rows[0]) {
				t.Fatalf("%q: rows of different lengths", text)
			}
			for _, cell := range row {
				if !strings.Contains(text, cell.Text) || cell.Text == "" {
					t.Fatalf("%q: cell %q", text, cell.Text)
				}
			}
		}
	})
}
