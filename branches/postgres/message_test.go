package postgres_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
)

// The driver's own statements are prepared once for a session. An application
// that discards them loses nothing where it says so, and where that goes unseen one
// unit, which is worth re-running.
func TestDiscardedStatements(t *testing.T) {
	p := newPlace(t)
	session := connect(t, p.open(postgres.Options{}))
	store := p.open(postgres.Options{})

	warm := begin(t, session, branches.BeginOptions{Shared: true})
	warm.exec("INSERT INTO t VALUES ('warm', 1)")
	if err := warm.prepared().Finish(t.Context(), warm.ref()); err != nil {
		t.Fatal(err)
	}

	seen := begin(t, session, branches.BeginOptions{Shared: true})
	seen.exec("INSERT INTO t VALUES ('seen', 1)")
	seen.exec("DEALLOCATE ALL") // as a statement of its own it is noticed
	if err := seen.prepared().Finish(t.Context(), seen.ref()); err != nil {
		t.Fatal(err)
	}

	session = connect(t, store)
	warm = begin(t, session, branches.BeginOptions{Shared: true})
	warm.exec("INSERT INTO t VALUES ('warm again', 1)")
	if err := warm.prepared().Finish(t.Context(), warm.ref()); err != nil {
		t.Fatal(err)
	}
	lost := begin(t, session, branches.BeginOptions{Shared: true})
	lost.exec("INSERT INTO t VALUES ('lost', 1)")
	lost.exec("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$")
	_, err := lost.stage(branches.Unit{})
	if err == nil { // S3 goes with PREPARE
		err = lost.Prepare(t.Context(), lost.gid)
	}
	if kind := branches.Classify(store, err); err == nil || kind != branches.Transient {
		t.Fatalf("Stage after DEALLOCATE ALL: %v (%s), want a transient error", err, kind)
	}
	if err := lost.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	again := begin(t, session, branches.BeginOptions{Shared: true})
	again.exec("INSERT INTO t VALUES ('again', 1)")
	if err := again.prepared().Finish(t.Context(), again.ref()); err != nil {
		t.Fatal(err)
	}
	if n := p.rows(); n != 4 {
		t.Errorf("%d rows, want those of every unit but the lost one", n)
	}
}

// A pooler that hands out another server for each transaction knows no
// statement of ours: with an exec mode made for that, none is prepared.
func TestNothingIsPreparedForAPooler(t *testing.T) {
	for mode, want := range map[string]bool{"cache_statement": true, "cache_describe": false, "exec": false, "simple_protocol": false} {
		t.Run(mode, func(t *testing.T) {
			p := newPlace(t)
			session := connect(t, openStore(t, p.dsn+"&default_query_exec_mode="+mode, postgres.Options{}))
			u := begin(t, session, branches.BeginOptions{Shared: true})
			u.exec("INSERT INTO t VALUES ('a', 1)")
			u = u.prepared()
			conn, err := postgres.Conn(session, "")
			if err != nil {
				t.Fatal(err)
			}
			result, err := conn.PgConn().Exec(t.Context(), "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'rhizodat%'").ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			if got := string(result[0].Rows[0][0]) != "0"; got != want {
				t.Errorf("prepared statements of ours: %t, want %t", got, want)
			}
			if err := u.Finish(t.Context(), u.ref()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
