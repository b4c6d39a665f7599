package orm_test

import (
	"database/sql"
	"testing"

	"github.com/DATA-DOG/go-txdb"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go"
)

func TestTxDB(t *testing.T) {
	exercise(t, "txdb",
		item{"one transaction, rolled back", both, txdbOne},
		item{"nested", both, txdbNested},
	)
}

func txdbOpen(t *testing.T, d *deployment) *sql.DB {
	t.Helper()
	dsn := d.dsn
	// docs: txdb
	db := sql.OpenDB(txdb.New("rhizodat", dsn))
	// :docs
	return db
}

func txdbOne(t *testing.T, d *deployment) {
	db, ctx := txdbOpen(t, d), t.Context()
	var id int64
	must(t, db.QueryRowContext(ctx, `INSERT INTO accounts (owner) VALUES ($1) RETURNING id`, "one").Scan(&id))
	if d.unit {
		_, err := db.ExecContext(rhizodat.WithStore(ctx, "b"), `INSERT INTO accounts (owner) VALUES ($1)`, "one")
		must(t, err)
		_, err = db.ExecContext(ctx, `store:b INSERT INTO accounts (owner) VALUES ($1)`, "two")
		must(t, err)
	}
	var n int
	must(t, db.QueryRowContext(d.inB(ctx), `SELECT count(*) FROM accounts WHERE owner = ANY($1)`, []string{"one"}).Scan(&n))
	if n != 1 || id != 1 {
		t.Errorf("%d accounts inside, id %d", n, id)
	}
	d.want(t, "", "")
	if _, err := rhizodat.Lookup(ctx, db, rhizodat.TxnID{}); err == nil {
		t.Error("a unit was looked up through txdb, which hides its connection")
	}
	closed(t, db)
	d.want(t, "", "")
}

func txdbNested(t *testing.T, d *deployment) {
	db, ctx := txdbOpen(t, d), t.Context()
	insert := func(owner string, end func(*sql.Tx) error) {
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		_, err = tx.ExecContext(d.inB(ctx), `INSERT INTO accounts (owner) VALUES ($1)`, owner)
		must(t, err)
		must(t, end(tx))
	}
	insert("kept", (*sql.Tx).Commit)
	insert("dropped", (*sql.Tx).Rollback)
	tx, err := db.BeginTx(ctx, nil)
	must(t, err)
	_, err = tx.ExecContext(d.inB(ctx), `INSERT INTO accounts (owner) VALUES ('kept')`)
	if pg, ok := err.(*pgconn.PgError); !ok || pg.Code != "23505" { //nolint:errorlint // as much code does
		t.Errorf("duplicate: %T, want *pgconn.PgError itself", err)
	}
	must(t, tx.Rollback())
	var owners string
	must(t, db.QueryRowContext(d.inB(ctx), `SELECT string_agg(owner, ' ') FROM accounts`).Scan(&owners))
	if owners != "kept" {
		t.Errorf("inside are %q", owners)
	}
	closed(t, db)
	d.want(t, "", "")
}
