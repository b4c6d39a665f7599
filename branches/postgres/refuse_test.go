package postgres_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// Each refusal of PREPARE names the store and the cause, is permanent, and has
// rolled its branch back.
func TestPrepareRefusals(t *testing.T) {
	p := newPlace(t)
	p.cluster.Exec(t, p.dsn, `CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_notify(''c'', ''x''); RETURN NULL; END';
		CREATE TABLE loud (x int); CREATE TRIGGER tell AFTER INSERT ON loud FOR EACH ROW EXECUTE FUNCTION tell()`)
	store := p.open(postgres.Options{})
	for name, row := range map[string]struct{ before, statement, says string }{
		"temporary table":        {"", "CREATE TEMPORARY TABLE scratch (x int)", "temporary table"},
		"temporary table read":   {"CREATE TEMPORARY TABLE scratch (x int)", "SELECT * FROM scratch", "temporary table"},
		"notify":                 {"", "NOTIFY c", "NOTIFY"},
		"notify from a trigger":  {"", "INSERT INTO loud VALUES (1)", "trigger"},
		"listen":                 {"", "LISTEN c", "LISTEN"},
		"cursor with hold":       {"", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "WITH HOLD"},
		"exported snapshot":      {"", "SELECT pg_export_snapshot()", "snapshot"},
		"advisory locks of both": {"SELECT pg_advisory_lock(5)", "SELECT pg_advisory_xact_lock(5)", "advisory"},
	} {
		t.Run(name, func(t *testing.T) {
			session := connect(t, store)
			if row.before != "" {
				if _, err := session.Exec(t.Context(), row.before, nil); err != nil {
					t.Fatal(err)
				}
			}
			u := begin(t, session, branches.BeginOptions{Shared: true})
			u.exec("INSERT INTO t VALUES ('a', 1)")
			u.exec(row.statement)
			u.voted(branches.VotePrepare)
			err := u.Prepare(t.Context(), u.gid)
			if err == nil || branches.IsUnknown(err) || branches.Classify(store, err) != branches.Permanent {
				t.Fatalf("Prepare = %v, want a permanent refusal", err)
			}
			if text := err.Error(); !strings.Contains(text, "store pg") || !strings.Contains(text, row.says) {
				t.Errorf("Prepare = %q, want the store and %q in it", text, row.says)
			}
			if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "0A000" {
				t.Errorf("Prepare = %v, want the server's error in it", err)
			}
			if !session.Usable() {
				t.Error("session is not usable")
			}
			if n := p.rows(); n != 0 {
				t.Errorf("%d rows", n)
			}
		})
	}
}

// A write through postgres_fdw takes effect at COMMIT and leaves no xid here: in
// a unit of several stores it is refused before the decision, in one of this
// store alone it is marked.
func TestForeignWrite(t *testing.T) {
	p := newPlace(t)
	if p.cluster.Int(t, p.dsn, "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'") == 0 {
		pgtest.Skip(t, "the server has no postgres_fdw")
	}
	far := newPlace(t)
	host, port, err := net.SplitHostPort(p.cluster.Addr())
	if err != nil {
		t.Fatal(err)
	}
	p.cluster.Exec(t, p.dsn, `CREATE EXTENSION postgres_fdw;
		CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '`+host+`', port '`+port+`', dbname '`+pgtest.Name(far.dsn)+`');
		CREATE USER MAPPING FOR PUBLIC SERVER far OPTIONS (user 'postgres', password '`+p.cluster.Password()+`');
		CREATE FOREIGN TABLE f (k text, v bigint) SERVER far OPTIONS (table_name 't')`)
	store := p.open(postgres.Options{})
	session := connect(t, store)
	two := begin(t, session, branches.BeginOptions{Shared: true})
	two.exec("INSERT INTO f VALUES ('a', 1)")
	two.voted(branches.VotePrepare)
	err = two.Prepare(t.Context(), two.gid)
	if branches.Classify(store, err) != branches.Permanent || err == nil || !strings.Contains(err.Error(), "postgres_fdw") || far.rows() != 0 {
		t.Errorf("Prepare of a foreign write = %v with %d rows, want a refusal that names it", err, far.rows())
	}
	one := begin(t, session, branches.BeginOptions{})
	one.exec("INSERT INTO f VALUES ('a', 1)")
	if _, err := one.stage(branches.Unit{OnePhase: true}); err != nil {
		t.Fatal(err)
	}
	if err := one.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fate(t.Context(), t, store, one.txn); got != branches.FateApplied || far.rows() != 1 {
		t.Errorf("fate of a foreign write = %s with %d rows", got, far.rows())
	}
}

// A read-only branch with a notification can be refused by nobody but us: it is
// ended by a COMMIT that would deliver it after the decision.
func TestNotifyOfReadOnlyBranch(t *testing.T) {
	p := newPlace(t)
	store := p.open(postgres.Options{})
	u := begin(t, connect(t, store), branches.BeginOptions{Shared: true, ReadOnly: true})
	u.exec("NOTIFY c")
	_, err := u.stage(branches.Unit{Notice: true})
	if err == nil || branches.Classify(store, err) != branches.Permanent || !strings.Contains(err.Error(), "NOTIFY") {
		t.Errorf("Stage = %v, want the refusal of NOTIFY", err)
	}
}

