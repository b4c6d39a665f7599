package orm_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/XSAM/otelsql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
)

func TestOTelSQL(t *testing.T) {
	exercise(t, "otelsql",
		item{"create", both, otelCreate},
		item{"arguments", both, otelArguments},
		item{"prepared", both, otelPrepared},
		item{"transaction", both, otelTransaction},
		item{"two stores", onlyUnit, otelTwoStores},
		item{"commit error", both, otelCommitError},
		item{"copy", both, otelCopy},
		item{"raw connection", both, otelRaw},
		item{"track and look up", onlyUnit, otelTrack},
		item{"run", both, otelRun},
		item{"comments", both, otelComments},
		item{"connector and name", both, otelNames},
	)
}

// traced is a pool under otelsql, and what it told.
type traced struct {
	*sql.DB
	ctx   context.Context // with a span, for SQLCommenter
	spans *tracetest.SpanRecorder
}

func otelOpen(t *testing.T, d *deployment) traced {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
	db, err := otelOpenDSN(d.dsn, otelsql.WithTracerProvider(provider),
		otelsql.WithSQLCommenter(true), otelsql.WithTextMapPropagator(propagation.TraceContext{}))
	must(t, err)
	t.Cleanup(func() { closed(t, db) })
	ctx, span := provider.Tracer("test").Start(t.Context(), "test")
	t.Cleanup(func() { span.End() })
	return traced{db, ctx, recorder}
}

func otelOpenDSN(dsn string, opts ...otelsql.Option) (*sql.DB, error) {
	// docs: otelsql open
	db, err := otelsql.Open("rhizodat", dsn, opts...)
	// :docs
	return db, err
}

func otelInsert(ctx context.Context, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, owner string,
) error {
	_, err := db.ExecContext(ctx, `INSERT INTO accounts (owner) VALUES ($1)`, owner)
	return err
}

func otelCreate(t *testing.T, d *deployment) {
	db := otelOpen(t, d)
	var id int64
	must(t, db.QueryRowContext(db.ctx, `INSERT INTO accounts (owner) VALUES ('one') RETURNING id`).Scan(&id))
	if id != 1 {
		t.Errorf("id %d was not returned", id)
	}
	rows, err := db.QueryContext(db.ctx, `SELECT owner FROM accounts`)
	must(t, err)
	defer rows.Close()
	types, err := rows.ColumnTypes()
	must(t, err)
	if types[0].DatabaseTypeName() != "TEXT" {
		t.Errorf("type %s", types[0].DatabaseTypeName())
	}
	if !rows.Next() || rows.Next() || rows.Err() != nil {
		t.Errorf("want one row, have %v", rows.Err())
	}
	d.want(t, "one", "")
}

// What database/sql itself would refuse passes the wrapper's NamedValueChecker.
func otelArguments(t *testing.T, d *deployment) {
	db, ctx := otelOpen(t, d), t.Context()
	var n int
	must(t, db.QueryRowContext(ctx, `SELECT cardinality($1::text[])`, []string{"a", "b"}).Scan(&n))
	if n != 2 {
		t.Errorf("array of %d", n)
	}
	must(t, db.QueryRowContext(ctx, `SELECT $1::int + 1`, pgx.QueryExecModeSimpleProtocol, 1).Scan(&n))
	if n != 2 {
		t.Errorf("with an exec mode: %d", n)
	}
	must(t, db.QueryRowContext(ctx, `SELECT @x::int + 1`, pgx.NamedArgs{"x": 2}).Scan(&n))
	if n != 3 {
		t.Errorf("with named arguments: %d", n)
	}
}

func otelPrepared(t *testing.T, d *deployment) {
	db := otelOpen(t, d)
	stmt, err := db.PrepareContext(db.ctx, `INSERT INTO accounts (owner) VALUES ($1)`)
	must(t, err)
	defer func() { closed(t, stmt) }()
	_, err = stmt.ExecContext(db.ctx, "one")
	must(t, err)
	if !d.unit {
		d.want(t, "one", "")
		return
	}
	tx, err := db.BeginTx(db.ctx, nil)
	must(t, err)
	_, err = tx.StmtContext(db.ctx, stmt).ExecContext(d.inB(db.ctx), "two")
	must(t, err)
	must(t, tx.Commit())
	d.want(t, "one", "two")
}

