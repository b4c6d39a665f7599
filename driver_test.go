package rhizodat_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/internal/sqltext"
)

const insert = `INSERT INTO item (id, name) VALUES ($1, $2)`

// The job: two stores, one Commit.
func TestCommitBothOrNeither(t *testing.T) {
	r := newRig(t)
	db := r.open(t)

	tx := begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 1, "one")
	exec(t, tx, "store:b "+insert, 1, "one")
	r.want(t, "", "") // invisible before Commit
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r.want(t, "1", "1")
	r.states(t, "DONE=1")

	tx = begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 2, "two")
	exec(t, tx, "store:b "+insert, 2, "two")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	r.want(t, "1", "1")
}

// A commit of one branch writes no record, and leaves a marker.
func TestOneBranchIsOnePhase(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	ctx, h := rhizodat.Track(t.Context())
	tx := begin(t, ctx, db)
	exec(t, tx, "store:b "+insert, 1, "one")
	exec(t, tx, "store:a SELECT count(*) FROM item")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r.want(t, "", "1")
	r.states(t, "")
	out := h.Outcome()
	if out.Journaled || out.Verdict != rhizodat.VerdictCommitted {
		t.Errorf("outcome %+v, want committed in one phase", out)
	}
	found, err := rhizodat.Lookup(t.Context(), db, out.DatTxn)
	if err != nil || found.Verdict != rhizodat.VerdictCommitted {
		t.Errorf("lookup: %v, %v, want committed by its marker", found.Verdict, err)
	}
}

func TestRouting(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	where := `SELECT current_database()`
	a, b := pgtest.Name(r.a), pgtest.Name(r.b)
	inB := rhizodat.WithStore(t.Context(), "b")
	for _, c := range []struct {
		name, query string
		ctx         context.Context
		want        string
		wrong       string // part of the error
	}{
		{name: "default", query: where, want: a},
		{name: "prefix", query: "store:b " + where, want: b},
		{name: "prefix after blanks and comments", query: "  /* trace */ -- x\n store:b " + where, want: b},
		{name: "comment", query: "/* store:b */ " + where, want: b},
		{name: "line comment", query: "-- store:b\n" + where, want: b},
		{name: "nested comment is no directive", query: "/* /* store:b */ */ " + where, want: a},
		{name: "later comment is no directive", query: where + " /* store:b */", want: a},
		{name: "literal", query: `SELECT current_database() WHERE 'store:b ' <> ''`, want: a},
		{name: "escape literal", query: `SELECT current_database() WHERE E'\'store:b ' <> ''`, want: a},
		{name: "dollar quote", query: `SELECT current_database() WHERE $x$ store:b $x$ <> ''`, want: a},
		{name: "context", ctx: inB, query: where, want: b},
		{name: "context and text agree", ctx: inB, query: "store:b " + where, want: b},
		{name: "context and text disagree", ctx: inB, query: "store:a " + where, wrong: "text says a, its context (WithStore) says b"},
		{name: "prefix and comment disagree", query: "/* store:a */ store:b " + where, wrong: "store"},
		{name: "unknown", query: "store:c " + where, wrong: "no store is named c (configured stores: a, b)"},
		{name: "begin", query: "BEGIN", wrong: "db.BeginTx"},
		{name: "commit among others", query: "SELECT 1; COMMIT", wrong: "tx.Commit"},
		{name: "prepare transaction", query: "PREPARE TRANSACTION 'x'", wrong: "tx.Commit"},
		{name: "do block is no transaction control", query: "DO $$BEGIN PERFORM 1; END$$"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			if c.want == "" {
				_, err := db.ExecContext(ctx, c.query)
				if c.wrong == "" {
					if err != nil {
						t.Fatal(err)
					}
				} else if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("error %v, want one that says %q", err, c.wrong)
				}
				return
			}
			var got string
			if err := db.QueryRowContext(ctx, c.query).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("ran in %s, want %s", got, c.want)
			}
		})
	}
}

// One *sql.Stmt, executed over two pooled connections and two stores.
func TestPreparedStatementFollowsEachExecution(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	a, b := pgtest.Name(r.a), pgtest.Name(r.b)
	plain, err := db.PrepareContext(t.Context(), `SELECT current_database() || $1`)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	fixed, err := db.PrepareContext(t.Context(), `store:b SELECT current_database() || $1`)
	if err != nil {
		t.Fatal(err)
	}
	defer fixed.Close()
	hold, err := db.Conn(t.Context()) // the next execution needs another connection
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	for range 2 {
		for _, c := range []struct {
			stmt *sql.Stmt
			ctx  context.Context
			want string
		}{
			{plain, t.Context(), a},
			{plain, rhizodat.WithStore(t.Context(), "b"), b},
			{plain, rhizodat.WithStore(t.Context(), "a"), a},
			{fixed, t.Context(), b},
		} {
			var got string
			if err := c.stmt.QueryRowContext(c.ctx, "!").Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != c.want+"!" {
				t.Errorf("ran in %s, want %s", got, c.want)
			}
		}
	}
	tx := begin(t, t.Context(), db)
	var got string
	inTx := tx.StmtContext(t.Context(), fixed)
	defer inTx.Close()
	if err := inTx.QueryRowContext(t.Context(), "?").Scan(&got); err != nil || got != b+"?" {
		t.Errorf("in a transaction: %q, %v", got, err)
	}
}

