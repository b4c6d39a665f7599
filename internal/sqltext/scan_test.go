package sqltext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/internal/sqltext"
)

// row is one text and what Scan finds in it. Where want names no store, the text
// reaches the store as it is.
type row struct {
	name string
	text string
	want sqltext.Statement
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if row.want.Store == "" {
				row.want.Text = row.text
			}
			got, err := sqltext.Scan(row.text)
			if err != nil {
				t.Fatalf("Scan(%q): %v", row.text, err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("Scan(%q) (-want +got):\n%s", row.text, diff)
			}
		})
	}
}

func TestScanRoutes(t *testing.T) {
	to := func(store, text string) sqltext.Statement {
		return sqltext.Statement{Store: store, Text: text}
	}
	check(t, []row{
		{"prefix", "store:ch INSERT INTO t VALUES ($1)", to("ch", "INSERT INTO t VALUES ($1)")},
		{"prefix after blanks", " \t\r\n\f\vstore:ch  SELECT 1", to("ch", "SELECT 1")},
		{"prefix and line break", "store:ch\nSELECT 1", to("ch", "SELECT 1")},
		{"prefix after comments", "/* c */ -- c\n store:ch SELECT 1", to("ch", "/* c */ -- c\n SELECT 1")},
		{"prefix touching a comment", "/* c */store:ch SELECT 1", to("ch", "/* c */SELECT 1")},
		{"prefix after a nested comment", "/* a /* store:b */ c */ store:ch SELECT 1", to("ch", "/* a /* store:b */ c */ SELECT 1")},
		{"comments on both sides", "/* a */ store:ch /* b */ SELECT 1 /* c */", to("ch", "/* a */ /* b */ SELECT 1 /* c */")},
		{"longest name", "store:a2345678901234567890123456789_12 SELECT 1", to("a2345678901234567890123456789_12", "SELECT 1")},
		{"prefix alone", "store:ch", sqltext.Statement{Store: "ch"}},
		{"cypher", "store:graph MATCH (n:`store:x; COMMIT`) RETURN n", sqltext.Statement{Store: "graph", Text: "MATCH (n:`store:x; COMMIT`) RETURN n"}},

		{"comment", "/* store:ch */ SELECT 1", to("ch", "SELECT 1")},
		{"comment without blanks", "/*store:ch*/SELECT 1", to("ch", "SELECT 1")},
		{"comment with line breaks", "/*\n\tstore:ch\n*/\nSELECT 1", to("ch", "SELECT 1")},
		{"line comment", "-- store:ch\nSELECT 1", to("ch", "SELECT 1")},
		{"line comment without blank", "--store:ch\r\nSELECT 1", to("ch", "SELECT 1")},
		{"line comment alone", "-- store:ch", to("ch", "")},
		{"comment between comments", "-- name: X :one\n/* store:ch */ /* trace */ SELECT 1", to("ch", "-- name: X :one\n/* trace */ SELECT 1")},
		{"said three times", "/* store:ch */ -- c\nstore:ch -- store:ch\n SELECT 1", to("ch", "-- c\nSELECT 1")},
		{"prefix twice", "store:ch store:ch SELECT 1", to("ch", "SELECT 1")},

		{"none", "SELECT 1", sqltext.Statement{}},
		{"empty", "", sqltext.Statement{}},
		{"blanks", " \n ", sqltext.Statement{}},
		{"in a literal", "SELECT 'store:ch ' , '/* store:ch */'", sqltext.Statement{}},
		{"text is a literal", "'store:ch SELECT 1'", sqltext.Statement{}},
		{"in a dollar quote", "SELECT $$store:ch /* store:ch */$$, $a$ store:ch $a$", sqltext.Statement{}},
		{"in a quoted name", `SELECT "store:ch " FROM "/* store:ch */"`, sqltext.Statement{}},
		{"in a nested comment", "/* /* store:ch */ */ SELECT 1", sqltext.Statement{}},
		{"around a nested comment", "/* store:ch /* x */ */ SELECT 1", sqltext.Statement{}},
		{"more than the directive in a comment", "/* use store:ch */ -- store:ch please\nSELECT 1", sqltext.Statement{}},
		{"sqlcommenter", "/*db_driver='pgx',route='store:ch '*/ SELECT 1", sqltext.Statement{}},
		{"later in the statement", "SELECT /* store:ch */ 1 -- store:ch\n, store:ch ", sqltext.Statement{}},
		{"after the statement", "SELECT 1 /* store:ch */", sqltext.Statement{}},
		{"after an empty statement", "; /* store:ch */ SELECT 1", sqltext.Statement{}},
		{"in a later statement", "SELECT 1; store:ch SELECT 2", sqltext.Statement{Multi: true}},
		{"in an unclosed comment", "/* store:ch SELECT 1", sqltext.Statement{}},
		{"in an unclosed nested comment", "/* /* store:ch */ SELECT 1", sqltext.Statement{}},
		{"behind a backtick", "`store:ch ` SELECT 1", sqltext.Statement{}},
		{"a table named store", "SELECT * FROM store", sqltext.Statement{}},
		{"begins with store", "store SELECT 1", sqltext.Statement{}},
		{"only the word", "store", sqltext.Statement{}},
		{"a word that ends in store:", "restore:ch SELECT 1", sqltext.Statement{}},
	})
}

