package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func TestWrites(t *testing.T) {
	for query, want := range map[string]bool{
		"INSERT INTO t": true, "  insert into t": true, "Update t": true, "delete from t": true, "MERGE INTO t": true,
		"/* a /* b */ c */ INSERT": true, "-- x\nINSERT": true, "--x": false, "/* open": false, "": false,
		"SELECT 1": false, "INSERTED": false, "WITH x AS (INSERT INTO t VALUES (1)) SELECT 1": false,
		"(SELECT 1)": false, "'INSERT'": false, "insert": true, "é": false,
	} {
		if got := writes(query); got != want {
			t.Errorf("writes(%q) = %t", query, got)
		}
	}
}

func TestNamesMode(t *testing.T) {
	for query, want := range map[string]bool{
		"SET TRANSACTION READ ONLY": true, "set transaction isolation level serializable, read\twrite": true,
		"SET transaction_read_only = on": true, "SET default_transaction_read_only TO off": true,
		"select set_config('transaction_read_only', 'on', true)": true, "READ /* x */ -- y\n ONLY": true,
		"SELECT read FROM t": false, "SELECT read_at, only FROM t": false, "INSERT INTO thread VALUES (1)": false,
		"": false, "READ": false, "READ O": false, "READ COMMITTED": false, "readonly": false,
	} {
		if got := namesMode(query); got != want {
			t.Errorf("namesMode(%q) = %t", query, got)
		}
	}
}

func TestParseName(t *testing.T) {
	for text, want := range map[string]pgx.Identifier{
		"t": {"t"}, "Orders.T": {"orders", "t"}, `"Orders".t`: {"Orders", "t"}, `"a.b"."c""d"`: {"a.b", `c"d`},
		"a.b.c": {"a", "b", "c"}, "": nil, ".": nil, "a.": nil, ".a": nil, `"a`: nil, `"a"b`: nil, `""`: nil, `"a".`: nil,
		"a b": nil, "a;b": nil, `a"b"`: nil,
	} {
		got, err := parseName(text)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("parseName(%q): %v\n%s", text, err, diff)
		}
	}
}

// FuzzWords: what reads statements must survive any of them, and never says
// that a text without the word holds it.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"INSERT INTO t", "/*", "--", "read only", `"a"."b"`, "'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if writes(text) && len(text) < len("merge") {
			t.Errorf("writes(%q)", text)
		}
		if namesMode(text) && len(text) < len("readonly") {
			t.Errorf("namesMode(%q)", text)
		}
		if name, err := parseName(text); err == nil && len(name) == 0 {
			t.Errorf("parseName(%q) is empty", text)
		}
	})
}
