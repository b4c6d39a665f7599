package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// asLogin is the place as a login sees it that is no superuser and may act as a
// second role.
func (p place) asLogin() (login place, role pgtest.Role) {
	p.t.Helper()
	owner := p.cluster.Role(p.t, "login", "NOINHERIT")
	role = p.cluster.Role(p.t, "app", "")
	p.cluster.Exec(p.t, p.dsn, `GRANT `+role.Name+` TO `+owner.Name+`;
		GRANT SELECT, INSERT, DELETE ON dat_applied TO `+owner.Name+`;
		GRANT SELECT, UPDATE ON dat_meta TO `+owner.Name+`;
		GRANT SELECT, INSERT ON t TO `+owner.Name+`, `+role.Name+`;
		GRANT CREATE ON DATABASE `+pgtest.Name(p.dsn)+` TO `+owner.Name)
	p.dsn, login = p.cluster.DSNAs(owner, p.dsn), p
	login.dsn = p.dsn
	return login, role
}

// in is the place for a subtest.
func (p place) in(t *testing.T) place {
	t.Helper()
	p.t = t
	return p
}

// admin is the place as its superuser sees it again.
func (p place) admin() place {
	p.dsn = p.cluster.DSN(pgtest.Name(p.dsn))
	return p
}

// What an application does to its session must not reach the marker, nor the
// owner of the prepared transaction. Each row is a two-store unit that is
// finished over its own session or by another process.
func TestSessionStateOfTheApplication(t *testing.T) {
	shared, role := newPlace(t).asLogin()
	for name, statements := range map[string][]string{
		"nothing":                  nil,
		"role":                     {"SET ROLE %role"},
		"local role":               {"SET LOCAL ROLE %role"},
		"search path":              {"CREATE SCHEMA IF NOT EXISTS AUTHORIZATION %role; SET search_path = %role, public"},
		"local search path":        {"SET LOCAL search_path = pg_catalog"},
		"path without pg_catalog":  {"SET search_path = public, pg_catalog"},
		"shadow in another schema": {"CREATE SCHEMA IF NOT EXISTS shadow; CREATE TABLE IF NOT EXISTS shadow.dat_applied (x int); SET search_path = shadow, public"},
		"isolation":                {"SET default_transaction_isolation = 'serializable'"},
		"row security":             {"SET row_security = off"},
		"unsynchronised":           {"SET synchronous_commit = off"},
		"silent":                   {"SET client_min_messages = error"},
		"strings":                  {"SET standard_conforming_strings = off"},
	} {
		for _, own := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", own session", false: ", other process"}[own], func(t *testing.T) {
				p := shared.in(t).emptied()
				store := p.open(postgres.Options{})
				u := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
				for _, s := range statements {
					u.exec(strings.ReplaceAll(s, "%role", role.Name))
				}
				u.exec("INSERT INTO public.t VALUES ('a', 1)")
				u.prepared()
				finish := u.Finish
				if !own {
					finish = p.open(postgres.Options{}).Finish
				}
				if err := finish(t.Context(), u.ref()); err != nil {
					t.Fatal(err)
				}
				if p.admin().rows() != 1 || fate(t.Context(), t, store, u.txn) != branches.FateApplied {
					t.Error("Finish left no row or no marker")
				}
			})
		}
	}
}

// The same where the unit has one branch, and the marker goes with COMMIT.
func TestSessionStateInOnePhase(t *testing.T) {
	shared, role := newPlace(t).asLogin()
	shared.cluster.Exec(t, shared.admin().dsn, "GRANT TEMPORARY ON DATABASE "+pgtest.Name(shared.dsn)+" TO "+role.Name)
	for name, statement := range map[string]string{
		"role": "SET ROLE %role", "local role": "SET LOCAL ROLE %role",
		"temporary table": "CREATE TEMPORARY TABLE dat_applied (x int)",
		"search path":     "SET LOCAL search_path = pg_catalog",
	} {
		t.Run(name, func(t *testing.T) {
			p := shared.in(t).emptied()
			store := p.open(postgres.Options{})
			u := begin(t, connect(t, store), branches.BeginOptions{})
			u.exec(strings.ReplaceAll(statement, "%role", role.Name))
			u.exec("INSERT INTO public.t VALUES ('a', 1)")
			if _, err := u.stage(branches.Unit{OnePhase: true}); err != nil {
				t.Fatal(err)
			}
			if err := u.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if p.admin().rows() != 1 || fate(t.Context(), t, store, u.txn) != branches.FateApplied {
				t.Error("Commit left no row or no marker")
			}
		})
	}
}