// A syntax error comes when a statement is prepared, where its store is known.
func TestPrepareReportsErrorsAtOnce(t *testing.T) {
	r := newRig(t)
	stmt, err := r.open(t).PrepareContext(t.Context(), "store:b SELEC 1")
	if err == nil {
		defer stmt.Close()
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "42601" {
		t.Errorf("error %v, want PostgreSQL's own syntax error", err)
	}
}

func TestNoJournal(t *testing.T) {
	r := newRig(t)
	db := openDSN(t, "a="+r.a+" b="+r.b)
	tx := begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 1, "one")
	if err := tx.Commit(); err != nil {
		t.Fatalf("one branch needs no journal: %v", err)
	}
	tx = begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 2, "two")
	exec(t, tx, "store:b "+insert, 2, "two")
	err := tx.Commit()
	var aborted *rhizodat.Aborted
	if !errors.Is(err, rhizodat.ErrNoJournal) || !errors.As(err, &aborted) || rhizodat.IsRetryable(err) {
		t.Errorf("commit: %v, want ErrNoJournal inside *Aborted, not retryable", err)
	}
	if !strings.Contains(err.Error(), "journal=") {
		t.Errorf("%v does not say how to add one", err)
	}
	r.want(t, "1", "")
}

// After the context's end database/sql rolls back by itself and answers with
// its own error; only the handle tells what happened.
func TestCommitAfterContextEnded(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	ctx, h := rhizodat.Track(ctx)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "store:a "+insert, 1, "one")
	exec(t, tx, "store:b "+insert, 1, "one")
	cancel()
	err = tx.Commit()
	if !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, context.Canceled) {
		t.Errorf("commit: %v, want database/sql's own error", err)
	}
	await.UntilSaid(t, func() bool { return h.Outcome().Verdict == rhizodat.VerdictAborted },
		func() string { return "the handle does not say aborted: " + h.Outcome().Verdict.String() })
	r.want(t, "", "")
}

func TestCopyFromInsideATransaction(t *testing.T) {
	r := newRig(t)
	tx := begin(t, t.Context(), r.open(t))
	exec(t, tx, "store:a "+insert, 1, "one")
	n, err := rhizodat.CopyFrom(t.Context(), tx, "b", "public.item", []string{"id", "name"},
		rhizodat.CopyRows([][]any{{int32(1), "x"}, {int32(2), nil}, {int32(3), "z"}}))
	if err != nil || n != 3 {
		t.Fatalf("copied %d, %v", n, err)
	}
	r.want(t, "", "")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r.want(t, "1", "1 2 3")
}

func TestColumnTypes(t *testing.T) {
	r := newRig(t)
	rows, err := r.open(t).QueryContext(t.Context(), `SELECT id, name, 1.50::numeric(6,2) AS price FROM item`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	if got := types[0].DatabaseTypeName() + types[1].DatabaseTypeName(); got != "INT4TEXT" {
		t.Errorf("type names %s", got)
	}
	if p, s, ok := types[2].DecimalSize(); !ok || p != 6 || s != 2 {
		t.Errorf("decimal size %d,%d,%t", p, s, ok)
	}
	if rows.NextResultSet() {
		t.Error("a second result set out of nowhere")
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

func TestAlsoRegisteredForEnt(t *testing.T) {
	r := newRig(t)
	db, err := sql.Open("postgres-rhizodat", r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPingSaysWhichStoreIsDown(t *testing.T) {
	r := newRig(t)
	dsn := strings.Replace(r.dsn, pgtest.Name(r.b), "no_such_database", 1)
	err := openDSN(t, dsn).PingContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "store b") {
		t.Errorf("ping: %v, want an error that names store b", err)
	}
	if err := openDSN(t, dsn+" ping=default").PingContext(t.Context()); err != nil {
		t.Errorf("ping=default asks only store a: %v", err)
	}
}

func TestTwoSpellingsOfOnePlace(t *testing.T) {
	r := newRig(t)
	same := strings.Replace(r.a, "127.0.0.1", "localhost", 1) + "&application_name=other"
	db, err := sql.Open("rhizodat", "a="+r.a+" c="+same+" journal="+r.journal)
	if err == nil {
		err = db.PingContext(t.Context())
		_ = db.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "a") || !strings.Contains(err.Error(), "c") {
		t.Errorf("error %v, want one that names both stores", err)
	}
}

func TestStatementErrorsOfScan(t *testing.T) {
	r := newRig(t)
	_, err := r.open(t).ExecContext(t.Context(), "BEGIN")
	if _, ok := errors.AsType[*sqltext.TransactionControl](err); !ok {
		t.Errorf("error %T", err)
	}
}
