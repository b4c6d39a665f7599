package rhizodat_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// mixed is a deployment of a PostgreSQL store, a ClickHouse store and a journal.
type mixed struct {
	pg       *pgtest.Cluster
	ch       *chtest.Cluster
	bank     string // URL
	database string
	dsn      string
}

func newMixed(t *testing.T, ch *chtest.Cluster, protocol chtest.Protocol, options ...string) *mixed {
	t.Helper()
	m := &mixed{pg: pgtest.Server(t), ch: ch}
	m.bank, m.database = m.pg.Database(t, "bank"), ch.Database(t, "events")
	m.dsn = strings.Join(append([]string{
		"pg=" + m.bank, "ch=" + ch.DSN(protocol, m.database), "journal=" + m.pg.Database(t, "j"), "default=pg",
	}, options...), " ")
	m.pg.Exec(t, pgtest.Name(m.bank), `CREATE TABLE account (id int PRIMARY KEY, amount int)`)
	m.ch.Exec(t, "CREATE TABLE "+m.database+`.event (account Int32, amount Decimal(9, 2), at DateTime64(9, 'UTC'), note LowCardinality(Nullable(String)),
		dat_txn Nullable(UUID), dat_tx_time Nullable(Int64)) ENGINE = MergeTree ORDER BY account`)
	if err := connector(t, m.dsn, nil).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// want checks the rows of both stores.
func (m *mixed) want(t *testing.T, accounts, events string) {
	t.Helper()
	if got := strings.Join(m.pg.Strings(t, pgtest.Name(m.bank), `SELECT id::text FROM account ORDER BY id`), " "); got != accounts {
		t.Errorf("accounts %q, want %q", got, accounts)
	}
	got := strings.Join(m.ch.Strings(t, "SELECT account FROM "+m.database+".event ORDER BY account"), " ")
	if got != events {
		t.Errorf("events %q, want %q", got, events)
	}
	if n := m.ch.Int(t, "SELECT count() FROM "+m.database+".event WHERE dat_txn IS NULL OR NOT dat_tx_time > 0"); n != 0 {
		t.Errorf("%d events without their transaction", n)
	}
}

func (m *mixed) recover(t *testing.T) recovery.Report {
	t.Helper()
	return passOver(t, m.dsn)
}

const (
	debit = `INSERT INTO account (id, amount) VALUES ($1, $2)`
	event = `store:ch INSERT INTO event (account, amount, at, note) VALUES (?, ?, ?, ?)`
)

// One Commit over PostgreSQL and ClickHouse: both or neither.
func TestCommitBesideClickHouse(t *testing.T) {
	for _, protocol := range chtest.Protocols {
		t.Run(string(protocol), func(t *testing.T) {
			m := newMixed(t, chtest.Server(t), protocol)
			db := openDSN(t, m.dsn)
			at := time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)
			tx := begin(t, t.Context(), db)
			exec(t, tx, debit, 1, 10)
			exec(t, tx, event, 1, "10.50", at, nil)
			exec(t, tx, "SAVEPOINT s")
			exec(t, tx, debit, 2, 10)
			exec(t, tx, event, 2, "10.50", at, "gone")
			exec(t, tx, "ROLLBACK TO s")
			n, err := rhizodat.Append(t.Context(), tx, "ch", "event", []string{"account", "amount", "at"},
				rhizodat.CopyRows([][]any{{3, "1", at}, {4, "2", at}}))
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
			exec(t, tx, event, 9, "10.50", at, nil)
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			tx = begin(t, t.Context(), db)
			exec(t, tx, event, 9, "10.50", at, nil)
			if _, err := tx.ExecContext(t.Context(), debit, 1, 10); err == nil {
				t.Error("a second account 1 is taken")
			}
			if err := tx.Commit(); err == nil {
				t.Error("commit beside a failed statement = nil")
			}
			m.want(t, "1", "1 3 4")

			var account int
			var amount string
			var when time.Time
			var note sql.NullString
			row := db.QueryRowContext(rhizodat.WithStore(t.Context(), "ch"), "SELECT account, amount, at, note FROM event WHERE account = ?", 1)
			if err := row.Scan(&account, &amount, &when, &note); err != nil {
				t.Fatal(err)
			}
			if account != 1 || amount != "10.5" || !when.Equal(at) || note.Valid {
				t.Errorf("row %d %s %s %v", account, amount, when, note)
			}
		})
	}
}

// killer stops the ClickHouse server as soon as a unit is decided.
type killer struct{ kill func() }

func (k killer) Step(_ context.Context, e coordinator.StepEvent) {
	if e.Step == coordinator.S9 && e.Moment == coordinator.Before && e.Store == "" {
		k.kill()
	}
}

func (killer) Outcome(context.Context, coordinator.OutcomeEvent) {}