func otelTransaction(t *testing.T, d *deployment) {
	db := otelOpen(t, d)
	for owner, end := range map[string]func(*sql.Tx) error{"kept": (*sql.Tx).Commit, "dropped": (*sql.Tx).Rollback} {
		tx, err := db.BeginTx(db.ctx, nil)
		must(t, err)
		must(t, otelInsert(db.ctx, tx, owner))
		must(t, end(tx))
	}
	d.want(t, "kept", "")
}

func otelTwoStores(t *testing.T, d *deployment) {
	db := otelOpen(t, d)
	for _, c := range []struct {
		owner string
		end   func(*sql.Tx) error
	}{{"kept", (*sql.Tx).Commit}, {"dropped", (*sql.Tx).Rollback}} {
		tx, err := db.BeginTx(db.ctx, nil)
		must(t, err)
		must(t, otelInsert(db.ctx, tx, c.owner))
		_, err = tx.ExecContext(db.ctx, `SAVEPOINT sp`)
		must(t, err)
		must(t, otelInsert(d.inB(db.ctx), tx, "undone"))
		_, err = tx.ExecContext(db.ctx, `ROLLBACK TO sp`)
		must(t, err)
		_, err = tx.ExecContext(db.ctx, `store:b INSERT INTO accounts (owner) VALUES ($1)`, c.owner)
		must(t, err)
		must(t, c.end(tx))
	}
	d.want(t, "kept", "kept")
}

// The wrapper hands our error on, and records it at the span of the commit.
func otelCommitError(t *testing.T, d *deployment) {
	db := otelOpen(t, d)
	url, store := d.a, "a"
	if d.unit {
		url, store = d.b, "b"
	}
	d.deferred(t, url)
	if err := otelInsert(db.ctx, db, "zero"); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(db.ctx, nil)
	must(t, err)
	must(t, otelInsert(db.ctx, tx, "one"))
	must(t, otelInsert(d.inB(db.ctx), tx, "two"))
	must(t, otelInsert(d.inB(db.ctx), tx, "three"))
	err = tx.Commit()
	if d.unit {
		isAborted(t, err, store)
	} else if pg, ok := err.(*pgconn.PgError); !ok || pg.Code != "23505" { //nolint:errorlint // pgx's own, unwrapped
		t.Errorf("commit: %T, want pgx's own error", err)
	}
	d.want(t, "zero", "")
	told := ""
	for _, span := range db.spans.Ended() {
		if span.Name() == string(otelsql.MethodTxCommit) && span.Status().Code == codes.Error {
			for _, attribute := range span.Events()[0].Attributes {
				told += attribute.Value.AsString()
			}
		}
	}
	if !strings.Contains(told, err.Error()) {
		t.Errorf("the span of the commit says %q", told)
	}
}

