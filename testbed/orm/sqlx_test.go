package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jmoiron/sqlx"

	"github.com/rhizodat/rhizodat-go"
)

// docs: sqlx bind
func init() {
	sqlx.BindDriver("rhizodat", sqlx.DOLLAR) // once in a program
}

// :docs

type row struct {
	ID      int64
	Owner   string
	Balance int64
}

func TestSQLX(t *testing.T) {
	exercise(t, "sqlx",
		item{"bind style", both, sqlxBind},
		item{"create", both, sqlxCreate},
		item{"Get, Select, In", both, sqlxRead},
		item{"transaction", both, sqlxTransaction},
		item{"two stores", onlyUnit, sqlxTwoStores},
		item{"named and routed", onlyUnit, sqlxNamedRouted},
		item{"errors", both, sqlxErrors},
	)
}

func sqlxOpen(t *testing.T, d *deployment) *sqlx.DB {
	t.Helper()
	db, err := sqlxOpenDSN(d.dsn)
	must(t, err)
	t.Cleanup(func() { closed(t, db) })
	return db
}

func sqlxOpenDSN(dsn string) (*sqlx.DB, error) {
	// docs: sqlx open
	db, err := sqlx.Open("rhizodat", dsn)
	// :docs
	return db, err
}

func sqlxBind(t *testing.T, d *deployment) {
	pool := d.open(t)
	// docs: sqlx pool
	wrapped := sqlx.NewDb(pool, "pgx") // a name that sqlx knows: nothing to bind
	// :docs
	for _, db := range []*sqlx.DB{sqlxOpen(t, d), wrapped} {
		if got := db.Rebind("a = ? AND b = ?"); got != "a = $1 AND b = $2" {
			t.Errorf("rebound to %q", got)
		}
	}
}

func sqlxCreate(t *testing.T, d *deployment) {
	db, ctx := sqlxOpen(t, d), t.Context()
	result, err := db.NamedExecContext(ctx, `INSERT INTO accounts (owner, balance) VALUES (:owner, :balance)`,
		[]row{{Owner: "one", Balance: 1}, {Owner: "two", Balance: 2}})
	must(t, err)
	if n, err := result.RowsAffected(); n != 2 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
	if _, err := result.LastInsertId(); err == nil || err.Error() != "LastInsertId is not supported by this driver" {
		t.Errorf("LastInsertId: %v, want pgx's own words", err)
	}
	insert, err := db.PrepareNamedContext(ctx, `INSERT INTO accounts (owner) VALUES (:owner) RETURNING id`)
	must(t, err)
	defer func() { closed(t, insert) }()
	var id int64
	must(t, insert.GetContext(ctx, &id, row{Owner: "three"}))
	if id != 3 {
		t.Errorf("id %d was not returned", id)
	}
	d.want(t, "one three two", "")
}

func sqlxRead(t *testing.T, d *deployment) {
	db, ctx := sqlxOpen(t, d), t.Context()
	db.MustExecContext(ctx, `INSERT INTO accounts (owner, balance) VALUES ('one', 1), ('two', 2), ('three', 3)`)
	var one row
	must(t, db.GetContext(ctx, &one, `SELECT * FROM accounts WHERE owner = $1`, "one"))
	if one != (row{1, "one", 1}) {
		t.Errorf("got %+v", one)
	}
	query, args, err := sqlx.In(`SELECT * FROM accounts WHERE owner IN (?) ORDER BY id`, []string{"two", "three"})
	must(t, err)
	var rows []row
	must(t, db.SelectContext(ctx, &rows, db.Rebind(query), args...))
	if len(rows) != 2 || rows[0].Owner != "two" || rows[1].Owner != "three" {
		t.Errorf("selected %+v", rows)
	}
	// What sqlx.In is for with other databases is an array here.
	must(t, db.SelectContext(ctx, &rows, `SELECT * FROM accounts WHERE owner = ANY($1)`, []string{"one"}))
	if len(rows) != 1 {
		t.Errorf("selected %+v", rows)
	}
	if err := db.GetContext(ctx, &one, `SELECT * FROM accounts WHERE owner = 'nobody'`); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("no row: %v", err)
	}
}

