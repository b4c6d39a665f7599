package recovery_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// deployment is an application's DSN with real servers behind it.
type deployment struct {
	cluster *pgtest.Cluster
	stores  map[string]string // URLs
	journal string            // URL
	config  recovery.Config
	rows    atomic.Int64

	mu   sync.Mutex
	idle map[string][]branches.Session // by store
}

// deploy installs a deployment. The stores' URLs may carry schema=.
func deploy(t *testing.T, c *pgtest.Cluster, journalURL string, stores map[string]string) *deployment {
	t.Helper()
	d := connect(t, c, journalURL, stores)
	if _, err := d.worker(t, nil).Install(t.Context()); err != nil {
		t.Fatalf("install: %v", err)
	}
	for _, url := range stores {
		c.Exec(t, url, "CREATE TABLE IF NOT EXISTS item (id bigint PRIMARY KEY)")
	}
	return d
}

// two is a deployment of stores a and b, each in its own database.
func two(t *testing.T, c *pgtest.Cluster) *deployment {
	t.Helper()
	return deploy(t, c, c.Database(t, "j"), map[string]string{"a": c.Database(t, "a"), "b": c.Database(t, "b")})
}

// connect opens a DSN without installing anything.
func connect(t *testing.T, c *pgtest.Cluster, journalURL string, stores map[string]string) *deployment {
	t.Helper()
	words := []string{"journal=" + journalURL}
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		words = append(words, name+"="+stores[name])
	}
	cfg, err := rhizodat.ParseDSN(strings.Join(words, " "))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range cfg.Stores {
		s.Options = postgres.Options{ControlConns: 16}
		cfg.Stores[name] = s
	}
	connector, err := rhizodat.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := connector.Close(); err != nil {
			t.Errorf("close connector: %v", err)
		}
	})
	d := &deployment{cluster: c, stores: stores, journal: journalURL, idle: map[string][]branches.Session{}}
	if d.config, err = connector.Recovery(); err != nil {
		t.Fatal(err)
	}
	d.config.Logger = slog.New(slog.NewTextHandler(testLog{t}, nil))
	return d
}

// testLog puts a log into the test's output.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// worker makes a worker, which takes records at once unless change says otherwise.
func (d *deployment) worker(t *testing.T, change func(*recovery.Config)) *recovery.Worker {
	t.Helper()
	cfg := d.config
	cfg.StaleAfter = -1
	if change != nil {
		change(&cfg)
	}
	w, err := recovery.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// pass makes one pass of a new worker.
func (d *deployment) pass(t *testing.T) recovery.Report {
	t.Helper()
	return passOf(t, d.worker(t, nil))
}

// passOf makes one pass. It may need some tries: tests end the sessions of
// databases that they copy.
func passOf(t *testing.T, w *recovery.Worker) recovery.Report {
	t.Helper()
	var r recovery.Report
	var err error
	for range 10 {
		if r, err = w.Once(t.Context()); err == nil {
			return r
		}
	}
	t.Fatalf("pass: %v", err)
	return r
}

// unit is a unit whose coordinator died.
type unit struct {
	txn branches.TxnID
	row int64
}

// abandoned says where its coordinator died.
type abandoned int

const (
	atActive    abandoned = iota // after S5
	atPrepared                   // after S6
	atCommitted                  // after S7
)

// abandon leaves a unit with every branch prepared.
func (d *deployment) abandon(t *testing.T, where abandoned) unit {
	t.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	u := unit{txn, d.rows.Add(1)}
	rec := journal.Record{Txn: txn, TxTime: d.config.Clock.Now()}
	for _, name := range slices.Sorted(maps.Keys(d.config.Stores)) {
		rec.Branches = append(rec.Branches, journal.Branch{Store: name, GID: branches.NewGID(txn, name), TwoPhase: true})
	}
	session, err := d.config.Journal.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Release()
	if err := session.Create(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	for _, b := range rec.Branches {
		d.prepare(t, rec.Ref(b), u.row)
	}
	decision := journal.Decision{Txn: txn, TxTime: rec.TxTime}
	if where >= atPrepared {
		err = session.Prepare(t.Context(), decision)
	}
	if err == nil && where == atCommitted {
		err = session.Decide(t.Context(), decision)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// abandonMany leaves n units, an even one decided.
func (d *deployment) abandonMany(t *testing.T, n int) []unit {
	t.Helper()
	units := make([]unit, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, 8) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				where := atPrepared
				if i%2 == 0 {
					where = atCommitted
				}
				units[i] = d.abandon(t, where)
			}
		})
	}
	wg.Wait()
	return units
}

