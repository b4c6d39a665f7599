package postgres_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/cutproxy"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// through is the place as seen over a network that can be cut.
func (p place) through() (place, *cutproxy.Proxy) {
	proxy := cutproxy.New(p.t, p.cluster.Addr())
	p.dsn = proxy.DSN(p.dsn)
	return p, proxy
}

func TestLostPrepare(t *testing.T) {
	for name, cut := range map[string]struct {
		rule func(*cutproxy.Proxy)
		left int
	}{
		"before": {func(x *cutproxy.Proxy) { x.CutBefore(cutproxy.Prefix("PREPARE TRANSACTION")) }, 0},
		"after":  {func(x *cutproxy.Proxy) { x.CutAfter(cutproxy.Prefix("PREPARE TRANSACTION"), cutproxy.HoldServer()) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			near, proxy := p.through()
			store := near.open(postgres.Options{})
			session := connect(t, store)
			u := begin(t, session, branches.BeginOptions{Shared: true})
			u.exec("INSERT INTO t VALUES ('a', 1)")
			u.voted(branches.VotePrepare)
			cut.rule(proxy)
			if err := u.Prepare(t.Context(), u.gid); !branches.IsUnknown(err) || branches.Classify(store, err) != branches.Transient {
				t.Errorf("Prepare = %v, want an unknown, transient outcome", err)
			}
			if session.Usable() {
				t.Error("a session with an I/O error says that it is usable")
			}
			await.Until(t, "only what was to be prepared is", func() bool { return len(p.cluster.Prepared(t, p.dsn)) == cut.left })
			if err := store.Abort(t.Context(), u.ref()); err != nil {
				t.Error(err)
			}
			if left := p.cluster.Prepared(t, p.dsn); len(left) != 0 || p.rows() != 0 {
				t.Errorf("left prepared: %v", left)
			}
		})
	}
}

// A lost answer to COMMIT PREPARED is asked for again at once, over a new
// connection, and the marker answers.
func TestLostFinish(t *testing.T) {
	for _, own := range []bool{true, false} {
		p := newPlace(t)
		near, proxy := p.through()
		store := near.open(postgres.Options{})
		u := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
		u.exec("INSERT INTO t VALUES ('a', 1)")
		u.prepared()
		rule := proxy.CutAfter(cutproxy.Prefix("COMMIT PREPARED"), cutproxy.HoldServer(), cutproxy.Times(1))
		finish := u.Finish
		if !own {
			finish = store.Finish
		}
		if err := finish(t.Context(), u.ref()); err != nil {
			t.Errorf("Finish (own session %t) = %v, want it settled over another connection", own, err)
		}
		if rule.Hits() != 1 || p.rows() != 1 {
			t.Errorf("cut %d times, %d rows, want 1 and 1", rule.Hits(), p.rows())
		}
	}
}

// A lost answer to a one-phase COMMIT is unknown, and the marker settles it.
func TestLostCommit(t *testing.T) {
	for name, row := range map[string]struct {
		rule func(*cutproxy.Proxy)
		want branches.Fate
		rows int64
	}{
		"before": {func(x *cutproxy.Proxy) { x.CutBefore(cutproxy.Contains("COMMIT")) }, branches.FateNever, 0},
		"after":  {func(x *cutproxy.Proxy) { x.CutAfter(cutproxy.Contains("COMMIT"), cutproxy.HoldServer()) }, branches.FateApplied, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			near, proxy := p.through()
			u := begin(t, connect(t, near.open(postgres.Options{})), branches.BeginOptions{})
			u.exec("INSERT INTO t VALUES ('a', 1)")
			if _, err := u.stage(branches.Unit{OnePhase: true}); err != nil {
				t.Fatal(err)
			}
			row.rule(proxy)
			if err := u.Commit(t.Context()); !branches.IsUnknown(err) {
				t.Errorf("Commit = %v, want an unknown outcome", err)
			}
			if row.rows > 0 {
				await.Until(t, "the rows are there", func() bool { return p.rows() == row.rows })
			}
			got, err := p.open(postgres.Options{}).Settle(t.Context(), u.txn)
			if err != nil || got != row.want || p.rows() != row.rows {
				t.Errorf("Settle = %s, %v with %d rows, want %s with %d", got, err, p.rows(), row.want, row.rows)
			}
		})
	}
}