// A temporary dat_applied shadows ours for every name without a schema.
func TestTemporaryMarkerTable(t *testing.T) {
	p := newPlace(t)
	store := p.open(postgres.Options{})
	session := connect(t, store)
	if _, err := session.Exec(t.Context(), "CREATE TEMPORARY TABLE dat_applied (dat_txn uuid, dat_tx_time bigint)", nil); err != nil {
		t.Fatal(err)
	}
	u := begin(t, session, branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	u.prepared()
	if err := u.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	if got := fate(t.Context(), t, store, u.txn); got != branches.FateApplied {
		t.Errorf("fate = %s", got)
	}
}

// Row level security that hides markers must raise, not answer "no marker": a
// committed branch would be reported as rolled back.
func TestRowLevelSecurityProvesNothing(t *testing.T) {
	p, _ := newPlace(t).asLogin()
	p.admin().cluster.Exec(t, p.admin().dsn, `ALTER TABLE dat_applied ENABLE ROW LEVEL SECURITY;
		CREATE POLICY w ON dat_applied FOR INSERT WITH CHECK (true);
		CREATE POLICY r ON dat_applied FOR SELECT USING (false)`)
	store := p.open(postgres.Options{})
	u := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	u.prepared()
	if err := u.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	err := store.Finish(t.Context(), u.ref())
	if _, heuristic := errors.AsType[*branches.Heuristic](err); err == nil || heuristic {
		t.Errorf("second Finish without sight of the marker = %v, want an error that proves nothing", err)
	}
	if _, err := store.Applied(t.Context(), u.txn); err == nil {
		t.Error("Applied without sight of the marker = nil")
	}
	if fate, err := store.Settle(t.Context(), u.txn); err == nil {
		t.Errorf("Settle without sight of the marker = %s", fate)
	}
}

// A connect hook that takes a role is not in the way of the store's own
// connections, nor of units that prepare as the login.
func TestRoleByConnectHook(t *testing.T) {
	p, role := newPlace(t).asLogin()
	store := p.open(postgres.Options{AfterConnect: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET ROLE "+role.Name)
		return err
	}})
	u := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	u.prepared()
	if err := u.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	if got := fate(t.Context(), t, store, u.txn); got != branches.FateApplied {
		t.Errorf("fate = %s", got)
	}
}

// foreign is a transaction that another login has prepared.
func (p place) foreign(owner pgtest.Role) branches.Ref {
	p.t.Helper()
	p.cluster.Exec(p.t, p.admin().dsn, "GRANT SELECT, INSERT ON dat_applied, t TO "+owner.Name)
	other := p
	other.dsn = p.cluster.DSNAs(owner, p.dsn)
	u := begin(p.t, connect(p.t, other.open(postgres.Options{})), branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	return u.prepared().ref()
}

// A prepared transaction of another role is ended under that role, where the
// login may take it.
func TestFinishAsOwner(t *testing.T) {
	p, role := newPlace(t).asLogin()
	store := p.open(postgres.Options{})
	for _, commit := range []bool{true, false} {
		ref := p.foreign(role)
		end := store.Abort
		if commit {
			end = store.Finish
		}
		if err := end(t.Context(), ref); err != nil {
			t.Errorf("end another role's transaction (commit %t): %v", commit, err)
		}
		p.admin().cluster.Exec(t, p.admin().dsn, "TRUNCATE t")
	}
	if left := p.cluster.Prepared(t, p.dsn); len(left) != 0 {
		t.Errorf("left prepared: %v", left)
	}
}

// Where it may not, the error names the role, and the listing has said so.
func TestFinishWithoutRight(t *testing.T) {
	p, _ := newPlace(t).asLogin()
	stranger := p.cluster.Role(t, "stranger", "")
	store := p.open(postgres.Options{})
	ref := p.foreign(stranger)
	for name, end := range map[string]func(context.Context, branches.Ref) error{"finish": store.Finish, "abort": store.Abort} {
		err := end(t.Context(), ref)
		if err == nil || !strings.Contains(err.Error(), stranger.Name) || branches.Classify(store, err) != branches.Permanent {
			t.Errorf("%s of a stranger's transaction = %v, want a permanent error that names %s", name, err, stranger.Name)
		}
	}
	list, err := store.Prepared(t.Context())
	if err != nil || len(list) != 1 || list[0].MayFinish || list[0].Owner != stranger.Name {
		t.Errorf("Prepared = %+v, %v, want the stranger's, not to be finished by us", list, err)
	}
	if left := p.cluster.Prepared(t, p.dsn); len(left) != 1 {
		t.Errorf("left prepared: %v, want it untouched", left)
	}
}
