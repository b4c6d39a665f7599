package rhizodat_test

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// One store and no journal is pgx itself: no table of ours, pgx's own errors.
func TestOneStoreIsPgx(t *testing.T) {
	cluster := pgtest.Server(t)
	url := cluster.Database(t, "one")
	cluster.Exec(t, pgtest.Name(url), `CREATE TABLE item (id serial PRIMARY KEY, name text UNIQUE, tags text[], doc jsonb)`)
	db := openDSN(t, "pg="+url)
	var id int
	if err := db.QueryRowContext(t.Context(), `INSERT INTO item (name, tags, doc) VALUES ($1, $2, $3) RETURNING id`,
		"n", []string{"x", "y"}, map[string]any{"k": 1}).Scan(&id); err != nil || id != 1 {
		t.Fatalf("returning: %d, %v", id, err)
	}
	var name sql.NullString
	var tags, doc string
	if err := db.QueryRowContext(t.Context(), `SELECT NULL::text, tags::text, doc::text FROM item`).Scan(&name, &tags, &doc); err != nil ||
		name.Valid || tags != "{x,y}" || doc != `{"k": 1}` {
		t.Errorf("%v %q %q, %v", name, tags, doc, err)
	}
	result, err := db.ExecContext(t.Context(), `UPDATE item SET name = $1`, "m")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Errorf("affected %d, %v", n, err)
	}
	if _, err := result.LastInsertId(); err == nil || err.Error() != "LastInsertId is not supported by this driver" {
		t.Errorf("LastInsertId: %v, want pgx's own words", err)
	}
	tx := begin(t, t.Context(), db)
	exec(t, tx, "SAVEPOINT s") // PostgreSQL's own
	if _, err := tx.ExecContext(t.Context(), "SELECT 1/0"); err == nil {
		t.Fatal("division by zero went through")
	}
	exec(t, tx, "ROLLBACK TO s")
	exec(t, tx, "INSERT INTO item (name) VALUES ('tx')")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	tx = begin(t, t.Context(), db)
	_, _ = tx.ExecContext(t.Context(), "SELECT 1/0")
	if err := tx.Commit(); err != pgx.ErrTxCommitRollback { //nolint:errorlint // pgx's own value
		t.Errorf("commit of a failed transaction: %v, want pgx's own error", err)
	}
	if tables := cluster.Strings(t, pgtest.Name(url), `SELECT tablename FROM pg_tables WHERE tablename LIKE 'dat%'`); len(tables) > 0 {
		t.Errorf("tables of ours in a single store: %v", tables)
	}
}
