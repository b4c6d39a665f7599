package rhizodat_test

import (
	"database/sql/driver"
	"errors"
	"testing"

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