func TestPreparedDisabled(t *testing.T) {
	p := placeOn(t, pgtest.Own(t, "max_prepared_transactions=0"))
	store := p.open(postgres.Options{})
	err := store.Probe(t.Context())
	if !errors.Is(err, postgres.ErrPreparedDisabled) || branches.Classify(store, err) != branches.Permanent ||
		!strings.Contains(err.Error(), "store pg") || !strings.Contains(err.Error(), "restart") {
		t.Errorf("Probe = %v, want ErrPreparedDisabled with the store and the way out", err)
	}
	session := connect(t, store)
	u := begin(t, session, branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	u.voted(branches.VotePrepare)
	err = u.Prepare(t.Context(), u.gid)
	if !errors.Is(err, postgres.ErrPreparedDisabled) || branches.Classify(store, err) != branches.Permanent || branches.IsUnknown(err) {
		t.Errorf("Prepare = %v, want ErrPreparedDisabled", err)
	}
	if !session.Usable() || p.rows() != 0 {
		t.Error("the branch is not rolled back")
	}
	finding := p.finding(store, "max_prepared_transactions")
	if finding.Severity != branches.SeverityError {
		t.Errorf("finding = %+v, want an error", finding)
	}
}

// All slots in use is no full store: one gets free as soon as a unit ends.
func TestSlotsUsedUp(t *testing.T) {
	p := placeOn(t, pgtest.Own(t, "max_prepared_transactions=1"))
	store := p.open(postgres.Options{})
	prepare := func(key string) (unit, error) {
		u := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
		u.exec("INSERT INTO t VALUES ('" + key + "', 1)")
		u.voted(branches.VotePrepare)
		return u, u.Prepare(t.Context(), u.gid)
	}
	first, err := prepare("a")
	if err != nil {
		t.Fatal(err)
	}
	if finding := p.finding(store, "max_prepared_transactions"); finding.Severity != branches.SeverityWarning {
		t.Errorf("finding = %+v, want a warning", finding)
	}
	_, err = prepare("b")
	if branches.Classify(store, err) != branches.Transient || branches.IsUnknown(err) || !strings.Contains(err.Error(), "max_prepared_transactions") {
		t.Errorf("Prepare = %v, want a transient error that names the setting", err)
	}
	if err := store.Finish(t.Context(), first.ref()); err != nil {
		t.Fatal(err)
	}
	if _, err := prepare("c"); err != nil {
		t.Errorf("Prepare after a slot got free = %v", err)
	}
}

// PostgreSQL answers PREPARE in a failed transaction with the tag ROLLBACK and
// no error.
func TestPrepareByTag(t *testing.T) {
	p := newPlace(t)
	session := connect(t, p.open(postgres.Options{}))
	u := begin(t, session, branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	u.voted(branches.VotePrepare)
	// Behind the driver's back, between S3 and S5.
	conn, err := postgres.Conn(session, "pg")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT nonsense"); err == nil {
		t.Fatal("nonsense = nil")
	}
	if err := u.Prepare(t.Context(), u.gid); err == nil || branches.IsUnknown(err) {
		t.Errorf("Prepare of a failed transaction = %v, want an error", err)
	}
	if left := p.cluster.Prepared(t, p.dsn); len(left) != 0 {
		t.Errorf("prepared: %v", left)
	}
}

// The server gives up waiting for a synchronous standby with a warning and the
// normal tag. The branch is prepared, but not where a fail-over would look.
func TestUnsynchronisedPrepare(t *testing.T) {
	p := placeOn(t, pgtest.Own(t))
	store := p.open(postgres.Options{})
	session := connect(t, store)
	u := begin(t, session, branches.BeginOptions{Shared: true})
	u.exec("SET client_min_messages = error")
	u.exec("SET synchronous_commit = local")
	u.exec("INSERT INTO t VALUES ('a', 1)")
	u.voted(branches.VotePrepare)
	p.cluster.Exec(t, "", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	p.cluster.Exec(t, "", "SELECT pg_reload_conf()")
	// The session's backend reads its configuration at its next statement; a
	// fresh one has it when it answers so.
	await.Until(t, "the configuration is read", func() bool {
		return p.cluster.Strings(t, p.dsn, "SHOW synchronous_standby_names")[0] == "nobody"
	})
	answer := make(chan error, 1)
	go func() { answer <- u.Prepare(t.Context(), u.gid) }()
	await.Until(t, "a backend that waits for the standby is cancelled", func() bool {
		return p.cluster.Int(t, p.dsn, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") > 0
	})
	if err := <-answer; !branches.IsUnknown(err) || branches.Classify(store, err) == branches.Permanent {
		t.Errorf("Prepare = %v, want an unknown, transient outcome", err)
	}
	p.cluster.Exec(t, "", "ALTER SYSTEM RESET synchronous_standby_names")
	p.cluster.Exec(t, "", "SELECT pg_reload_conf()")
	if err := store.Abort(t.Context(), u.ref()); err != nil {
		t.Error(err)
	}
	if left := p.cluster.Prepared(t, p.dsn); len(left) != 0 {
		t.Errorf("left prepared: %v", left)
	}
}

func (p place) finding(store *postgres.Store, check string) branches.Finding {
	p.t.Helper()
	findings, err := store.Examine(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range findings {
		if f.Check == check {
			return f
		}
	}
	p.t.Fatalf("no finding on %s", check)
	return branches.Finding{}
}
