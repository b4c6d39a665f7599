package rhizodat_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// The store's session dies; the driver connection and the other store go on.
func TestLostSession(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	db.SetMaxOpenConns(1)
	kill := func(url string) {
		r.cluster.Exec(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '`+pgtest.Name(url)+`'`)
	}
	exec(t, db, "store:b SELECT 1")
	kill(r.b)
	tx := begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 1, "one")
	if _, err := tx.ExecContext(t.Context(), "store:b "+insert, 1, "one"); err == nil {
		// found dead at BEGIN and opened anew
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		r.want(t, "1", "1")
	} else {
		t.Fatalf("a BEGIN on a dead session was not tried on a new one: %v", err)
	}

	tx = begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 2, "two")
	exec(t, tx, "store:b "+insert, 2, "two")
	kill(r.b)
	err := tx.Commit()
	if !rhizodat.IsRetryable(err) || errors.Is(err, driver.ErrBadConn) {
		t.Errorf("commit over a dead session: %v, want a retryable *Aborted and no ErrBadConn", err)
	}
	r.want(t, "1", "1")
}

// A session that puts its BEGIN off is found dead, and no other is to be had at that
// moment. The unit goes on with one when there is: no statement runs outside of it.
func TestLostSessionThatCannotBeReplaced(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	db.SetMaxOpenConns(1)
	refuse := func(allowed string) {
		r.cluster.Exec(t, "postgres", `ALTER DATABASE "`+pgtest.Name(r.b)+`" ALLOW_CONNECTIONS `+allowed)
	}
	for _, again := range []bool{false, true} {
		for range 3 {
			tx := begin(t, t.Context(), db)
			exec(t, tx, "store:b "+insert, 99, "rolled back")
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		tx := begin(t, t.Context(), db)
		r.cluster.Exec(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '`+pgtest.Name(r.b)+`'`)
		refuse("false")
		if _, err := tx.ExecContext(t.Context(), "store:b "+insert, 1, "one"); err == nil {
			t.Error("a statement without a session = nil")
		}
		refuse("true")
		if again {
			exec(t, tx, "store:b "+insert, 2, "two")
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		r.want(t, "", "")
	}
}

// A session that has had units puts its BEGIN off to the first statement. It is
// found dead there, whatever comes first, and nothing of the unit is lost.
func TestLostSessionBeforeTheFirstStatement(t *testing.T) {
	r := newRig(t)
	db := r.open(t)
	db.SetMaxOpenConns(1)
	ready, err := db.PrepareContext(t.Context(), "store:b "+insert)
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	id := 0
	for name, first := range map[string]func(*sql.Tx) error{
		"a statement": func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), "store:b "+insert, id, "b")
			return err
		},
		"a statement prepared before": func(tx *sql.Tx) error {
			inside := tx.StmtContext(t.Context(), ready)
			defer inside.Close()
			_, err := inside.ExecContext(t.Context(), id, "b")
			return err
		},
		"a statement prepared in it": func(tx *sql.Tx) error {
			made, err := tx.PrepareContext(t.Context(), "store:b "+insert)
			if err != nil {
				return err
			}
			defer made.Close()
			_, err = made.ExecContext(t.Context(), id, "b")
			return err
		},
		"a query": func(tx *sql.Tx) error {
			return tx.QueryRowContext(t.Context(), "store:b "+insert+" RETURNING id", id, "b").Scan(&id)
		},
		"a copy": func(tx *sql.Tx) error {
			_, err := rhizodat.CopyFrom(t.Context(), tx, "b", "item", []string{"id", "name"}, rhizodat.CopyRows([][]any{{int32(id), "b"}}))
			return err
		},
		"a savepoint": func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(t.Context(), "SAVEPOINT sp"); err != nil {
				return err
			}
			if _, err := tx.ExecContext(t.Context(), "store:b "+insert, id, "b"); err != nil {
				return err
			}
			_, err := tx.ExecContext(t.Context(), "ROLLBACK TO sp")
			if err == nil {
				_, err = tx.ExecContext(t.Context(), "store:b "+insert, id, "b")
			}
			return err
		},
	} {
		id++
		for range 3 {
			tx := begin(t, t.Context(), db)
			exec(t, tx, "store:b "+insert, 99, "rolled back")
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		tx := begin(t, t.Context(), db)
		exec(t, tx, "store:a "+insert, id, "a")
		r.cluster.Exec(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '`+pgtest.Name(r.b)+`'`)
		if err := first(tx); err != nil {
			t.Fatalf("%s on a dead session: %v", name, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := strings.Join(strings.Fields("1 2 3 4 5 6")[:id], " ")
		r.want(t, all, all)
	}
}

// Two stores in one database can make a unit wait for itself. The error stays
// PostgreSQL's own, and names the likely cause.
func TestUnitThatWaitsForItself(t *testing.T) {
	cluster := pgtest.Server(t)
	url, journal := cluster.Database(t, "both"), cluster.Database(t, "j")
	cluster.Exec(t, pgtest.Name(url), `CREATE TABLE item (id int PRIMARY KEY, name text); INSERT INTO item VALUES (1, 'one')`)
	dsn := "a=" + url + "&schema=public b=" + url + "&schema=second journal=" + journal + " lock_timeout=100ms"
	cluster.Exec(t, pgtest.Name(url), `CREATE SCHEMA second`)
	if err := connector(t, dsn, nil).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx := begin(t, t.Context(), openDSN(t, dsn))
	exec(t, tx, "store:a UPDATE public.item SET name = 'two' WHERE id = $1", 1)
	_, err := tx.ExecContext(t.Context(), "store:b UPDATE public.item SET name = 'three' WHERE id = $1", 1)
	pgErr, ok := err.(*pgconn.PgError) //nolint:errorlint // GORM asserts it so
	if !ok || pgErr.Code != "55P03" || !strings.Contains(pgErr.Hint, "Stores b and a of this transaction lie in one database") {
		t.Errorf("got %T %v, want PostgreSQL's own 55P03 that names the two stores in its hint", err, err)
	}
}