// The server dies between the decision and the insert: the unit is committed and
// pending, and recovery finishes it, once.
func TestClickHouseDownAfterDecision(t *testing.T) {
	ch := chtest.Own(t, "")
	m := newMixed(t, ch, chtest.Native, "finish_timeout=300ms")
	cfg, err := rhizodat.ParseDSN(m.dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Observer = killer{kill: func() { ch.Kill(t) }}
	c, err := rhizodat.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	tx := begin(t, t.Context(), db)
	exec(t, tx, debit, 1, 10)
	exec(t, tx, event, 1, "10.50", time.Now(), "x")
	err = tx.Commit()
	pending, ok := errors.AsType[*rhizodat.CommittedPending](err)
	if !ok || len(pending.Stores) != 1 || pending.Stores[0] != "ch" {
		t.Fatalf("commit = %v, want pending in ch", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if report := m.recover(t); report.Pending == 0 {
		t.Errorf("recovery while the server is down: %+v", report)
	}
	ch.Start(t)
	for range 2 {
		m.recover(t)
		m.want(t, "1", "1")
	}
	found, err := connectorLookup(t, m.dsn, pending.DatTxn)
	if err != nil || found.Verdict != rhizodat.VerdictCommitted {
		t.Errorf("lookup = %v, %v", found.Verdict, err)
	}
}

func connectorLookup(t *testing.T, dsn string, txn rhizodat.TxnID) (rhizodat.Outcome, error) {
	t.Helper()
	return rhizodat.Lookup(t.Context(), openDSN(t, dsn), txn)
}

// With one store and no journal the driver is clickhouse-go: no marker, no table
// of ours.
func TestClickHouseAlone(t *testing.T) {
	ch := chtest.Server(t)
	for _, protocol := range chtest.Protocols {
		database := ch.Database(t, "alone")
		db := openDSN(t, "ch="+ch.DSN(protocol, database))
		ctx := t.Context()
		for _, query := range []string{
			"CREATE TABLE plain (k UInt64, s String) ENGINE = MergeTree ORDER BY k",
			"INSERT INTO plain VALUES (1, 'a'), (2, 'b')",
		} {
			if _, err := db.ExecContext(ctx, query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		tx := begin(t, ctx, db)
		st, err := tx.PrepareContext(ctx, "INSERT INTO plain (k, s)")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = st.Close() }()
		for i := range 1000 {
			if _, err := st.ExecContext(ctx, i+3, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := ch.Ask(t, "SELECT count(), sum(k), (SELECT count() FROM system.tables WHERE database='"+database+"') FROM "+database+".plain"); got != "1002\t502503\t1" {
			t.Errorf("%s: rows, sum, tables: %q", protocol, got)
		}
	}
}

// A full disk is found before the decision, where it is asked for.
func TestClickHouseMinFree(t *testing.T) {
	ch := chtest.Own(t, fmt.Sprintf(`<storage_configuration><disks>
		<small><type>local</type><path>DIR/small/</path><keep_free_space_bytes>%d</keep_free_space_bytes></small></disks>
		<policies><small><volumes><main><disk>small</disk></main></volumes></small></policies></storage_configuration>`, 1<<50))
	m := newMixed(t, ch, chtest.Native, "min_free=1MiB")
	m.ch.Exec(t, "CREATE TABLE "+m.database+".tight (k Int32, dat_txn UUID, dat_tx_time Int64) ENGINE = MergeTree ORDER BY k SETTINGS storage_policy='small'")
	db := openDSN(t, m.dsn)
	tx := begin(t, t.Context(), db)
	exec(t, tx, debit, 1, 10)
	exec(t, tx, "store:ch INSERT INTO tight (k) VALUES (1)")
	err := tx.Commit()
	full, ok := errors.AsType[*rhizodat.StoreFull](err)
	if !ok || full.Store != "ch" || full.Free != 0 || full.Need != 1<<20 {
		t.Errorf("commit = %v, want store full", err)
	}
	tx = begin(t, t.Context(), db)
	exec(t, tx, debit, 2, 10)
	exec(t, tx, event, 2, "1", time.Now(), nil)
	if err := tx.Commit(); err != nil {
		t.Errorf("commit to a table of another disk = %v", err)
	}
	m.want(t, "2", "2")
}

// init makes the tables of ours, and doctor knows what is missing.
func TestClickHouseDoctor(t *testing.T) {
	m := newMixed(t, chtest.Server(t), chtest.HTTP)
	m.ch.Exec(t, "CREATE TABLE "+m.database+".bare (k Int32) ENGINE = MergeTree ORDER BY k")
	m.ch.Exec(t, "CREATE TABLE "+m.database+".sums (k Int32, dat_txn UUID, dat_tx_time Int64) ENGINE = SummingMergeTree ORDER BY k")
	w := worker(t, m.dsn)
	if text := w.InstallSQL(); !strings.Contains(text, m.database+"`.`dat_applied`") {
		t.Errorf("SQL for a DBA lacks the marker table:\n%s", text)
	}
	found := doctor(t, w)
	for _, want := range []string{
		"ch: ok: version: ClickHouse", "ch: ok: marker table", "ch: note: tables: without dat_txn, so that no unit can write to them: bare",
		"ch: warning: table sums: table " + m.database + ".sums has the engine SummingMergeTree", "ch: ok: identity: ch:", "no index on dat_txn",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("doctor does not say %q:\n%s", want, found)
		}
	}
	m.ch.Exec(t, "DROP TABLE "+m.database+".dat_applied SYNC")
	if found = doctor(t, w); !strings.Contains(found, "ch: error: marker table: "+m.database+".dat_applied does not exist (run rhizorecover init)") {
		t.Errorf("doctor does not miss the marker table:\n%s", found)
	}
	tx := begin(t, t.Context(), openDSN(t, m.dsn))
	exec(t, tx, debit, 1, 10)
	if _, err := tx.ExecContext(t.Context(), event, 1, "1", time.Now(), nil); err == nil {
		err = tx.Commit()
		if !errors.Is(err, branches.ErrNotInstalled) {
			t.Errorf("commit without a marker table = %v", err)
		}
	} else if !errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("statement without a marker table = %v", err)
	}
}
