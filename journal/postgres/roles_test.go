package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/postgres"
)

// grants is what docs/journal.md tells a DBA to give the journal's role.
const grants = `GRANT USAGE ON SCHEMA public TO %[1]s;
	GRANT SELECT, INSERT, UPDATE, DELETE ON dat_journal TO %[1]s;
	GRANT SELECT, INSERT, UPDATE ON dat_store TO %[1]s;
	GRANT SELECT, UPDATE ON dat_journal_meta TO %[1]s;
	GRANT SELECT ON dat_fence TO %[1]s;
	GRANT SELECT, INSERT, UPDATE ON dat_lease TO %[1]s;
	GRANT SELECT, INSERT, UPDATE, DELETE ON dat_step TO %[1]s;`

// worker makes a login with the documented grants and nothing else.
func worker(t *testing.T, c *pgtest.Cluster, dsn string) (role pgtest.Role, as string) {
	t.Helper()
	role = c.Role(t, "worker", "")
	c.Exec(t, dsn, strings.ReplaceAll(grants, "%[1]s", pgx.Identifier{role.Name}.Sanitize()))
	return role, c.DSNAs(role, dsn)
}

// A role's defaults must not change what a transaction of the journal means.
func TestRoleDefaultsDoNotMatter(t *testing.T) {
	cluster := pgtest.Server(t)
	_, dsn := installed(t, cluster)
	role, as := worker(t, cluster, dsn)
	for _, setting := range []string{
		"default_transaction_isolation = 'repeatable read'",
		"default_transaction_isolation = 'serializable'",
		"default_transaction_read_only = on",
		"default_transaction_deferrable = on",
		"synchronous_commit = off",
		"client_min_messages = error",
		"search_path = pg_temp, pg_catalog, public",
		"standard_conforming_strings = off",
		"DateStyle = 'German'",
		"extra_float_digits = 0",
		"plan_cache_mode = force_generic_plan",
		"statement_timeout = '10s'",
	} {
		t.Run(setting, func(t *testing.T) {
			cluster.Exec(t, "", "ALTER ROLE "+role.Name+" SET "+setting)
			defer cluster.Exec(t, "", "ALTER ROLE "+role.Name+" RESET ALL")
			j := open(t, with(as, "schema", "public"), journal.Options{})
			a, b := session(t, j), session(t, j)
			rec := active(t, a)
			racing := make(chan error, 2)
			for _, s := range []journal.Session{a, b} {
				go func() { racing <- s.Decide(t.Context(), decision(rec)) }()
			}
			won := 0
			for range 2 {
				err := <-racing
				if err == nil {
					won++
				} else if _, refused := errors.AsType[*journal.Conflict](err); !refused {
					t.Errorf("a lost compare-and-set came as %v", err)
				}
			}
			if won != 1 {
				t.Errorf("%d won", won)
			}
			if state, err := a.Abort(t.Context(), newTxn(t), journal.Forced); err != nil || state != journal.StateAborted {
				t.Errorf("Abort: %s, %v", state, err)
			}
			if n, err := j.Finish(t.Context(), []branches.TxnID{rec.Txn}); err != nil || n != 1 {
				t.Errorf("Finish: %d, %v", n, err)
			}
		})
	}
}

