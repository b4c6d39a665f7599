package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/cutproxy"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
)

// A request that was sent and never answered may have taken effect, and its
// place in the journal must be usable for finding out.
func TestLostReplies(t *testing.T) {
	cluster := pgtest.Server(t)
	direct, dsn := installed(t, cluster)
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		for _, tc := range []struct {
			name    string
			arrives bool
		}{{"after it was sent", true}, {"before it was sent", false}} {
			t.Run(mode+"/"+tc.name, func(t *testing.T) {
				proxy := cutproxy.New(t, cluster.Addr())
				j := open(t, with(proxy.DSN(dsn), "default_query_exec_mode", mode), journal.Options{Places: 1})
				write := cutproxy.Contains("synchronous_commit") // in the request of every write
				lose := func() {
					if tc.arrives {
						proxy.CutAfter(write, cutproxy.Times(1), cutproxy.HoldServer())
					} else {
						proxy.CutBefore(write, cutproxy.Times(1))
					}
				}
				s := session(t, j)
				testLostReplies(t, s, session(t, direct), lose, tc.arrives)
			})
		}
	}
}

func testLostReplies(t *testing.T, s, witness journal.Session, lose func(), arrives bool) {
	t.Helper()
	// S4
	rec := active(t, s)
	lost := journal.Record{Txn: newTxn(t)}
	lose()
	expectUnknown(t, "Create", s.Create(t.Context(), &lost))
	if state, err := s.Abort(t.Context(), lost.Txn, journal.Forced); err != nil || state != journal.StateAborted {
		t.Fatalf("Abort after a lost S4: %s, %v", state, err)
	}
	expectState(t, witness, lost.Txn, journal.StateAborted)

	// S6 and S7
	lose()
	expectUnknown(t, "Decide", s.Decide(t.Context(), decision(rec)))
	want := journal.StateAborted
	if arrives {
		want = journal.StateCommitted
		awaitState(t, witness, rec.Txn, want)
	}
	if state, err := s.Abort(t.Context(), rec.Txn, journal.Forced); err != nil || state != want {
		t.Fatalf("Abort after a lost S7: %s, %v, want %s", state, err, want)
	}
	expectState(t, witness, rec.Txn, want)

	// ABORTED itself
	rec = active(t, s)
	lose()
	_, err := s.Abort(t.Context(), rec.Txn, journal.Forced)
	expectUnknown(t, "Abort", err)
	if arrives {
		awaitState(t, witness, rec.Txn, journal.StateAborted)
	}
	err = s.Decide(t.Context(), decision(rec))
	conflict, refused := errors.AsType[*journal.Conflict](err)
	if arrives && (!refused || conflict.Found != journal.StateAborted) || !arrives && err != nil {
		t.Fatalf("Decide after a lost ABORTED that arrived (%t): %v", arrives, err)
	}
}

// awaitState waits for a request that was sent: on a busy machine what is sent
// after it may overtake it, and rightly wins.
func awaitState(t *testing.T, witness journal.Session, txn branches.TxnID, want journal.State) {
	t.Helper()
	await.Until(t, "the lost request is "+string(want), func() bool {
		rec, err := witness.Read(t.Context(), txn)
		return err == nil && rec.State == want
	})
}

func expectUnknown(t *testing.T, doing string, err error) {
	t.Helper()
	if _, refused := errors.AsType[*journal.Conflict](err); err == nil || refused {
		t.Fatalf("%s whose reply was lost: %v, want an error that is no *Conflict", doing, err)
	}
}

// The end of a write's transaction can fail after its statements were answered:
// that is no acknowledgement.
func TestRefusedAtTheEnd(t *testing.T) {
	cluster := pgtest.Server(t)
	direct, dsn := installed(t, cluster)
	cluster.Exec(t, dsn, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'refused at the end'; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER INSERT OR UPDATE ON dat_journal DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION refuse()`)
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			s := session(t, open(t, with(dsn, "default_query_exec_mode", mode), journal.Options{Places: 1}))
			rec := journal.Record{Txn: newTxn(t)}
			if err := s.Create(t.Context(), &rec); err == nil || !strings.Contains(err.Error(), "refused at the end") {
				t.Errorf("Create: %v, want the error of its COMMIT", err)
			}
			if rec, err := session(t, direct).Read(t.Context(), rec.Txn); !errors.Is(err, journal.ErrNotFound) {
				t.Errorf("the journal holds %+v, %v", rec, err)
			}
			if _, err := s.Abort(t.Context(), newTxn(t), journal.Forced); err == nil {
				t.Error("ABORTED was acknowledged and its transaction refused")
			}
		})
	}
}

// The second delivery of one S7 is refused, and what it finds is COMMITTED.
func TestDecideDeliveredTwice(t *testing.T) {
	j, _ := installed(t, pgtest.Server(t))
	s := session(t, j)
	rec := active(t, s)
	if err := s.Decide(t.Context(), decision(rec)); err != nil {
		t.Fatal(err)
	}
	err := s.Decide(t.Context(), decision(rec))
	conflict, ok := errors.AsType[*journal.Conflict](err)
	if !ok || conflict.Found != journal.StateCommitted {
		t.Fatalf("got %v, want a conflict that found COMMITTED", err)
	}
}

// Abort proves its answer by waiting for the backend of a lost request, which
// may still be committing.
func TestAbortWaitsForALostBackend(t *testing.T) {
	const (
		lostS4 = `INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms)
			VALUES ($1, 'ACTIVE', 1, '[]', 1, 1)`
		lostS7 = `UPDATE dat_journal SET state = 'COMMITTED' WHERE dat_txn = $1 AND state IN ('ACTIVE', 'PREPARED')`
	)
	for _, tc := range []struct {
		name, sql, end string
		exists         bool
		want           journal.State
	}{
		{"S4 that commits", lostS4, "COMMIT", false, journal.StateAborted},
		{"S4 that dies", lostS4, "ROLLBACK", false, journal.StateAborted},
		{"S7 that commits", lostS7, "COMMIT", true, journal.StateCommitted},
		{"S7 that dies", lostS7, "ROLLBACK", true, journal.StateAborted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster := pgtest.Server(t)
			j, dsn := installed(t, cluster)
			s := session(t, j)
			txn := newTxn(t)
			if tc.exists {
				txn = active(t, s).Txn
			}
			lost := lostBackend(t, dsn, tc.sql, txn)

			type answer struct {
				state journal.State
				err   error
			}
			answered := make(chan answer, 1)
			go func() {
				state, err := s.Abort(t.Context(), txn, journal.Forced)
				answered <- answer{state, err}
			}()
			await.Until(t, "Abort waits for the lost backend", func() bool {
				return cluster.Int(t, dsn, `SELECT count(*) FROM pg_stat_activity
					WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
			})
			select {
			case a := <-answered:
				t.Fatalf("Abort answered %s, %v while the lost backend was still committing", a.state, a.err)
			default:
			}
			if _, err := lost.Exec(t.Context(), tc.end); err != nil {
				t.Fatal(err)
			}
			if a := <-answered; a.err != nil || a.state != tc.want {
				t.Fatalf("Abort answered %s, %v, want %s", a.state, a.err, tc.want)
			}
			expectState(t, s, txn, tc.want)
		})
	}
}

// lostBackend has a statement in an open transaction.
func lostBackend(t *testing.T, dsn, sql string, txn branches.TxnID) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	tag, err := conn.Exec(t.Context(), sql, txn.String())
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%s: %v, %v", sql, tag, err)
	}
	return conn
}
