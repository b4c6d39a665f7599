package postgres_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
)

// describe lists what init made, in words that two ways of making it share.
const describe = `SELECT format('%s.%s %s null=%s default=%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
		regexp_replace(coalesce(pg_get_expr(d.adbin, d.adrelid), ''), 'public\.', ''))
	FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
	WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND c.relkind IN ('r', 'S')
	UNION ALL SELECT regexp_replace(pg_get_indexdef(indexrelid), 'public\.', '') FROM pg_index
	JOIN pg_class c ON c.oid = indrelid WHERE c.relnamespace = 'public'::regnamespace
	ORDER BY 1`

// TestUpgrade upgrades a stored dump of every earlier layout.
func TestUpgrade(t *testing.T) {
	cluster := pgtest.Server(t)
	_, newest := installed(t, cluster)
	dumps, err := os.ReadDir("testdata")
	if err != nil || len(dumps) == 0 {
		t.Fatalf("no dumps: %v", err)
	}
	for i, file := range dumps {
		t.Run(file.Name(), func(t *testing.T) {
			dump, err := os.ReadFile("testdata/" + file.Name())
			if err != nil {
				t.Fatal(err)
			}
			dsn := cluster.Database(t, "journal")
			cluster.Exec(t, dsn, string(dump))
			j := open(t, dsn, journal.Options{})

			layout, ok := errors.AsType[*journal.Layout](j.Harden(t.Context()))
			if !ok || layout.Found != i+1 || layout.Known != 3 {
				t.Fatalf("before the upgrade: %+v, want layout %d found and 3 known", layout, i+1)
			}
			install(t, j)
			install(t, j)
			if diff := cmp.Diff(cluster.Strings(t, newest, describe), cluster.Strings(t, dsn, describe)); diff != "" {
				t.Errorf("upgraded tables differ from new ones (-new +upgraded):\n%s", diff)
			}
			testUpgraded(t, cluster, dsn, j)
		})
	}
}

// The dump holds one record of each state, as a worker of the seeds wrote them.
func testUpgraded(t *testing.T, cluster *pgtest.Cluster, dsn string, j journal.Journal) {
	t.Helper()
	var states []journal.State
	err := j.Scan(t.Context(), journal.Filter{States: journal.States}, func(rec journal.Record) error {
		states = append(states, rec.State)
		if len(rec.Branches) != 2 || rec.Branches[0].GID != branches.NewGID(rec.Txn, "pg") || !rec.Branches[0].TwoPhase {
			t.Errorf("record %s has branches %+v", rec.Txn, rec.Branches)
		}
		return nil
	})
	if err != nil || !slices.Equal(states, journal.States) {
		t.Errorf("Scan: %v, %v", states, err)
	}
	id, err := j.(journal.Registry).Identify(t.Context())
	if err != nil || id.Layout != 3 || id.ID == "" || id.Moved() {
		t.Errorf("Identify: %+v, %v", id, err)
	}
	// A worker that knows only the seeds' columns works on.
	s, txn := session(t, j), newTxn(t)
	cluster.Exec(t, dsn, `INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms)
		VALUES ('`+txn.String()+`', 'ACTIVE', NULL, '[]', 1, 1)`)
	if err := s.Decide(t.Context(), journal.Decision{Txn: txn, TxTime: 7, WithPrepare: true}); err != nil {
		t.Error(err)
	}
	cluster.Exec(t, dsn, `UPDATE dat_journal SET state = 'DONE', updated_ms = 2 WHERE dat_txn = '`+txn.String()+`' AND state = 'COMMITTED'`)
	expectState(t, s, txn, journal.StateDone)
}

// A DBA's way and init's way make the same tables, and either may come second.
func TestInstallSQL(t *testing.T) {
	cluster := pgtest.Server(t)
	_, byInit := installed(t, cluster)
	for _, schema := range []string{"", "public"} {
		dsn := cluster.Database(t, "journal")
		location := dsn
		if schema != "" {
			location = with(dsn, "schema", schema)
		}
		j := open(t, location, journal.Options{})
		text := j.(branches.Installer).InstallSQL()
		cluster.Exec(t, dsn, text)
		cluster.Exec(t, dsn, text)
		if diff := cmp.Diff(cluster.Strings(t, byInit, describe), cluster.Strings(t, dsn, describe)); diff != "" {
			t.Errorf("schema %q (-init +DBA):\n%s", schema, diff)
		}
		id, err := j.(journal.Registry).Identify(t.Context())
		if err != nil || id.Moved() || id.ID == "" {
			t.Errorf("Identify: %+v, %v", id, err)
		}
		install(t, j)
		if again, err := j.(journal.Registry).Identify(t.Context()); err != nil || again != id {
			t.Errorf("init after the DBA: %+v, %v, want %+v", again, err, id)
		}
	}
}