func TestScanMarksTransactionControl(t *testing.T) {
	control := func(text string, kind sqltext.Kind) row {
		return row{text, text, sqltext.Statement{Kind: kind}}
	}
	savepoint := func(text string, kind sqltext.Kind, name string) row {
		return row{text, text, sqltext.Statement{Kind: kind, Name: name}}
	}
	check(t, []row{
		control("BEGIN", sqltext.Begin),
		control("begin;", sqltext.Begin),
		control(" /* c */ bEgIn -- c", sqltext.Begin),
		control("BEGIN WORK", sqltext.Begin),
		control("BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE", sqltext.Begin),
		control("BEGIN/* c */READ ONLY", sqltext.Begin),
		control("START TRANSACTION", sqltext.Begin),
		control("START /* c */ TRANSACTION READ ONLY", sqltext.Begin),
		control("COMMIT", sqltext.Commit),
		control(";COMMIT;;", sqltext.Commit),
		control("COMMIT AND CHAIN", sqltext.Commit),
		control("COMMIT WORK AND NO CHAIN", sqltext.Commit),
		control("END", sqltext.Commit),
		control("END TRANSACTION;", sqltext.Commit),
		control("ABORT", sqltext.Rollback),
		control("ROLLBACK", sqltext.Rollback),
		control("ROLLBACK WORK AND CHAIN", sqltext.Rollback),
		control("rollback transaction ; -- bye", sqltext.Rollback),
		control("PREPARE TRANSACTION 'x'", sqltext.PrepareTransaction),
		control("PREPARE\nTRANSACTION E'x'", sqltext.PrepareTransaction),
		control("COMMIT PREPARED 'x'", sqltext.CommitPrepared),
		control("commit -- c\n prepared 'x';", sqltext.CommitPrepared),
		control("ROLLBACK PREPARED 'x'", sqltext.RollbackPrepared),

		control("PREPARE name AS SELECT 1", sqltext.Plain),
		control("PREPARE transaction AS SELECT 1", sqltext.Plain),
		control("PREPARE transaction (int) AS SELECT $1", sqltext.Plain),
		control("START REPLICATION SLOT s LOGICAL 0/0", sqltext.Plain),
		control("begins", sqltext.Plain),
		control("commit$ 1", sqltext.Plain),
		control("SELECT 'COMMIT'", sqltext.Plain),
		control("\"COMMIT\"", sqltext.Plain),
		control("-- COMMIT", sqltext.Plain),
		control("SELECT begin, commit FROM t", sqltext.Plain),
		control("DEALLOCATE PREPARE p", sqltext.Plain),

		savepoint("SAVEPOINT a", sqltext.Savepoint, "a"),
		savepoint("savepoint Sp1_$Ä;", sqltext.Savepoint, "sp1_$Ä"),
		savepoint(`SAVEPOINT "A ""b"" ; c"`, sqltext.Savepoint, `A "b" ; c`),
		savepoint("/* c */ SAVEPOINT /* c */ a -- c", sqltext.Savepoint, "a"),
		savepoint("SAVEPOINT savepoint", sqltext.Savepoint, "savepoint"),
		savepoint("SAVEPOINT "+strings.Repeat("N", 70), sqltext.Savepoint, strings.Repeat("n", 63)),
		savepoint(`SAVEPOINT "`+strings.Repeat("n", 62)+`é"`, sqltext.Savepoint, strings.Repeat("n", 62)),
		savepoint("ROLLBACK TO a", sqltext.RollbackTo, "a"),
		savepoint("ROLLBACK TO SAVEPOINT A", sqltext.RollbackTo, "a"),
		savepoint("ROLLBACK WORK TO a", sqltext.RollbackTo, "a"),
		savepoint(`rollback transaction to savepoint "A";`, sqltext.RollbackTo, "A"),
		savepoint("ROLLBACK TO savepoint", sqltext.RollbackTo, "savepoint"),
		savepoint("RELEASE a", sqltext.Release, "a"),
		savepoint("RELEASE SAVEPOINT a", sqltext.Release, "a"),
		savepoint("RELEASE SAVEPOINT;", sqltext.Release, "savepoint"),

		{"routed control", "store:pg COMMIT", sqltext.Statement{Text: "COMMIT", Store: "pg", Kind: sqltext.Commit}},
		{"routed savepoint", "/* store:pg */ SAVEPOINT a", sqltext.Statement{Text: "SAVEPOINT a", Store: "pg", Kind: sqltext.Savepoint, Name: "a"}},
	})
}