func otelCopy(t *testing.T, d *deployment) {
	db := otelOpen(t, d)
	tx, err := db.BeginTx(db.ctx, nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	store := "a"
	if d.unit {
		store = "b"
		must(t, otelInsert(db.ctx, tx, "one"))
	}
	n, err := rhizodat.CopyFrom(db.ctx, tx, store, "accounts", []string{"owner"}, rhizodat.CopyRows([][]any{{"one"}, {"two"}}))
	must(t, err)
	must(t, tx.Commit())
	if n != 2 {
		t.Errorf("copied %d", n)
	}
	if d.unit {
		d.want(t, "one", "one two")
	} else {
		d.want(t, "one two", "")
	}
}

func otelRaw(t *testing.T, d *deployment) {
	db, ctx := otelOpen(t, d), t.Context()
	conn, err := db.Conn(ctx)
	must(t, err)
	defer func() { closed(t, conn) }()
	url, store := d.a, "a"
	if d.unit {
		url, store = d.b, "b"
	}
	var got string
	// docs: raw
	err = conn.Raw(func(driverConn any) error {
		pg, err := postgres.Conn(driverConn, store) // *pgx.Conn
		if err != nil {
			return err
		}
		return pg.QueryRow(ctx, `SELECT current_database()`).Scan(&got)
	})
	// :docs
	must(t, err)
	if !strings.Contains(url, got) {
		t.Errorf("the connection of store %s is to %s", store, got)
	}
}

func otelTrack(t *testing.T, d *deployment) {
	db := otelOpen(t, d)
	ctx, handle := rhizodat.Track(db.ctx)
	tx, err := db.BeginTx(ctx, nil)
	must(t, err)
	must(t, otelInsert(ctx, tx, "one"))
	must(t, otelInsert(d.inB(ctx), tx, "one"))
	must(t, tx.Commit())
	out := handle.Outcome()
	if out.Verdict != rhizodat.VerdictCommitted || !out.Journaled || out.DatTxn.IsZero() {
		t.Errorf("outcome %+v", out)
	}
	found, err := rhizodat.Wait(ctx, db.DB, out.DatTxn)
	must(t, err)
	if found.Verdict != rhizodat.VerdictCommitted {
		t.Errorf("looked up %v", found.Verdict)
	}
}

func otelRun(t *testing.T, d *deployment) {
	db, attempts := otelOpen(t, d), 0
	_, err := rhizodat.Run(db.ctx, db.DB, rhizodat.Policy{}, func(ctx context.Context, tx *sql.Tx) error {
		if attempts++; attempts < 3 {
			_, err := tx.ExecContext(ctx, conflict)
			return err
		}
		return otelInsert(ctx, tx, "one")
	})
	must(t, err)
	if attempts != 3 {
		t.Errorf("%d attempts, want 3", attempts)
	}
	d.want(t, "one", "")
}

// otelsql writes the trace behind the text, other tools before it.
func otelComments(t *testing.T, d *deployment) {
	db := otelOpen(t, d)
	const seen = ` SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()`
	for _, before := range []string{"", "/*application='shop'*/ ", "-- name: Q :one\n"} {
		var got string
		must(t, db.QueryRowContext(db.ctx, before+"store:a"+seen).Scan(&got))
		if !strings.HasPrefix(got, before) || !strings.Contains(got, "traceparent='00-") || strings.Contains(got, "store:") {
			t.Errorf("the server saw %q", got)
		}
	}
	if !d.unit {
		return
	}
	tx, err := db.BeginTx(db.ctx, nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	for owner, before := range map[string]string{
		"one": "/*action='pay'*/ store:b ", "two": "/*action='pay'*/ /* store:b */ ", "three": "/* store:b */ /*action='pay'*/ ",
	} {
		_, err := tx.ExecContext(db.ctx, before+`INSERT INTO accounts (owner) VALUES ($1)`, owner)
		must(t, err)
	}
	must(t, otelInsert(db.ctx, tx, "one"))
	must(t, tx.Commit())
	d.want(t, "one", "one three two")
}

// The ways to a wrapped pool other than by a DSN.
func otelNames(t *testing.T, d *deployment) {
	connector := d.connector(t)
	// docs: otelsql connector
	db := otelsql.OpenDB(connector)
	// :docs
	must(t, otelInsert(t.Context(), db, "one"))
	closed(t, db)

	name, err := otelsql.Register("rhizodat") // it opens a pool without a DSN
	must(t, err)
	wrapped, err := sql.Open(name, d.dsn)
	must(t, err)
	defer func() { closed(t, wrapped) }()
	must(t, otelInsert(d.inB(t.Context()), wrapped, "two"))
	if d.unit {
		d.want(t, "one", "two")
	} else {
		d.want(t, "one two", "")
	}
}
