package rhizodat_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

func TestRawGivesPgxConn(t *testing.T) {
	r := newRig(t)
	pooled, err := r.open(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer pooled.Close()
	for store, url := range map[string]string{"a": r.a, "b": r.b} {
		err = pooled.Raw(func(c any) error {
			pg, err := postgres.Conn(c, store)
			if err != nil {
				return err
			}
			var name string
			if err := pg.QueryRow(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
				return err
			}
			if name != pgtest.Name(url) {
				t.Errorf("store %s is database %s", store, name)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	err = pooled.Raw(func(c any) error { _, err := postgres.Conn(c, "nowhere"); return err })
	if err == nil {
		t.Error("an unknown store gave a connection")
	}
}

// Session state lives as long as the driver connection, as with pgx.
func TestSessionStateIsKept(t *testing.T) {
	r := newRig(t)
	conn, err := r.open(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exec(t, conn, "store:b SET application_name = 'kept'")
	exec(t, conn, "store:a SELECT 1")
	var name string
	if err := conn.QueryRowContext(t.Context(), "store:b SHOW application_name").Scan(&name); err != nil || name != "kept" {
		t.Errorf("application_name %q, %v", name, err)
	}
}

func TestReadOnlyTransaction(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, store := range []string{"a", "b"} {
		var level string
		if err := tx.QueryRowContext(t.Context(), "store:"+store+" SHOW transaction_isolation").Scan(&level); err != nil || level != "repeatable read" {
			t.Errorf("store %s: isolation %q, %v", store, level, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r.states(t, "")

	tx, err = db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var pg *pgconn.PgError
	if _, err := tx.ExecContext(t.Context(), insert, 1, "x"); !errors.As(err, &pg) || pg.Code != "25006" {
		t.Errorf("write in a read-only transaction: %v", err)
	}
	_ = tx.Rollback()
}

func TestUnsupportedIsolation(t *testing.T) {
	r := newRig(t)
	tx, err := r.open(t).BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelLinearizable})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "store:a SELECT 1"); err == nil || !strings.Contains(err.Error(), "isolation") {
		t.Errorf("error %v, want one about isolation at the store's first use", err)
	}
}