// A lost compare-and-set is a conflict and never 40001, also when the other
// writer commits between this one's statement and its answer.
func TestWaitingWriterSeesWhatWasCommitted(t *testing.T) {
	cluster := pgtest.Server(t)
	_, dsn := installed(t, cluster)
	role, as := worker(t, cluster, dsn)
	cluster.Exec(t, "", "ALTER ROLE "+role.Name+" SET default_transaction_isolation = 'serializable'")
	s := session(t, open(t, as, journal.Options{}))
	rec := active(t, s)
	other := lostBackend(t, dsn, `UPDATE dat_journal SET state = 'ABORTED' WHERE dat_txn = $1`, rec.Txn)
	decided := make(chan error, 1)
	go func() { decided <- s.Decide(t.Context(), decision(rec)) }()
	await.Until(t, "Decide waits for the row", func() bool {
		return cluster.Int(t, dsn, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	})
	if _, err := other.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	conflict, ok := errors.AsType[*journal.Conflict](<-decided)
	if !ok || conflict.Found != journal.StateAborted {
		t.Fatalf("got %+v, want a conflict that found ABORTED", conflict)
	}
}

// A record hidden by a policy must never look like a record that is not there:
// the sweep rolls back what has none.
func TestRowLevelSecurityIsAnError(t *testing.T) {
	cluster := pgtest.Server(t)
	j, dsn := installed(t, cluster)
	rec := active(t, session(t, j))
	_, as := worker(t, cluster, dsn)
	cluster.Exec(t, dsn, "ALTER TABLE dat_journal ENABLE ROW LEVEL SECURITY")
	s := session(t, open(t, as, journal.Options{}))
	_, err := s.Read(t.Context(), rec.Txn)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "42501" {
		t.Fatalf("Read: %v, want 42501", err)
	}
}

// The tables are those of the schema that was fixed at the first connection.
func TestNamesStayWhereTheyWere(t *testing.T) {
	cluster := pgtest.Server(t)
	_, dsn := installed(t, cluster)
	connected := 0
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	j, err := postgres.Open("", postgres.Options{
		Options:    journal.Options{Places: 2},
		ConnConfig: config,
		AfterConnect: func(ctx context.Context, c *pgx.Conn) error {
			connected++
			if connected > 1 {
				_, err := c.Exec(ctx, `CREATE TEMP TABLE dat_journal (LIKE public.dat_journal); SET search_path = pg_temp`)
				return err
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	a, b := session(t, j), session(t, j)
	rec, other := active(t, a), active(t, b)
	expectState(t, a, other.Txn, journal.StateActive)
	expectState(t, b, rec.Txn, journal.StateActive)
	if connected != 2 {
		t.Fatalf("%d connections were made, want 2", connected)
	}
}

func TestSchemas(t *testing.T) {
	cluster := pgtest.Server(t)
	dsn := cluster.Database(t, "journal")
	one := open(t, with(dsn, "schema", `it's "x"`), journal.Options{})
	two := open(t, with(dsn, "search_path", `nowhere, "Zwei", public`), journal.Options{})
	cluster.Exec(t, dsn, `CREATE SCHEMA "Zwei"`)
	install(t, one)
	install(t, two)
	rec := active(t, session(t, one))
	if _, err := session(t, two).Read(t.Context(), rec.Txn); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("two schemas share records: %v", err)
	}
	for j, want := range map[journal.Journal]string{one: `/it's "x"`, two: "/Zwei"} {
		id, err := j.(journal.Registry).Identify(t.Context())
		if err != nil || id.Moved() || !strings.HasSuffix(string(id.Here), want) {
			t.Errorf("Identify: %+v, %v, want a place that ends with %s", id, err, want)
		}
	}
	none := open(t, with(dsn, "search_path", "nowhere"), journal.Options{})
	if err := none.Harden(t.Context()); err == nil || !strings.Contains(err.Error(), "schema=") {
		t.Errorf("no schema at all: %v, want an error that names schema=", err)
	}
}

// A physical copy says the same of itself as the first, but a role that may
// not ask gets a place that says so.
func TestPlaceWithoutTheRightToAsk(t *testing.T) {
	cluster := pgtest.Server(t)
	j, dsn := installed(t, cluster)
	before, err := j.(branches.Placer).Place(t.Context())
	if err != nil || !strings.HasPrefix(string(before), "pg:") || !strings.HasSuffix(string(before), "/"+pgtest.Name(dsn)+"/public") {
		t.Fatalf("Place: %s, %v", before, err)
	}
	_, as := worker(t, cluster, dsn)
	cluster.Exec(t, dsn, "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_control_system() FROM PUBLIC")
	place, err := open(t, as, journal.Options{}).(branches.Placer).Place(t.Context())
	if want := branches.Place("pg:unknown/" + pgtest.Name(dsn) + "/public"); err != nil || place != want {
		t.Errorf("Place: %s, %v, want %s", place, err, want)
	}
}

// publicFenceKey is format: all programs of a deployment meet at it
// (docs/journal.md).
const publicFenceKey int64 = 2282335351952300932

// S4 stamps itself above the read fence, whatever the caller's clock says.
func TestFence(t *testing.T) {
	cluster := pgtest.Server(t)
	j, dsn := installed(t, cluster)
	s := session(t, j)
	rec := active(t, s)
	fence := rec.TxTime + 1000
	cluster.Int(t, dsn, "SELECT setval('dat_fence', $1)", int64(fence))
	got := journal.Record{Txn: newTxn(t), TxTime: rec.TxTime}
	if err := s.Create(t.Context(), &got); err != nil || got.TxTime != fence+1 {
		t.Errorf("S4 stamped %v, %v, want %v", got.TxTime, err, fence+1)
	}
	if stored, err := s.Read(t.Context(), got.Txn); err != nil || stored.TxTime != fence+1 {
		t.Errorf("the record holds %v, %v", stored.TxTime, err)
	}
	high, err := j.(journal.Timekeeper).HighWater(t.Context())
	if err != nil || high < fence {
		t.Errorf("HighWater: %v, %v, want no less than the fence", high, err)
	}

	// A reader that is raising the fence makes S4 wait, and S4 then sees it.
	reader, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(t.Context())
	lateFence := fence + 5000
	if _, err := reader.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), "SELECT pg_advisory_xact_lock($1)", publicFenceKey); err != nil {
		t.Fatal(err)
	}
	late := journal.Record{Txn: newTxn(t), TxTime: rec.TxTime}
	created := make(chan error, 1)
	go func() { created <- s.Create(t.Context(), &late) }()
	await.Until(t, "S4 waits for the reader", func() bool {
		return cluster.Int(t, dsn, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`) == 1
	})
	if _, err := reader.Exec(t.Context(), "SELECT setval('dat_fence', $1)", int64(lateFence)); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-created; err != nil || late.TxTime != lateFence+1 {
		t.Errorf("S4 stamped %v, %v, want %v", late.TxTime, err, lateFence+1)
	}
}
