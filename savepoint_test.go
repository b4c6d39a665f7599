package rhizodat_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go"
)

func TestSavepointsOfTheWholeUnit(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	tx := begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 1, "kept")
	exec(t, tx, "SAVEPOINT sp")
	exec(t, tx, "store:a "+insert, 2, "dropped")
	exec(t, tx, "SAVEPOINT sp") // the same name again nests
	exec(t, tx, "store:b "+insert, 2, "dropped, in a branch opened after both")
	exec(t, tx, "ROLLBACK TO SAVEPOINT sp")
	exec(t, tx, "RELEASE SAVEPOINT sp")
	exec(t, tx, "ROLLBACK TO sp") // the outer one
	exec(t, tx, "store:b "+insert, 3, "kept")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r.want(t, "1", "3")
}

func TestSavepointErrors(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	if _, err := db.ExecContext(t.Context(), "SAVEPOINT s"); err == nil || !strings.Contains(err.Error(), "db.BeginTx") {
		t.Errorf("outside a transaction: %v", err)
	}
	tx := begin(t, t.Context(), db)
	for query, want := range map[string]string{
		"ROLLBACK TO nowhere": `none is named "nowhere"`,
		"RELEASE nowhere":     `none is named "nowhere"`,
		"store:b SAVEPOINT s": "belongs to the whole transaction",
	} {
		if _, err := tx.ExecContext(t.Context(), query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that says %q", query, err, want)
		}
	}
}

// A failed statement dooms its branch, and with it the unit; rolling back to a
// savepoint older than it takes that back.
func TestDoom(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	tx := begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 1, "one")
	exec(t, tx, "store:b "+insert, 1, "one")
	_, dup := tx.ExecContext(t.Context(), "store:b "+insert, 1, "again")
	if pg, ok := dup.(*pgconn.PgError); !ok || pg.Code != "23505" { //nolint:errorlint // GORM asserts the type directly
		t.Fatalf("a statement's error is %T, want *pgconn.PgError itself", dup)
	}
	err := tx.Commit()
	var aborted *rhizodat.Aborted
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &aborted), aborted.Store != "b":
		t.Errorf("commit: %v, want *Aborted of store b", err)
	case !errors.Is(err, pgx.ErrTxCommitRollback):
		t.Errorf("commit: %v, want it to be pgx.ErrTxCommitRollback too", err)
	case !errors.As(err, &pg) || pg.Code != "23505":
		t.Errorf("commit: %v, want the statement's error inside", err)
	case rhizodat.IsRetryable(err), rhizodat.IsCommitted(err):
		t.Errorf("a constraint is neither retryable nor committed")
	}
	r.want(t, "", "")

	tx = begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 1, "one")
	exec(t, tx, "SAVEPOINT s")
	if _, err := tx.ExecContext(t.Context(), "store:b SELECT 1/0"); err == nil {
		t.Fatal("division by zero went through")
	}
	exec(t, tx, "ROLLBACK TO s")
	exec(t, tx, "store:b "+insert, 2, "two")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r.want(t, "1", "2")
}

// A statement that never reached a store dooms nothing.
func TestRefusedStatementDoomsNothing(t *testing.T) {
	r := newRig(t)
	tx := begin(t, t.Context(), r.open(t))
	exec(t, tx, "store:a "+insert, 1, "one")
	exec(t, tx, "store:b "+insert, 1, "one")
	for _, query := range []string{"COMMIT", "store:nowhere SELECT 1", "SELECT 1; ROLLBACK"} {
		if _, err := tx.ExecContext(t.Context(), query); err == nil {
			t.Errorf("%s went through", query)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r.want(t, "1", "1")
}
