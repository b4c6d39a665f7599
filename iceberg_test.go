package rhizodat_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// icy is a deployment of a PostgreSQL store, an Iceberg store and a journal.
type icy struct {
	pg   *pgtest.Cluster
	bank string // URL
	dir  string // of catalog and warehouse
	dsn  string
}

func newIcy(t *testing.T, options ...string) *icy {
	t.Helper()
	m := &icy{pg: pgtest.Server(t), dir: t.TempDir()}
	m.bank = m.pg.Database(t, "bank")
	m.dsn = strings.Join(append([]string{
		"pg=" + m.bank, "lake=iceberg+sqlite://" + m.dir + "/catalog.db?warehouse=file://" + m.dir + "/wh&namespace=erp",
		"journal=" + m.pg.Database(t, "j"), "default=pg",
	}, options...), " ")
	m.pg.Exec(t, pgtest.Name(m.bank), `CREATE TABLE account (id int PRIMARY KEY, amount int)`)
	if err := connector(t, m.dsn, nil).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx := rhizodat.WithStore(t.Context(), "lake")
	if _, err := openDSN(t, m.dsn).ExecContext(ctx, "CREATE TABLE history (account int, amount decimal(9,2))"); err != nil {
		t.Fatal(err)
	}
	return m
}

// want checks the rows of both stores.
func (m *icy) want(t *testing.T, accounts, history string) {
	t.Helper()
	if got := strings.Join(m.pg.Strings(t, pgtest.Name(m.bank), `SELECT id::text FROM account ORDER BY id`), " "); got != accounts {
		t.Errorf("accounts %q, want %q", got, accounts)
	}
	rows, err := openDSN(t, m.dsn).QueryContext(rhizodat.WithStore(t.Context(), "lake"), "SELECT account FROM history ORDER BY account")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var found []string
	for rows.Next() {
		var account int
		if err := rows.Scan(&account); err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprint(account))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(found, " "); got != history {
		t.Errorf("history %q, want %q", got, history)
	}
}

const history = `store:lake INSERT INTO history VALUES (?, ?)`

// One Commit over PostgreSQL and Iceberg: both or neither.
func TestCommitBesideIceberg(t *testing.T) {
	m := newIcy(t)
	db := openDSN(t, m.dsn)
	tx := begin(t, t.Context(), db)
	exec(t, tx, debit, 1, 10)
	exec(t, tx, history, 1, "10.50")
	exec(t, tx, "SAVEPOINT s")
	exec(t, tx, debit, 2, 10)
	exec(t, tx, history, 2, "10.50")
	exec(t, tx, "ROLLBACK TO s")
	n, err := rhizodat.Append(t.Context(), tx, "lake", "history", []string{"account"}, rhizodat.CopyRows([][]any{{3}, {4}}))
	if n != 2 || err != nil {
		t.Fatalf("append = %d, %v", n, err)
	}
	m.want(t, "", "")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	m.want(t, "1", "1 3 4")

	tx = begin(t, t.Context(), db)
	exec(t, tx, debit, 9, 10)
	exec(t, tx, history, 9, "1")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	tx = begin(t, t.Context(), db)
	exec(t, tx, history, 9, "1")
	if _, err := tx.ExecContext(t.Context(), debit, 1, 10); err == nil {
		t.Error("a second account 1 is taken")
	}
	if err := tx.Commit(); err == nil {
		t.Error("commit beside a failed statement = nil")
	}
	m.want(t, "1", "1 3 4")
	// What was rolled back has left no file.
	files, err := filepath.Glob(m.dir + "/wh/erp.db/history/data/*.parquet")
	if err != nil || len(files) != 1 {
		t.Errorf("%d data files, want the 1 of the commit: %q %v", len(files), files, err)
	}
}

// hider takes the warehouse away as soon as a unit is decided.
type hider struct{ hide func() }

func (h hider) Step(_ context.Context, e coordinator.StepEvent) {
	if e.Step == coordinator.S9 && e.Moment == coordinator.Before && e.Store == "" {
		h.hide()
	}
}

func (hider) Outcome(context.Context, coordinator.OutcomeEvent) {}

// The warehouse is away after the decision: Commit says that it is pending, show says
// what is in the payload, and recovery writes the snapshot when it is back.
func TestCommitPendingInIceberg(t *testing.T) {
	m := newIcy(t, "finish_timeout=300ms")
	warehouse, away := m.dir+"/wh", m.dir+"/away"
	cfg, err := rhizodat.ParseDSN(m.dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Observer = hider{hide: func() {
		if err := os.Rename(warehouse, away); err != nil {
			t.Error(err)
		}
	}}
	c, err := rhizodat.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	tx := begin(t, t.Context(), db)
	exec(t, tx, debit, 1, 10)
	exec(t, tx, history, 1, "10.50")
	err = tx.Commit()
	pending, ok := errors.AsType[*rhizodat.CommittedPending](err)
	if !ok || !rhizodat.IsCommitted(err) {
		t.Fatalf("commit = %v, want a pending one", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, warehouse); err != nil {
		t.Fatal(err)
	}
	worker := worker(t, m.dsn)
	m.shown(t, worker, pending.DatTxn, "table erp.history: adds 1 files of 1 rows", "not committed yet")
	if _, err := worker.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.shown(t, worker, pending.DatTxn, "committed in snapshot")
	m.want(t, "1", "1")
}

func (m *icy) shown(t *testing.T, worker *recovery.Worker, txn branches.TxnID, parts ...string) {
	t.Helper()
	story, err := worker.Show(t.Context(), txn)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, b := range story.Branches {
		lines = append(lines, b.Work...)
	}
	for _, part := range parts {
		if text := strings.Join(lines, "\n"); !strings.Contains(text, part) {
			t.Errorf("show says %q, want %q in it", text, part)
		}
	}
}

// Two stores in one namespace of one catalog would take one another's snapshots for
// their own.
func TestTwoIcebergStoresInOnePlace(t *testing.T) {
	m := newIcy(t)
	dsn := m.dsn + " other=iceberg+sqlite://" + m.dir + "/catalog.db?warehouse=file://" + m.dir + "/wh&namespace=erp&catalog=default"
	db := openDSN(t, dsn)
	tx := begin(t, t.Context(), db)
	defer func() { _ = tx.Rollback() }()
	_, err := tx.ExecContext(t.Context(), history, 1, "1")
	if err == nil {
		_, err = tx.ExecContext(t.Context(), `store:other INSERT INTO history VALUES (?, ?)`, 2, "1")
	}
	if err == nil {
		err = tx.Commit()
	}
	if err == nil || !strings.Contains(err.Error(), "lake") || !strings.Contains(err.Error(), "other") {
		t.Errorf("two stores in one place: %v, want an error that names both", err)
	}
	m.want(t, "", "")
}