func sqlxTransaction(t *testing.T, d *deployment) {
	db, ctx := sqlxOpen(t, d), t.Context()
	for _, c := range []struct {
		owner string
		end   func(*sqlx.Tx) error
	}{{"kept", (*sqlx.Tx).Commit}, {"dropped", (*sqlx.Tx).Rollback}} {
		tx, err := db.BeginTxx(ctx, nil)
		must(t, err)
		_, err = tx.NamedExecContext(ctx, `INSERT INTO accounts (owner) VALUES (:owner)`, row{Owner: c.owner})
		must(t, err)
		must(t, c.end(tx))
	}
	d.want(t, "kept", "")
}

func sqlxTwoStores(t *testing.T, d *deployment) {
	db, ctx := sqlxOpen(t, d), t.Context()
	tx, err := db.BeginTxx(ctx, nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	// docs: sqlx unit
	if _, err := tx.NamedExecContext(rhizodat.WithStore(ctx, "b"),
		`INSERT INTO accounts (owner) VALUES (:owner)`, row{Owner: "one"}); err != nil {
		return
	}
	if _, err := tx.ExecContext(ctx, `store:a INSERT INTO accounts (owner) VALUES ($1)`, "one"); err != nil {
		return
	}
	err = tx.Commit()
	// :docs
	must(t, err)
	d.want(t, "one", "one")

	tx, err = db.BeginTxx(ctx, nil)
	must(t, err)
	tx.MustExecContext(ctx, `INSERT INTO accounts (owner) VALUES ('two')`)
	tx.MustExecContext(ctx, `store:b INSERT INTO accounts (owner) VALUES ('two')`)
	must(t, tx.Rollback())
	d.want(t, "one", "one")
}

// In sqlx's named queries a colon begins a parameter, in a comment too.
func sqlxNamedRouted(t *testing.T, d *deployment) {
	db, ctx := sqlxOpen(t, d), t.Context()
	for _, trap := range []string{"store:b ", "/* store:b */ "} {
		_, err := db.NamedExecContext(ctx, trap+`INSERT INTO accounts (owner) VALUES (:owner)`, row{Owner: "lost"})
		if err == nil || !strings.Contains(err.Error(), "could not find name b") {
			t.Errorf("%s: error %v, want sqlx's own: this way of routing is not for named queries", trap, err)
		}
	}
	// docs: sqlx named
	_, err := db.NamedExecContext(ctx,
		`store::b INSERT INTO accounts (owner) VALUES (:owner)`, row{Owner: "one"}) // :: is sqlx's word for a colon
	// :docs
	must(t, err)
	insert, err := db.PrepareNamedContext(ctx, `INSERT INTO accounts (owner) VALUES (:owner)`)
	must(t, err)
	defer func() { closed(t, insert) }()
	for _, ctx := range []context.Context{ctx, d.inB(ctx)} {
		_, err := insert.ExecContext(ctx, row{Owner: "two"})
		must(t, err)
	}
	d.want(t, "two", "one two")
}

func sqlxErrors(t *testing.T, d *deployment) {
	db, ctx := sqlxOpen(t, d), d.inB(t.Context())
	insert := func() error {
		_, err := db.NamedExecContext(ctx, `INSERT INTO accounts (owner) VALUES (:owner)`, row{Owner: "one"})
		return err
	}
	must(t, insert())
	if pg, ok := insert().(*pgconn.PgError); !ok || pg.Code != "23505" { //nolint:errorlint // as much code does
		t.Error("a duplicate is not *pgconn.PgError itself")
	}
	if !d.unit {
		return
	}
	d.deferred(t, d.b)
	tx, err := db.BeginTxx(t.Context(), nil)
	must(t, err)
	tx.MustExecContext(t.Context(), `INSERT INTO accounts (owner) VALUES ('two')`)
	tx.MustExecContext(ctx, `INSERT INTO accounts (owner) VALUES ('two')`)
	isAborted(t, tx.Commit(), "b")
	d.want(t, "", "one")
}
