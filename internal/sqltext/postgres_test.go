package sqltext_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/internal/sqltext"
)

// verdict is what PostgreSQL's own parser says of a text.
type verdict int

const (
	refused verdict = iota // a syntax error somewhere, which keeps all of it from running
	single
	several
)

// parse asks the server without running anything: the extended protocol parses
// the whole text and then takes one statement only.
func parse(ctx context.Context, t rapid.TB, conn *pgconn.PgConn, text string) verdict {
	t.Helper()
	_, err := conn.Prepare(ctx, "", text, nil)
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return single
	case !ok:
		t.Fatalf("prepare %q: %v", text, err)
		return refused
	case strings.HasPrefix(pgErr.Message, "cannot insert multiple commands"):
		return several
	case pgErr.Code == "42601" || strings.HasPrefix(pgErr.Code, "22"):
		return refused
	default: // parsed, and refused for what it names
		return single
	}
}

// agree compares Scan with the server on one text, and on a single statement with a COMMIT
// behind it.
func agree(ctx context.Context, t rapid.TB, conn *pgconn.PgConn, text string) verdict {
	t.Helper()
	said := parse(ctx, t, conn, text)
	got, err := sqltext.Scan(text)
	_, control := errors.AsType[*sqltext.TransactionControl](err)
	switch {
	case said == single && (err != nil || got.Multi):
		t.Errorf("%q is one statement to PostgreSQL; Scan = %+v, %v", text, got, err)
	case said == several && !got.Multi && !control:
		t.Errorf("%q is several statements to PostgreSQL; Scan = %+v, %v", text, got, err)
	}
	behind := text + "; COMMIT"
	if said != single || parse(ctx, t, conn, behind) != several {
		return said
	}
	_, err = sqltext.Scan(behind)
	if _, control := errors.AsType[*sqltext.TransactionControl](err); !control {
		t.Errorf("%q runs COMMIT; Scan = %v", behind, err)
	}
	return said
}

// pieces are joined at random: what opens, closes, separates or only seems to.
var pieces = []string{
	"1", "a", "e", "x", "U&", " ", "\n", "\r", ", ", "+", "-", "*", "/", "(", ")", ";",
	"'", "''", "'a'", "'a;b'", "E'", `E'\\'`, `\`, `\'`, "'\n'", "' -- c\n'", "' 'b", `"`, `"a"`, `"a;b"`, "N'c'",
	"$", "$$", "$a$", "$1", "a$$", "$$;$$", "$a$;$$;$a$", "--", "-- c\n", "/*", "*/", "/* ; */", "/* /* ; */ */",
	"; SELECT 2", "begin atomic", "CASE WHEN true THEN 1 END", " AS end", " AS begin", "end", "FROM t",
}

var heads = []string{
	"SELECT ", "SELECT 1, ", "SELECT 'a', ", "SELECT E'a', ", "",
	"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT ",
	"CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM a WHERE b = ",
}

var tails = []string{"", "", ", 1", ";", "'", "$$", "; END", ")", "; DELETE FROM b)"}

// TestScanAgreesWithPostgres holds the lexer against the one it imitates. More
// texts: go test -run Postgres -rapid.checks=100000.
func TestScanAgreesWithPostgres(t *testing.T) {
	ctx := t.Context()
	conn, err := pgconn.Connect(ctx, pgtest.Server(t).Database(t, "sqltext"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	counts := map[verdict]int{}
	for _, text := range []string{
		"SELECT 1;", "SELECT 1; SELECT 2", "SELECT begin atomic FROM t; SELECT 2",
		`SELECT 'a\', 'COMMIT; x' || '; COMMIT'`, `SELECT E'a\';COMMIT;', e'\\', E'b'';COMMIT'`,
		"SELECT E'a' -- c\n  'b\\'; COMMIT'", "SELECT 'a'\n'b\\'; SELECT 2",
		"SELECT a$$; SELECT b$$", "SELECT 1 +/* ; */ 2; SELECT 3", "SELECT 1 --c\r; SELECT 2",
		"SELECT /*/*/**/*/*/ 1; SELECT 2", "DO $$BEGIN END$$; SELECT 1", "PREPARE transaction AS SELECT 1",
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; SELECT 2 AS end; END",
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1 case; SELECT 2; END; SELECT 3",
		"CREATE FUNCTION f(begin atomic) RETURNS int AS 'x' LANGUAGE sql; SELECT 2",
		"CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO a VALUES (1); DELETE FROM b;)",
	} {
		said := agree(ctx, t, conn, text)
		if said == refused {
			t.Errorf("PostgreSQL refuses %q: it tests nothing", text)
		}
		counts[said]++
	}
	if t.Failed() { // rapid would panic
		return
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SampledFrom(heads).Draw(rt, "head") +
			strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 7).Draw(rt, "pieces"), "") +
			rapid.SampledFrom(tails).Draw(rt, "tail")
		counts[agree(ctx, rt, conn, text)]++
	})
	t.Logf("texts by verdict: %d refused, %d single, %d several", counts[refused], counts[single], counts[several])
}
