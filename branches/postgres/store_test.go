package postgres_test

import (
	"context"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// place is a database of a test's own, with our tables and a table t.
type place struct {
	t       *testing.T
	cluster *pgtest.Cluster
	dsn     string
}

func newPlace(t *testing.T) place {
	t.Helper()
	return placeOn(t, pgtest.Server(t))
}

func placeOn(t *testing.T, cluster *pgtest.Cluster) place {
	t.Helper()
	p := place{t, cluster, cluster.Database(t, "branch")}
	cluster.Exec(t, p.dsn, "CREATE TABLE t (k text PRIMARY KEY, v bigint)")
	if err := p.open(postgres.Options{}).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// open makes a store over the place, as another process would.
func (p place) open(opts postgres.Options) *postgres.Store {
	p.t.Helper()
	return openStore(p.t, p.dsn, opts)
}

func openStore(t *testing.T, dsn string, opts postgres.Options) *postgres.Store {
	t.Helper()
	store, err := postgres.Open("pg", dsn, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return store
}

func connect(t *testing.T, store *postgres.Store) branches.Session {
	t.Helper()
	session, err := store.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// unit is a branch that a test has begun.
type unit struct {
	t       *testing.T
	txn     branches.TxnID
	gid     branches.GID
	session branches.Session
	branches.Branch
}

func begin(t *testing.T, session branches.Session, opts branches.BeginOptions) unit {
	t.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	opts.Txn = txn
	branch, err := session.Begin(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return unit{t, txn, branches.NewGID(txn, "pg"), session, branch}
}

func (u unit) exec(text string) {
	u.t.Helper()
	if err := u.try(text); err != nil {
		u.t.Fatal(err)
	}
}

func (u unit) try(text string) error {
	_, err := u.session.Exec(u.t.Context(), text, nil)
	return err
}

func (u unit) stage(unit branches.Unit) (branches.Staged, error) {
	unit.Txn, unit.TxTime, unit.Marker = u.txn, hlc.FromMillis(1700000000000), true
	return u.Stage(u.t.Context(), unit)
}

// prepared stages and prepares; a branch without writes takes a Notice.
func (u unit) prepared(notice ...branches.Unit) unit {
	u.t.Helper()
	if len(notice) == 0 {
		u.voted(branches.VotePrepare)
	} else if _, err := u.stage(notice[0]); err != nil {
		u.t.Fatal(err)
	}
	if err := u.Prepare(u.t.Context(), u.gid); err != nil {
		u.t.Fatal(err)
	}
	return u
}

func (u unit) voted(want branches.Vote) {
	u.t.Helper()
	staged, err := u.stage(branches.Unit{})
	if err != nil {
		u.t.Fatal(err)
	}
	if staged.Vote != want {
		u.t.Fatalf("vote = %s, want %s", staged.Vote, want)
	}
}

func (u unit) ref() branches.Ref {
	return branches.Ref{Txn: u.txn, Store: "pg", GID: u.gid, TwoPhase: true}
}

// emptied takes back what an earlier row of a table test committed.
func (p place) emptied() place {
	p.t.Helper()
	p.cluster.Exec(p.t, p.admin().dsn, "TRUNCATE t, dat_applied")
	return p
}

func (p place) rows() int64 { return p.cluster.Int(p.t, p.dsn, "SELECT count(*) FROM t") }

func fate(ctx context.Context, t *testing.T, store branches.Store, txn branches.TxnID) branches.Fate {
	t.Helper()
	got, err := store.Applied(ctx, txn)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTwoPhase(t *testing.T) {
	p := newPlace(t)
	store := p.open(postgres.Options{})
	session := connect(t, store)
	u := begin(t, session, branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	u.prepared()
	if !session.Usable() {
		t.Error("session is not usable after PREPARE")
	}
	if n := p.rows(); n != 0 {
		t.Errorf("%d rows visible before Finish", n)
	}
	if got := fate(t.Context(), t, store, u.txn); got != branches.FateAbsent {
		t.Errorf("fate before Finish = %s", got)
	}
	if err := u.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	if n := p.rows(); n != 1 {
		t.Errorf("%d rows after Finish, want 1", n)
	}
	if got := fate(t.Context(), t, store, u.txn); got != branches.FateApplied {
		t.Errorf("fate after Finish = %s", got)
	}
	if err := p.open(postgres.Options{}).Finish(t.Context(), u.ref()); err != nil {
		t.Errorf("second Finish: %v", err)
	}
}

func TestOnePhase(t *testing.T) {
	p := newPlace(t)
	store := p.open(postgres.Options{})
	u := begin(t, connect(t, store), branches.BeginOptions{})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	if _, err := u.stage(branches.Unit{OnePhase: true}); err != nil {
		t.Fatal(err)
	}
	if err := u.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.rows() != 1 || fate(t.Context(), t, store, u.txn) != branches.FateApplied {
		t.Error("one-phase commit left no row or no marker")
	}
	if got, err := store.Settle(t.Context(), u.txn); err != nil || got != branches.FateApplied {
		t.Errorf("Settle = %s, %v", got, err)
	}
}
