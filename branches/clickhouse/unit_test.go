package clickhouse_test

import (
	"database/sql/driver"
	"flag"
	"os"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

var longFlag = flag.Bool("long", false, "run the long form of the tests")

// long: also RHIZODAT_LONG=1.
func long() bool { return *longFlag || os.Getenv("RHIZODAT_LONG") == "1" }

// txTime is any time that a unit may have.
var txTime = hlc.FromMillis(1_800_000_000_000)

// unit is a branch under test.
type unit struct {
	branches.Branch
	txn    branches.TxnID
	staged branches.Staged
}

func connect(t *testing.T, store branches.Store) branches.Session {
	t.Helper()
	session, err := store.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func begin(t *testing.T, session branches.Session) *unit {
	t.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	branch, err := session.Begin(t.Context(), branches.BeginOptions{Txn: txn, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	return &unit{Branch: branch, txn: txn}
}

func (u *unit) gid() branches.GID { return branches.NewGID(u.txn, "s") }

func (u *unit) stage(t *testing.T, onePhase bool) *unit {
	t.Helper()
	var err error
	u.staged, err = u.Stage(t.Context(), branches.Unit{Txn: u.txn, TxTime: txTime, OnePhase: onePhase, Marker: true})
	if err != nil {
		t.Fatal(err)
	}
	if u.staged.Vote != branches.VoteApply {
		t.Fatalf("vote %s", u.staged.Vote)
	}
	return u
}

// commit ends the unit in one phase.
func (u *unit) commit(t *testing.T) {
	t.Helper()
	u.stage(t, true)
	if err := u.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// finish lets another than its session insert the unit.
func (u *unit) finish(t *testing.T, store branches.Store) {
	t.Helper()
	ref := u.stage(t, false).ref()
	if err := u.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Finish(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
}

// plain commits as a program with one store and no journal does.
func (u *unit) plain(t *testing.T) {
	t.Helper()
	if err := u.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (u *unit) ref() branches.Ref {
	return branches.Ref{Txn: u.txn, Store: "s", GID: u.gid(), TxTime: txTime, Payload: u.staged.Payload}
}

func args(values ...any) []driver.NamedValue {
	list := make([]driver.NamedValue, len(values))
	for i, v := range values {
		list[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return list
}

func execute(t *testing.T, session branches.Session, query string, values ...any) {
	t.Helper()
	if _, err := session.Exec(t.Context(), query, args(values...)); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
