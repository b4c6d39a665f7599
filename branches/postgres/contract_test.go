package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/branchtest"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// harness plays the contract against a place.
//
//nolint:contextcheck // pgtest has a context of its own, which outlives the test's
func (p place) harness() branchtest.Harness {
	return branchtest.Harness{
		Open: func(context.Context) (branches.Store, error) {
			return postgres.Open("pg", p.dsn, postgres.Options{})
		},
		Vote:  branches.VotePrepare,
		Write: func(key string) string { return "INSERT INTO t (k) VALUES ('" + key + "')" },
		Read:  "SELECT k FROM t",
		Count: func(_ context.Context, key string) (int, error) {
			return int(p.cluster.Int(p.t, p.dsn, "SELECT count(*) FROM t WHERE k = $1", key)), nil
		},
		Bad:          "SELECT nonsense",
		Constrained:  true,
		Unpreparable: "CREATE TEMPORARY TABLE scratch (x int)",
		Lock:         "SELECT pg_advisory_xact_lock(77)",
		TryLock: func(context.Context) (bool, error) {
			return p.cluster.Int(p.t, p.dsn, "SELECT pg_try_advisory_lock(77)::int") == 0, nil
		},
		Table: "t", Column: "k",
		Sever: func(_ context.Context, session branches.Session) error {
			raw, err := postgres.Conn(session, "pg")
			if err == nil {
				p.cluster.Int(p.t, p.dsn, "SELECT pg_terminate_backend($1)::int", raw.PgConn().PID())
			}
			return err
		},
	}
}

//nolint:contextcheck // as above
func TestContract(t *testing.T) {
	p := placeOn(t, pgtest.Own(t, "max_prepared_transactions=20", "fsync=on"))
	h := p.harness()
	h.Restart = func(context.Context) error {
		p.cluster.Stop(t, true)
		p.cluster.Start(t)
		return nil
	}
	if left := branchtest.Exercise(t, h); len(left) > 0 {
		t.Errorf("left out: %v", left)
	}
}

// A session that is only a *pgx.Conn leads to itself.
func TestConnOfPlainPgx(t *testing.T) {
	p := newPlace(t)
	conn, err := pgx.Connect(t.Context(), p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if got, err := postgres.Conn(conn, "pg"); got != conn || err != nil {
		t.Errorf("Conn(*pgx.Conn) = %p, %v", got, err)
	}
}
