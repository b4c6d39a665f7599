package postgres_test

import (
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

// lazy is a server whose unforced writes stay unflushed for as long as it can,
// so that a test sees the difference.
func lazy(t *testing.T, settings ...string) *pgtest.Cluster {
	t.Helper()
	return pgtest.Own(t, append([]string{
		"wal_writer_delay=10s", "wal_writer_flush_after=1GB", "autovacuum=off",
		"bgwriter_delay=10s", "checkpoint_timeout=1h",
	}, settings...)...)
}

// crashing is a server that is killed with its unflushed writes, and what must
// be there afterwards.
type crashing struct {
	*pgtest.Cluster
	session  journal.Session
	expected []expectation
	lost     int // unforced writes that a crash took
}

type expectation struct {
	name string
	txn  branches.TxnID
	want journal.State
}

// mayBeLost is the state of a record that a crash took.
const mayBeLost journal.State = ""

func (c *crashing) expect(name string, txn branches.TxnID, want journal.State) {
	c.expected = append(c.expected, expectation{name, txn, want})
}

func (c *crashing) crash(t *testing.T) {
	t.Helper()
	c.Kill(t)
	c.Start(t)
	// The first call after it may still meet the dead connection.
	for range 2 {
		if _, err := c.session.Read(t.Context(), newTxn(t)); errors.Is(err, journal.ErrNotFound) {
			break
		}
	}
	for _, e := range c.expected {
		rec, err := c.session.Read(t.Context(), e.txn)
		if errors.Is(err, journal.ErrNotFound) {
			err = nil
		}
		if e.want == mayBeLost && err == nil {
			if rec.State == mayBeLost {
				c.lost++
			}
			continue // the server may have flushed it by itself
		}
		if err != nil || rec.State != e.want {
			t.Errorf("%s: after the crash it is %q, %v, want %q", e.name, rec.State, err, e.want)
		}
	}
	c.expected = nil
}

// TestCrash kills the server with its unflushed writes: what was acknowledged
// as forced is there, and what was visible before a forced write is there too
// (J2).
func TestCrash(t *testing.T) {
	c := &crashing{Cluster: lazy(t)}
	j, dsn := installed(t, c.Cluster)
	s := session(t, j)
	c.session = s

	decided := active(t, s)
	if err := s.Decide(t.Context(), decision(decided)); err != nil {
		t.Fatal(err)
	}
	c.expect("S7", decided.Txn, journal.StateCommitted)
	behind := active(t, s) // the flush of S7
	c.expect("an unforced S4", behind.Txn, mayBeLost)
	c.crash(t)

	forced := newTxn(t)
	if _, err := s.Abort(t.Context(), forced, journal.Forced); err != nil {
		t.Fatal(err)
	}
	c.expect("a forced ABORTED", forced, journal.StateAborted)
	unforced := newTxn(t)
	if _, err := s.Abort(t.Context(), unforced, journal.Unforced); err != nil {
		t.Fatal(err)
	}
	c.expect("an unforced ABORTED", unforced, mayBeLost)
	c.crash(t)

	found := newTxn(t)
	for _, durability := range []journal.Durability{journal.Unforced, journal.Forced} {
		if state, err := s.Abort(t.Context(), found, durability); err != nil || state != journal.StateAborted {
			t.Fatal(state, err)
		}
	}
	c.expect("an ABORTED that a forced Abort found", found, journal.StateAborted)
	c.crash(t)

	// COMMITTED that is visible and not durable: as a fail-over or another
	// program may leave it.
	visible := active(t, s)
	async(t, dsn, `UPDATE dat_journal SET state = 'COMMITTED' WHERE dat_txn = '`+visible.Txn.String()+`'`)
	if err := j.Harden(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.expect("what Harden found", visible.Txn, journal.StateCommitted)
	c.crash(t)

	late := active(t, s)
	async(t, dsn, `UPDATE dat_journal SET state = 'COMMITTED' WHERE dat_txn = '`+late.Txn.String()+`'`)
	if state, err := s.Abort(t.Context(), late.Txn, journal.Forced); err != nil || state != journal.StateCommitted {
		t.Fatal(state, err)
	}
	c.expect("a COMMITTED that a forced Abort found", late.Txn, journal.StateCommitted)
	c.crash(t)

	done := active(t, s)
	async(t, dsn, `UPDATE dat_journal SET state = 'COMMITTED' WHERE dat_txn = '`+done.Txn.String()+`'`)
	if n, err := j.Finish(t.Context(), []branches.TxnID{done.Txn}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	c.expect("DONE, which is not forced", done.Txn, mayBeLost)
	c.crash(t)
	if c.lost == 0 {
		t.Error("no crash took an unforced write: they tested nothing")
	}
}

func async(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), with(dsn, "synchronous_commit", "off"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// Where the server stops waiting for its standby the tag is the ordinary one,
// and the answer is void.
func TestUnconfirmedByTheStandby(t *testing.T) {
	cluster := lazy(t)
	_, dsn := installed(t, cluster)
	cluster.Exec(t, "", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	cluster.Exec(t, "", "SELECT pg_reload_conf()")
	defer func() {
		cluster.Exec(t, "", "ALTER SYSTEM RESET synchronous_standby_names")
		cluster.Exec(t, "", "SELECT pg_reload_conf()")
	}()
	// The notice arrives even where the role filters it out, and the caller's
	// own handler still gets it.
	config, err := pgx.ParseConfig(with(dsn, "client_min_messages", "error"))
	if err != nil {
		t.Fatal(err)
	}
	notices := 0
	config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { notices++ }
	j, err := postgres.Open("", postgres.Options{ConnConfig: config})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	s := session(t, j)
	rec := active(t, s) // an unforced write does not wait

	decided := make(chan error, 1)
	go func() { decided <- s.Decide(t.Context(), decision(rec)) }()
	cancelSyncWait(t, cluster)
	err = <-decided
	if _, refused := errors.AsType[*journal.Conflict](err); err == nil || refused || !strings.Contains(err.Error(), "standby") {
		t.Errorf("Decide: %v, want an error that is no *Conflict and names the standby", err)
	}
	if notices != 1 {
		t.Errorf("the caller's notice handler was called %d times, want 1", notices)
	}
	if kind := j.(branches.Classifier).Classify(err); kind != branches.Transient {
		t.Errorf("Classify: %v, want transient", kind)
	}
	// The connection is sound, and the next answer stands on its own.
	expectState(t, s, rec.Txn, journal.StateCommitted)
}

func cancelSyncWait(t *testing.T, cluster *pgtest.Cluster) {
	t.Helper()
	await.Until(t, "S7 waits for the standby", func() bool {
		return len(cluster.Strings(t, "", `SELECT pg_cancel_backend(pid)::text FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)) == 1
	})
}
