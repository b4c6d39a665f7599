package drevo_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/branches/drevo"
)

// What a statement may do is told by its text, and in doubt it writes.
func TestRead(t *testing.T) {
	for _, test := range []struct {
		query            string
		writes, resolves bool
	}{
		{"MATCH (n) RETURN n", false, false},
		{"match (n:Set {a: $create}) return n.title", false, false},
		{"OPTIONAL MATCH (n) RETURN n", false, false},
		{"UNWIND [1, 2] AS x WITH x RETURN x", false, false},
		{"RETURN 'CREATE (n)'", false, false},
		{`RETURN "it's \" SET"`, false, false},
		{"RETURN 'a\\'; CREATE (n)'", false, false},
		{"// CREATE\nMATCH (n) RETURN n // SET", false, false},
		{"/* MERGE */ MATCH (`SET`) RETURN 1", false, false},
		{"MATCH (n:`A B`)-[:DELETE]->() RETURN n", false, false},

		{"CREATE (n:A)", true, false},
		{"MATCH (n) SET n.a = 1", true, false},
		{"MATCH (n) set n.a = 1", true, false},
		{"MATCH (n)\nDETACH\nDELETE n", true, false},
		{"MATCH (n) REMOVE n.a RETURN n", true, false},
		{"MATCH (n) WITH n MERGE (m:B)", true, false},
		{"MATCH (n) FOREACH (x IN [1] | CREATE (:A))", true, false},
		{"MATCH (n) /* ' */ SET n.a = ''", true, false},
		{"RETURN '' SET", true, false},

		// In doubt.
		{"", true, false},
		{"  // nothing", true, false},
		{"CALL db.labels()", true, false},
		{"MATCH (n) RETURN 'open", true, false},
		{"MATCH (n) RETURN `open", true, false},
		{"MATCH (n) /* open", true, false},
		{`MATCH (n) \u0053ET n.a = 1`, true, false},
		{"`MATCH` (n)", true, false},
		{"PROFILE MATCH (n) RETURN n", true, false},
		{"MATCH (n) RETURN n.set", true, false}, // a property, for all we know

		{"CALL drevo.tx.prepare('g')", true, true},
		{"call /* x */ drevo . tx\n.listPrepared()", true, true},
		{"CALL `drevo`.`tx`.`prepare`('g')", true, true},
		{"CALL `drevo.tx.prepare`('g')", true, true},
		{"MATCH (drevo) RETURN drevo.txt, 'drevo.tx.prepare'", false, false},
	} {
		writes, resolves := drevo.Read(test.query)
		if writes != test.writes || resolves != test.resolves {
			t.Errorf("%q: writes %t, resolves %t, want %t, %t", test.query, writes, resolves, test.writes, test.resolves)
		}
	}
}

// However a statement that only reads is dressed, a clause behind it that writes
// is seen.
func TestReadSeesEveryWrite(t *testing.T) {
	parts := rapid.SampledFrom([]string{
		" ", "\n", "// CREATE\n", "/* SET ' */", "'CREATE'", `"it\"s"`, "`MERGE`", "(n:Set)", "$set", "[1, 2]", "{a: 'b'}", "->", "n.a",
	})
	clauses := rapid.SampledFrom([]string{"CREATE (:A)", "sEt n.a = 1", "DETACH DELETE n", "MERGE (n:A)", "REMOVE n.a", "CALL x()"})
	rapid.Check(t, func(t *rapid.T) {
		query := "MATCH (n) "
		for _, part := range rapid.SliceOfN(parts, 0, 8).Draw(t, "parts") {
			query += part + " "
		}
		if writes, _ := drevo.Read(query); writes {
			t.Fatalf("%q: it only reads", query)
		}
		query += clauses.Draw(t, "clause")
		for _, part := range rapid.SliceOfN(parts, 0, 4).Draw(t, "more parts") {
			query += " " + part
		}
		if writes, _ := drevo.Read(query); !writes {
			t.Fatalf("%q: it writes", query)
		}
	})
}

// No text makes the reader panic or loop.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"", "MATCH (n) RETURN n", "'\\", "/*", "//", "`", "\"\\\"", "drevo.tx.", "ü$\x00\xff", "CALL `drevo`.tx"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		writes, resolves := drevo.Read(query)
		if resolves && !writes {
			t.Errorf("%q: a procedure that is taken for a read", query)
		}
	})
}