// The lost backend is still busy, in a deferred trigger, when its outcome is
// asked for: the tombstone either waits for it or comes first, and then the late
// COMMIT has no effect. What was answered stays true.
func TestSettleBesideBusyBackend(t *testing.T) {
	p := newPlace(t)
	p.cluster.Exec(t, p.dsn, `CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_advisory_xact_lock(99); RETURN NULL; END';
		CREATE TABLE slow (x int); CREATE CONSTRAINT TRIGGER stall AFTER INSERT ON slow
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION stall()`)
	near, proxy := p.through()
	gate := connect(t, p.open(postgres.Options{}))
	if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_lock(99)", nil); err != nil {
		t.Fatal(err)
	}
	u := begin(t, connect(t, near.open(postgres.Options{})), branches.BeginOptions{})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	u.exec("INSERT INTO slow VALUES (1)")
	if _, err := u.stage(branches.Unit{OnePhase: true}); err != nil {
		t.Fatal(err)
	}
	proxy.CutAfter(cutproxy.Contains("COMMIT"), cutproxy.HoldServer())
	if err := u.Commit(t.Context()); !branches.IsUnknown(err) {
		t.Fatalf("Commit = %v, want an unknown outcome", err)
	}
	got, err := p.open(postgres.Options{}).Settle(t.Context(), u.txn)
	if err != nil || got != branches.FateNever {
		t.Fatalf("Settle = %s, %v, want never: the marker comes after the triggers", got, err)
	}
	if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_unlock(99)", nil); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the late backend is gone", func() bool {
		return p.cluster.Int(t, p.dsn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 99") == 0
	})
	if n := p.rows(); n != 0 || fate(t.Context(), t, p.open(postgres.Options{}), u.txn) != branches.FateNever {
		t.Errorf("%d rows after an outcome of never", n)
	}
}

// A call that ends by its context has proved nothing.
func TestCommitCutShortByContext(t *testing.T) {
	p := newPlace(t)
	near, proxy := p.through()
	u := begin(t, connect(t, near.open(postgres.Options{})), branches.BeginOptions{})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	if _, err := u.stage(branches.Unit{OnePhase: true}); err != nil {
		t.Fatal(err)
	}
	rule := proxy.Swallow(cutproxy.Contains("COMMIT"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-rule.Hit()
		cancel()
	}()
	if err := u.Commit(ctx); !branches.IsUnknown(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("Commit = %v, want an unknown outcome by the context", err)
	}
}

// What never left this process has no effect, and is known to have none.
func TestEndNotSent(t *testing.T) {
	p := newPlace(t)
	store := p.open(postgres.Options{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, prepare := range []bool{true, false} {
		u := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
		u.exec("INSERT INTO t VALUES ('a', 1)")
		u.voted(branches.VotePrepare)
		end := u.Commit
		if prepare {
			end = func(ctx context.Context) error { return u.Prepare(ctx, u.gid) }
		}
		if err := end(ended); err == nil || branches.IsUnknown(err) || errors.Is(err, driver.ErrBadConn) {
			t.Errorf("end under an ended context (prepare %t) = %v, want a known failure", prepare, err)
		}
		await.Until(t, "nobody else is in a transaction", func() bool {
			return p.cluster.Int(t, p.dsn, "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND pid <> pg_backend_pid()") == 0
		})
		if p.rows() != 0 || len(p.cluster.Prepared(t, p.dsn)) != 0 {
			t.Error("a request that was not sent has had an effect")
		}
	}
}

// The store's own connections rest between calls. Those that a restart has
// ended are never the reason for an error.
func TestRestartBetweenCalls(t *testing.T) {
	p := placeOn(t, pgtest.Own(t))
	store := p.open(postgres.Options{})
	for range 3 {
		fate(t.Context(), t, store, branches.TxnID{7})
		p.cluster.Stop(t, false)
		p.cluster.Start(t)
	}
	fate(t.Context(), t, store, branches.TxnID{7})
	session := connect(t, store)
	p.cluster.Stop(t, false)
	p.cluster.Start(t)
	if _, err := session.Begin(t.Context(), branches.BeginOptions{}); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("Begin on a dead session = %v, want driver.ErrBadConn", err)
	}
}

// With its session lost a branch says so, never driver.ErrBadConn: that would
// make database/sql's loops run the unit again.
func TestBranchOfLostSession(t *testing.T) {
	p := newPlace(t)
	store := p.open(postgres.Options{})
	session := connect(t, store)
	u := begin(t, session, branches.BeginOptions{})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	p.cluster.Disconnect(t, p.dsn)
	if err := u.try("SELECT 1"); err == nil {
		t.Error("statement on a lost session = nil")
	}
	if err := u.try("SELECT 1"); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("statement that was not sent = %v, want driver.ErrBadConn as pgx", err)
	}
	_, staged := u.stage(branches.Unit{OnePhase: true})
	for name, err := range map[string]error{"Doomed": u.Doomed(), "Stage": staged, "Commit": u.Commit(t.Context())} {
		if err == nil || errors.Is(err, driver.ErrBadConn) || branches.IsUnknown(err) || branches.Classify(store, err) != branches.Transient {
			t.Errorf("%s of a lost session = %v, want a transient error", name, err)
		}
	}
	if err := u.Rollback(t.Context()); err != nil {
		t.Errorf("Rollback = %v", err)
	}
}