func TestLayoutNewerThanTheProgram(t *testing.T) {
	cluster := pgtest.Server(t)
	old, dsn := installed(t, cluster)
	running := session(t, old)
	rec := active(t, running)
	cluster.Exec(t, dsn, "UPDATE dat_journal_meta SET layout = 4")
	started := open(t, dsn, journal.Options{})
	for name, err := range map[string]error{
		"Harden":  started.Harden(t.Context()),
		"Install": started.(branches.Installer).Install(t.Context()),
	} {
		layout, ok := errors.AsType[*journal.Layout](err)
		if !ok || layout.Found != 4 || layout.Known != 3 {
			t.Errorf("%s: %v, want *Layout with both numbers", name, err)
		} else if text := err.Error(); !strings.Contains(text, "4") || !strings.Contains(text, "3") || !strings.Contains(text, "newer") {
			t.Errorf("%s does not say what to do: %s", name, text)
		}
	}
	if got := cluster.Int(t, dsn, "SELECT layout FROM dat_journal_meta"); got != 4 {
		t.Errorf("an old program set the layout to %d", got)
	}
	// A program that was running before the upgrade works on.
	if err := running.Decide(t.Context(), decision(rec)); err != nil {
		t.Error(err)
	}
}

func TestNotInstalled(t *testing.T) {
	cluster := pgtest.Server(t)
	dsn := cluster.Database(t, "journal")
	for _, location := range []string{dsn, with(dsn, "schema", "nowhere")} {
		j := open(t, location, journal.Options{})
		s := session(t, j)
		if err := s.Create(t.Context(), &journal.Record{Txn: newTxn(t)}); !errors.Is(err, branches.ErrNotInstalled) {
			t.Errorf("Create: %v", err)
		}
		if err := j.Harden(t.Context()); !errors.Is(err, branches.ErrNotInstalled) {
			t.Errorf("Harden: %v", err)
		}
		if _, err := j.(journal.Registry).Identify(t.Context()); !errors.Is(err, branches.ErrNotInstalled) {
			t.Errorf("Identify: %v", err)
		}
		if kind := j.(branches.Classifier).Classify(branches.ErrNotInstalled); kind != branches.Permanent {
			t.Errorf("Classify: %v", kind)
		}
		install(t, j)
		active(t, s)
	}
	// Dropped under a running program.
	j, gone := installed(t, cluster)
	s := session(t, j)
	active(t, s)
	cluster.Exec(t, gone, "DROP TABLE dat_journal")
	if err := s.Create(t.Context(), &journal.Record{Txn: newTxn(t)}); !errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("Create: %v", err)
	}
}

// A record that cannot be read is named and does not hide the others.
func TestDamagedRecord(t *testing.T) {
	cluster := pgtest.Server(t)
	j, dsn := installed(t, cluster)
	s := session(t, j)
	var txns []branches.TxnID
	for range 4 {
		txns = append(txns, active(t, s).Txn)
	}
	cluster.Exec(t, dsn, `UPDATE dat_journal SET branches = '[{"store"' WHERE dat_txn = '`+txns[1].String()+`'`)
	cluster.Exec(t, dsn, `UPDATE dat_journal SET note = '7' WHERE dat_txn = '`+txns[2].String()+`'`)
	var listed []branches.TxnID
	err := j.Scan(t.Context(), journal.Filter{States: journal.States}, func(rec journal.Record) error {
		listed = append(listed, rec.Txn)
		return nil
	})
	if want := []branches.TxnID{txns[0], txns[3]}; !slices.Equal(listed, want) {
		t.Errorf("Scan listed %v, want %v", listed, want)
	}
	damaged, ok := errors.AsType[*journal.Damaged](err)
	if !ok || damaged.Text != txns[1].String() || !strings.Contains(err.Error(), txns[2].String()) {
		t.Errorf("Scan: %v, want both damaged records by name", err)
	}
	if _, err := s.Read(t.Context(), txns[1]); !errors.As(err, &damaged) {
		t.Errorf("Read: %v, want *Damaged", err)
	}
	// It can be aborted all the same: its branches are swept by their gids.
	if state, err := s.Abort(t.Context(), txns[1], journal.Forced); err != nil || state != journal.StateAborted {
		t.Errorf("Abort: %s, %v", state, err)
	}
}

// Listings that workers repeat must not read the whole table.
func TestListingsUseIndexes(t *testing.T) {
	cluster := pgtest.Server(t)
	_, dsn := installed(t, cluster)
	cluster.Exec(t, dsn, `INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms)
		SELECT gen_random_uuid(), CASE WHEN n % 1000 = 0 THEN 'PREPARED' ELSE 'DONE' END, n, '[]', n, n FROM generate_series(1, 20000) n;
		ANALYZE dat_journal`)
	for _, query := range []string{
		`SELECT 1 FROM dat_journal WHERE state IN ('ACTIVE', 'PREPARED') AND updated_ms < 100`,
		`SELECT 1 FROM dat_journal WHERE state IN ('ACTIVE', 'PREPARED', 'COMMITTED') ORDER BY dat_txn LIMIT 500`,
		`SELECT 1 FROM dat_journal WHERE state IN ('COMMITTED', 'DONE') AND dat_tx_time > 19990`,
		`SELECT 1 FROM dat_journal WHERE state IN ('DONE', 'ABORTED') AND updated_ms < 1000 ORDER BY updated_ms, dat_txn LIMIT 10`,
		`SELECT max(dat_tx_time) FROM dat_journal`,
	} {
		if plan := strings.Join(cluster.Strings(t, dsn, "EXPLAIN "+query), "\n"); strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s\n%s", query, plan)
		}
	}
}