// session is an idle session of a store, or a new one.
func (d *deployment) session(t *testing.T, store string) branches.Session {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if idle := d.idle[store]; len(idle) > 0 {
		d.idle[store] = idle[:len(idle)-1]
		return idle[len(idle)-1]
	}
	session, err := d.config.Stores[store].Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// prepare leaves one branch prepared, with its marker.
func (d *deployment) prepare(t *testing.T, ref branches.Ref, row int64) {
	t.Helper()
	session := d.session(t, ref.Store)
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.idle[ref.Store] = append(d.idle[ref.Store], session)
	}()
	branch, err := session.Begin(t.Context(), branches.BeginOptions{Txn: ref.Txn, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Exec(t.Context(), fmt.Sprintf("INSERT INTO item VALUES (%d)", row), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := branch.Stage(t.Context(), branches.Unit{Txn: ref.Txn, TxTime: ref.TxTime, Marker: true}); err != nil {
		t.Fatal(err)
	}
	if err := branch.Prepare(t.Context(), ref.GID); err != nil {
		t.Fatal(err)
	}
}

// prepared counts the prepared transactions of the deployment's stores that are
// of its own units.
func (d *deployment) prepared(t *testing.T, units ...unit) int {
	t.Helper()
	mine := map[branches.TxnID]bool{}
	for _, u := range units {
		mine[u.txn] = true
	}
	n := 0
	for name, url := range d.stores {
		for _, gid := range d.cluster.Prepared(t, url) {
			if g := branches.GID(gid); mine[g.Txn()] && g.Store() == name {
				n++
			}
		}
	}
	return n
}

// state is what the journal holds of a unit; empty without a record.
func (d *deployment) state(t *testing.T, txn branches.TxnID) string {
	t.Helper()
	found := d.cluster.Strings(t, d.journal, "SELECT state FROM dat_journal WHERE dat_txn = $1", txn.String())
	return strings.Join(found, "")
}

// rowsIn counts the units whose row is in a store.
func (d *deployment) rowsIn(t *testing.T, store string, units ...unit) int {
	t.Helper()
	n := 0
	for _, u := range units {
		n += int(d.cluster.Int(t, d.stores[store], "SELECT count(*) FROM item WHERE id = $1", u.row))
	}
	return n
}

// want checks that every unit has taken effect in all stores, or in none.
func (d *deployment) want(t *testing.T, state string, units ...unit) {
	t.Helper()
	rows := 0
	if state == "DONE" {
		rows = len(units)
	}
	for _, u := range units {
		if got := d.state(t, u.txn); got != state {
			t.Errorf("unit %s is %q, want %s", u.txn, got, state)
		}
	}
	for name := range d.stores {
		if got := d.rowsIn(t, name, units...); got != rows {
			t.Errorf("store %s has rows of %d units, want %d", name, got, rows)
		}
	}
	if n := d.prepared(t, units...); n != 0 {
		t.Errorf("%d branches are still prepared", n)
	}
}

// older makes records look older by d to everybody.
func (d *deployment) older(t *testing.T, by time.Duration) {
	t.Helper()
	d.cluster.Exec(t, d.journal, fmt.Sprintf("UPDATE dat_journal SET created_ms = created_ms - %[1]d, updated_ms = updated_ms - %[1]d", by.Milliseconds()))
}

// figure prints a line that scripts read.
func figure(t *testing.T, name string, value any, goal string, ok bool) {
	t.Helper()
	word := "ok"
	if !ok {
		word = "short"
		t.Errorf("figure %s is %v, goal %s", name, value, goal)
	}
	fmt.Printf("figure %s %v %s %s\n", name, value, goal, word)
}

// textOf finds what a report says of a kind.
func textOf(r recovery.Report, kind recovery.Kind) string {
	var texts []string
	for _, i := range r.Items {
		if i.Kind == kind {
			texts = append(texts, i.Text)
		}
	}
	return strings.Join(texts, "; ")
}
