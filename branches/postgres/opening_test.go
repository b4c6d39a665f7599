package postgres_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

const upsert = "INSERT INTO t VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v"

// used is a session that has had a unit of several stores already.
func used(t *testing.T, store *postgres.Store) branches.Session {
	t.Helper()
	session := connect(t, store)
	u := begin(t, session, branches.BeginOptions{Shared: true})
	if _, err := session.Exec(t.Context(), upsert, values("used", 1)); err != nil {
		t.Fatal(err)
	}
	if err := u.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	u = begin(t, session, branches.BeginOptions{Shared: true})
	if _, err := session.Exec(t.Context(), upsert, values("used", 1)); err != nil { // prepares it as a first statement
		t.Fatal(err)
	}
	if err := u.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	return session
}

func text(t *testing.T, session branches.Session, query string) string {
	t.Helper()
	var a answer
	rows, err := session.Query(t.Context(), query, nil)
	a.read(t, rows, err)
	if len(a.Rows) != 1 {
		t.Fatalf("%s: %+v", query, a)
	}
	got, _ := a.Rows[0][0].(string)
	return got
}

// BEGIN, the bound of lock waits and the first statement are one round trip.
func TestBeginTravelsWithTheFirstStatement(t *testing.T) {
	p := newPlace(t)
	config, err := pgx.ParseConfig(p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	wire := &pgtest.Wire{}
	config.DialFunc = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		wire.Conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
		return wire, err
	}
	session := used(t, openStore(t, "", postgres.Options{ConnConfig: config, LockTimeout: 7 * time.Second}))
	wire.Turns() // those of the opening
	u := begin(t, session, branches.BeginOptions{Shared: true})
	result, err := session.Exec(t.Context(), upsert, values("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	if n := wire.Turns(); n != 1 {
		t.Errorf("BEGIN and the first statement took %d round trips, want 1", n)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Errorf("%d rows affected, %v", n, err)
	}
	if got := text(t, session, "SHOW lock_timeout"); got != "7s" {
		t.Errorf("lock_timeout is %s in the branch", got)
	}
	if w := u.Branch.(branches.Writer); !w.Wrote() {
		t.Error("the branch does not know that it has written")
	}
	if err := u.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := p.cluster.Int(t, p.dsn, "SELECT count(*) FROM t"); n != 0 {
		t.Errorf("%d rows after a rollback: the statement was not in the transaction", n)
	}
}

// A first statement that fails, fails as one behind a BEGIN of its own does.
func TestFirstStatementFails(t *testing.T) {
	p := newPlace(t)
	for _, tc := range []struct {
		name, query string
		args        []any
		code        string // of the server; empty for an error of pgx's own
	}{
		{"at the server", "INSERT INTO t VALUES ($1, 1 / $2)", []any{"k", 0}, "22012"},
		{"a syntax error", "INSRT INTO t VALUES ($1)", []any{"k"}, "42601"},
		{"an unknown table", "INSERT INTO nowhere VALUES ($1)", []any{"k"}, "42P01"},
		{"a value of another type", "INSERT INTO t VALUES ($1, $2)", []any{"k", struct{}{}}, ""},
		{"a value too few", "INSERT INTO t VALUES ($1, $2)", []any{"k"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			session := used(t, p.open(postgres.Options{LockTimeout: 10 * time.Second}))
			u := begin(t, session, branches.BeginOptions{Shared: true})
			_, err := session.Exec(t.Context(), tc.query, values(tc.args...))
			if err == nil || errors.Is(err, driver.ErrBadConn) {
				t.Fatalf("got %v", err)
			}
			pgErr, isServers := errors.AsType[*pgconn.PgError](err)
			if isServers != (tc.code != "") || isServers && pgErr.Code != tc.code {
				t.Errorf("got %T %v, want %q", err, err, tc.code)
			}
			_, later := session.Exec(t.Context(), upsert, values("later", 1))
			if doomed := u.Doomed() != nil; doomed != isServers || (later != nil) != isServers {
				t.Errorf("doomed: %v; the next statement: %v", u.Doomed(), later)
			}
			if err := u.Rollback(t.Context()); err != nil || !session.Usable() {
				t.Errorf("rollback: %v, usable %t", err, session.Usable())
			}
			if n := p.cluster.Int(t, p.dsn, "SELECT count(*) FROM t"); n != 0 {
				t.Errorf("%d rows", n)
			}
		})
	}
}

// What a session forgets, or changes about lock_timeout, it is asked again.
func TestSessionChangesBeforeTheFirstStatement(t *testing.T) {
	p := newPlace(t)
	for change, bound := range map[string]string{
		"DISCARD ALL":                            "10s",
		"DEALLOCATE ALL":                         "10s",
		"SET Lock_Timeout = '2s'":                "2s",
		"RESET ALL":                              "10s",
		"SET lock_timeout TO '1min'":             "10s",
		"SET search_path = pg_catalog":           "10s",
		"SET default_transaction_read_only = on": "10s",
	} {
		t.Run(change, func(t *testing.T) {
			session := used(t, p.open(postgres.Options{LockTimeout: 10 * time.Second}))
			if _, err := session.Exec(t.Context(), change, nil); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				u := begin(t, session, branches.BeginOptions{Shared: true})
				_, err := session.Exec(t.Context(), "SELECT pg_catalog.set_config('a.b', $1 || pg_catalog.current_setting('lock_timeout'), true)", values("was "))
				if err != nil {
					t.Fatal(err)
				}
				if got := text(t, session, "SELECT pg_catalog.current_setting('a.b')"); got != "was "+bound {
					t.Errorf("the first statement ran with lock_timeout: %s, want %s", got, bound)
				}
				if err := u.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Whatever comes first, it comes inside the branch.
func TestOtherFirstCalls(t *testing.T) {
	p := newPlace(t)
	store := p.open(postgres.Options{LockTimeout: 10 * time.Second})
	for name, call := range map[string]func(branches.Session, unit) error{
		"a query": func(s branches.Session, _ unit) error {
			rows, err := s.Query(t.Context(), "INSERT INTO t VALUES ('q', 1) RETURNING v", nil)
			if err == nil {
				err = rows.Close()
			}
			return err
		},
		"a text without values": func(s branches.Session, _ unit) error {
			_, err := s.Exec(t.Context(), "INSERT INTO t VALUES ('x', 1); INSERT INTO t VALUES ('y', 1)", nil)
			return err
		},
		"a mode of pgx": func(s branches.Session, _ unit) error {
			_, err := s.Exec(t.Context(), "INSERT INTO t VALUES ('m', $1)", values(pgx.QueryExecModeExec, 1))
			return err
		},
		"rows of Exec": func(s branches.Session, _ unit) error {
			_, err := s.Exec(t.Context(), "INSERT INTO t VALUES ('r', $1) RETURNING *", values(1))
			return err
		},
		"a copy": func(s branches.Session, _ unit) error {
			n := 0
			_, err := s.(branches.Copier).CopyFrom(t.Context(), "t", []string{"k", "v"}, func() ([]any, error) {
				if n++; n > 1 {
					return nil, nil
				}
				return []any{"c", int64(1)}, nil
			})
			return err
		},
		"a savepoint": func(s branches.Session, u unit) error {
			if err := u.Branch.(branches.Savepointer).Savepoint(t.Context(), "sp"); err != nil {
				return err
			}
			_, err := s.Exec(t.Context(), upsert, values("s", 1))
			return err
		},
		"a prepared statement": func(s branches.Session, _ unit) error {
			made, err := s.Prepare(t.Context(), upsert)
			if err != nil {
				return err
			}
			_, err = made.(driver.StmtExecContext).ExecContext(t.Context(), values("p", 1))
			return err
		},
		"pgx itself": func(s branches.Session, _ unit) error {
			if err := s.(branches.Pinger).Ping(t.Context()); err != nil {
				return err
			}
			_, err := s.(branches.Raw).Raw().(*pgx.Conn).Exec(t.Context(), upsert, "raw", 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			session := used(t, store)
			u := begin(t, session, branches.BeginOptions{Shared: true})
			if err := call(session, u); err != nil {
				t.Fatal(err)
			}
			if n := p.cluster.Int(t, p.dsn, "SELECT count(*) FROM t"); n != 0 {
				t.Errorf("%d rows are there before the end", n)
			}
			if err := u.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := p.cluster.Int(t, p.dsn, "SELECT count(*) FROM t"); n != 0 || !session.Usable() {
				t.Errorf("%d rows after a rollback, usable %t", n, session.Usable())
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		session := used(t, store)
		u := begin(t, session, branches.BeginOptions{Shared: true})
		if err := u.Doomed(); err != nil {
			t.Error(err)
		}
		if err := u.Rollback(t.Context()); err != nil || !session.Usable() {
			t.Errorf("rollback: %v, usable %t", err, session.Usable())
		}
	})
}

// A session that the server has ended meanwhile answers ErrBadConn, and the
// branch says that nothing of it has happened.
func TestFirstStatementOnADeadSession(t *testing.T) {
	p := newPlace(t)
	for _, query := range []string{upsert, strings.ReplaceAll(upsert, "$1, $2", "'k', 1")} {
		session := used(t, p.open(postgres.Options{LockTimeout: 10 * time.Second}))
		p.cluster.Exec(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '`+pgtest.Name(p.dsn)+`'`)
		u := begin(t, session, branches.BeginOptions{Shared: true})
		args := values("k", 1)
		if query != upsert {
			args = nil
		}
		_, err := session.Exec(t.Context(), query, args)
		if !errors.Is(err, driver.ErrBadConn) || u.Branch.(branches.Beginner).Begun() {
			t.Errorf("%s: %v, begun %t", query, err, u.Branch.(branches.Beginner).Begun())
		}
	}
}
