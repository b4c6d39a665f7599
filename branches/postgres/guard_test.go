//go:build rhizodat_guards

package postgres_test

import (
	"errors"
	"os"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// With a guard taken out (RHIZODAT_GUARD_OFF) this store must get wrong what
// the guard is for; the checkers of a whole run are proved with that.
func TestGuardTakenOut(t *testing.T) {
	p := newPlace(t)
	store := p.open(postgres.Options{})
	session := connect(t, store)
	u := begin(t, session, branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	u.voted(branches.VotePrepare)
	switch guard.Name(os.Getenv("RHIZODAT_GUARD_OFF")) {
	case guard.Tag:
		conn, err := postgres.Conn(session, "pg")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Exec(t.Context(), "SELECT nonsense")
		if err := u.Prepare(t.Context(), u.gid); err != nil {
			t.Errorf("Prepare without the tag's guard = %v, want the lie", err)
		}
	case guard.Exists:
		if err := errors.Join(u.Rollback(t.Context()), store.Finish(t.Context(), u.ref())); err != nil {
			t.Errorf("Finish without the guard = %v, want the lie", err)
		}
	case guard.Marker:
		if err := u.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if fate, err := store.Settle(t.Context(), u.txn); err != nil || fate != branches.FateNever {
			t.Errorf("Settle without the guard = %s, %v, want the lie", fate, err)
		}
	default:
		t.Log("no guard of a store is out")
	}
}
