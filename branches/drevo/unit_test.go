package drevo_test

import (
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

func open(t *testing.T, g *drevotest.Graph, opts drevo.Options) *drevo.Store {
	t.Helper()
	return openURL(t, g.URL(), opts)
}

func openURL(t *testing.T, url string, opts drevo.Options) *drevo.Store {
	t.Helper()
	store, err := drevo.Open("s", url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // a test may have closed it
	return store
}

func install(t *testing.T, store *drevo.Store) {
	t.Helper()
	if err := store.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// installed is a new graph with our nodes, and a store on it.
func installed(t *testing.T, cluster *drevotest.Cluster) (*drevotest.Graph, *drevo.Store) {
	t.Helper()
	g := cluster.Graph(t, "branch")
	store := open(t, g, drevo.Options{})
	install(t, store)
	return g, store
}

func connect(t *testing.T, store *drevo.Store) branches.Session {
	t.Helper()
	session, err := store.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// unit is a branch under test.
type unit struct {
	branches.Branch
	t       *testing.T
	session branches.Session
	txn     branches.TxnID
	gid     branches.GID
}

func begin(t *testing.T, session branches.Session) *unit {
	t.Helper()
	return beginAs(t, session, branches.BeginOptions{})
}

func beginAs(t *testing.T, session branches.Session, opts branches.BeginOptions) *unit {
	t.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	opts.Txn = txn
	b, err := session.Begin(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return &unit{Branch: b, t: t, session: session, txn: txn, gid: branches.NewGID(txn, "s")}
}

func (u *unit) exec(query string, args ...any) *unit {
	u.t.Helper()
	if err := u.try(query, args...); err != nil {
		u.t.Fatalf("%s: %v", query, err)
	}
	return u
}

func (u *unit) try(query string, args ...any) error {
	_, err := u.session.Exec(u.t.Context(), query, positional(args))
	return err
}

func positional(args []any) []driver.NamedValue {
	values := make([]driver.NamedValue, len(args))
	for i, v := range args {
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return values
}

func (u *unit) stage(onePhase bool) (branches.Staged, error) {
	return u.Stage(u.t.Context(), branches.Unit{
		Txn: u.txn, TxTime: hlc.FromMillis(u.txn.Time().UnixMilli()) + 1, OnePhase: onePhase, Marker: true,
	})
}

func (u *unit) staged(onePhase bool) *unit {
	u.t.Helper()
	if _, err := u.stage(onePhase); err != nil {
		u.t.Fatal(err)
	}
	return u
}

// prepared is a unit that has written a node of a label and is prepared.
func prepared(t *testing.T, store *drevo.Store, label string) *unit {
	t.Helper()
	u := begin(t, connect(t, store)).exec("CREATE (:" + label + ")").staged(false)
	if err := u.Prepare(t.Context(), u.gid); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *unit) ref() branches.Ref {
	return branches.Ref{Txn: u.txn, Store: "s", GID: u.gid, TwoPhase: true, TxTime: hlc.FromMillis(u.txn.Time().UnixMilli()) + 1}
}

func wantFate(t *testing.T, store *drevo.Store, txn branches.TxnID, want branches.Fate) {
	t.Helper()
	if got, err := store.Applied(t.Context(), txn); err != nil || got != want {
		t.Errorf("marker is %s, %v, want %s", got, err, want)
	}
}

func wantCount(t *testing.T, g *drevotest.Graph, label string, want int) {
	t.Helper()
	if got := g.Count(t, label); got != want {
		t.Errorf("%d nodes of %s, want %d", got, label, want)
	}
}

func wantHeuristic(t *testing.T, err error, committed bool) {
	t.Helper()
	h, ok := errors.AsType[*branches.Heuristic](err)
	if !ok || h.Committed != committed {
		t.Errorf("%v, want a Heuristic with committed = %t", err, committed)
	}
}

// query returns the columns, rows and the driver's own Rows of a statement.
func query(t *testing.T, session branches.Session, text string, args ...driver.NamedValue) (driver.Rows, [][]driver.Value) {
	t.Helper()
	rows, err := session.Query(t.Context(), text, args)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	var all [][]driver.Value
	for {
		row := make([]driver.Value, len(rows.Columns()))
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return rows, all
		} else if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, row)
	}
}