func TestScanSeesStatements(t *testing.T) {
	one := func(name, text string) row { return row{name, text, sqltext.Statement{}} }
	more := func(name, text string) row { return row{name, text, sqltext.Statement{Multi: true}} }
	check(t, []row{
		one("trailing semicolon", "SELECT 1;"),
		one("trailing semicolons and comment", "SELECT 1; ; -- done; COMMIT\n;"),
		one("in a literal", "SELECT 'a;COMMIT;''b;COMMIT'"),
		one("backslash is no escape in a plain literal", `SELECT 'a\', 'COMMIT; x' || '; COMMIT'`),
		one("in an escape literal", `SELECT E'a\';COMMIT;', e'\\', E'b'';COMMIT'`),
		one("in an escape literal that goes on", "SELECT E'a' -- c\n  'b\\'; COMMIT'"),
		one("in a unicode literal", `SELECT U&'a\0041;COMMIT', u&'x'`),
		one("in a national literal", "SELECT N'a;COMMIT', B'0;COMMIT', x'ff;COMMIT'"),
		one("in a quoted name", `SELECT "a;COMMIT;""b" , U&"a;COMMIT" FROM t`),
		one("in a dollar quote", "SELECT $$a;COMMIT;$a$;COMMIT$$"),
		one("in a tagged dollar quote", "SELECT $tag$a;COMMIT;$$;COMMIT;$tag2$ $tag$"),
		one("in a dollar quote after a parameter", "SELECT $1$$;COMMIT;$$"),
		one("in a comment", "SELECT 1 /* ;COMMIT /* ; */ ;COMMIT */ -- ;COMMIT"),
		one("parameters", "INSERT INTO t VALUES ($1, $2);"),
		one("DO", "DO $$ BEGIN COMMIT; END $$;"),
		one("DO in a literal", "DO 'BEGIN COMMIT; END'"),
		one("function with a quoted body", "CREATE FUNCTION f() RETURNS int AS $$ BEGIN; COMMIT; END; $$ LANGUAGE plpgsql;"),
		one("function with an atomic body", "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 ELSE CASE WHEN false THEN 2 END END; SELECT 2 AS end; END"),
		one("procedure with an atomic body", "create or replace procedure p() language sql begin /* c */ atomic insert into t values (1); end;"),
		one("empty atomic body", "CREATE FUNCTION f() RETURNS void BEGIN ATOMIC END;"),
		one("atomic without a function", "BEGIN ATOMIC SELECT 1; END"),
		one("rule with several actions", "CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO a VALUES (1); DELETE FROM b;);"),
		one("in backticks", "MATCH (n:`a;``COMMIT; it's`) RETURN 'x;COMMIT'"),
		one("unclosed backtick", "SELECT 1 ` 2; COMMIT"),
		one("unclosed literal", "SELECT 'a; COMMIT; SELECT 1"),
		one("unclosed escape literal", `SELECT E'a\'; COMMIT; \`),
		one("unclosed name", `SELECT "a; COMMIT""; `),
		one("unclosed dollar quote", "SELECT $a$; COMMIT; $$"),
		one("unclosed comment", "SELECT 1 /* /* */; COMMIT; *"),

		more("two", "SELECT 1; SELECT 2"),
		more("two without blanks", "SELECT 1;SELECT 2;"),
		more("after a literal that ends in a backslash", `SELECT 'a\'; SELECT 2`),
		more("plain literals side by side", "SELECT 'a'\n'b\\'; SELECT 2"),
		more("a word that ends in e is no prefix", `SELECT name'a\'; SELECT 2`),
		more("a dollar in a word opens nothing", "SELECT a$$; SELECT b$$"),
		more("a digit begins no tag", "SELECT $1$; SELECT $1$"),
		more("comment in an operator", "SELECT 1 +/* ; */ 2; SELECT 3"),
		more("after a function", "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; SELECT f()"),
		more("DO twice", "DO $$BEGIN END$$; DO $$BEGIN END$$"),
		more("begin as a column", "SELECT begin atomic FROM t; SELECT 2"),
		more("parentheses that were never opened", "SELECT 1); SELECT (2"),
		more("PREPARE among others", "PREPARE p AS SELECT 1; EXECUTE p"),
	})
}

func TestScanNotify(t *testing.T) {
	for text, want := range map[string]bool{
		"NOTIFY ch":                                              true,
		"notify ch, 'payload'":                                   true,
		"SELECT 1; NOTIFY ch":                                    true,
		"SELECT pg_notify('ch', 'x')":                            true,
		"SELECT PG_NOTIFY ('ch', 'x')":                           true,
		`SELECT pg_catalog."pg_notify"('ch', 'x')`:               true,
		"SELECT pg_notify/* c */('ch', 'x')":                     true,
		"SELECT my_notify_all($1)":                               true,
		"DO $$ BEGIN PERFORM pg_notify('ch', 'x'); END $$":       true,
		"DO 'BEGIN NOTIFY ch; END'":                              true,
		"CREATE RULE r AS ON INSERT TO t DO ALSO NOTIFY ch":      true,
		"SELECT notify FROM t":                                   true, // in doubt
		"SELECT notify_by_mail FROM users":                       false,
		"SELECT 'NOTIFY ch', 'pg_notify('":                       false,
		"/* NOTIFY */ SELECT 1 -- pg_notify(":                    false,
		"SELECT yes, sky, not_if_y, NotiFi, otify FROM y":        false,
		"INSERT INTO t VALUES ('please notify me', 'DO notify')": false,
		`SELECT "notify me" FROM t`:                              false,
		"LISTEN ch":                                              false,
		"otify":                                                  false,
		"SELECT 1 AS not, ify":                                   false,
		"store:pg SELECT pg_notify('a', 'b')":                    true,
		"SELECT $1::text, pg_notify($2, $3) FROM generate_series(1, 2) AS y(y)": true,
	} {
		got, err := sqltext.Scan(text)
		if err != nil || got.Notify != want {
			t.Errorf("Scan(%q): Notify = %v, %v, want %v", text, got.Notify, err, want)
		}
	}
}

func TestScanSetsReadOnly(t *testing.T) {
	for text, want := range map[string]bool{
		"SET TRANSACTION READ ONLY":                                              true,
		"set /* c */ transaction isolation level serializable":                   true,
		"SET LOCAL TRANSACTION READ ONLY":                                        true,
		"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY":                   true,
		"SET transaction_read_only = on":                                         true,
		"SET LOCAL transaction_isolation TO 'serializable'":                      true,
		`SET "Transaction_Read_Only" = on`:                                       true,
		`SET U&"trans\0061ction_read_only" = on`:                                 true,
		"SET default_transaction_read_only = on":                                 true,
		"RESET default_transaction_isolation":                                    true,
		"RESET ALL":                                                              true,
		"DISCARD ALL":                                                            true,
		"SELECT 1; SET TRANSACTION READ ONLY":                                    true,
		"SELECT set_config('transaction_read_only', 'on', true)":                 true,
		"SELECT SET_CONFIG ('Default_Transaction_Read_Only', 'on', true)":        true,
		"SELECT set_config($1, 'on', true)":                                      true,
		"SELECT set_config('trans' || 'action_read_only', 'on', true)":           true,
		`SELECT set_config(E'trans\x61ction_read_only', 'on', true)`:             true,
		"DO $$ BEGIN SET TRANSACTION READ ONLY; END $$":                          true,
		"DO 'BEGIN PERFORM set_config(x, y, true); END'":                         true,
		"SELECT set_config('app.tenant', $1, true)":                              false,
		"SELECT set_config FROM t":                                               false,
		"SET search_path = a, b":                                                 false,
		"SET LOCAL ROLE app":                                                     false,
		"SET application_name = 'transaction'":                                   false,
		"SET CONSTRAINTS x DEFERRED":                                             false,
		"RESET search_path":                                                      false,
		"DISCARD PLANS":                                                          false,
		"SELECT 'SET TRANSACTION READ ONLY'":                                     false,
		"UPDATE t SET transaction_id = 1":                                        false,
		"SET search_path = a; UPDATE t SET transaction_id = 1":                   false,
		"SELECT 'set_config(x)'":                                                 false,
		"CREATE FUNCTION f() RETURNS void AS $$SET TRANSACTION$$ LANGUAGE sql":   false,
		"DO $$ BEGIN PERFORM 1; END $$":                                          false,
		"-- set transaction\nSELECT 1":                                           false,
		"/* store:pg */ SET TRANSACTION READ ONLY":                               true,
		"SELECT a, b, c FROM config WHERE g = 'set_confi' AND tag LIKE '%g%gG%'": false,
	} {
		got, err := sqltext.Scan(text)
		if err != nil || got.SetsReadOnly != want {
			t.Errorf("Scan(%q): SetsReadOnly = %v, %v, want %v", text, got.SetsReadOnly, err, want)
		}
	}
}
