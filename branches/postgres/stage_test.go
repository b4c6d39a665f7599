package postgres_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// What the server says of a branch decides its vote, not what the driver read.
func TestVotes(t *testing.T) {
	shared := newPlace(t)
	serializable := branches.BeginOptions{Isolation: driver.IsolationLevel(sql.LevelSerializable)}
	for name, row := range map[string]struct {
		setup      string
		begin      branches.BeginOptions
		statements []string
		unit       branches.Unit
		want       branches.Vote
	}{
		"insert":                       {statements: []string{"INSERT INTO t VALUES ('a', 1)"}, want: branches.VotePrepare},
		"insert in a function":         {setup: "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$INSERT INTO t VALUES ('a', 1)$$", statements: []string{"SELECT f()"}, want: branches.VotePrepare},
		"insert in a WITH":             {statements: []string{"WITH x AS (INSERT INTO t VALUES ('a', 1) RETURNING k) SELECT * FROM x"}, want: branches.VotePrepare},
		"update of nothing":            {statements: []string{"UPDATE t SET v = 0"}, want: branches.VoteReadOnly},
		"row lock":                     {setup: "INSERT INTO t VALUES ('l', 1)", statements: []string{"SELECT * FROM t FOR UPDATE"}, want: branches.VotePrepare},
		"table lock":                   {statements: []string{"LOCK TABLE t IN EXCLUSIVE MODE"}, want: branches.VoteReadOnly},
		"advisory lock":                {statements: []string{"SELECT pg_advisory_xact_lock(1)"}, want: branches.VoteReadOnly},
		"select":                       {statements: []string{"SELECT * FROM t"}, want: branches.VoteReadOnly},
		"nothing at all":               {want: branches.VoteReadOnly},
		"DDL":                          {statements: []string{"CREATE TABLE other (x int)"}, want: branches.VotePrepare},
		"write rolled back":            {statements: []string{"SAVEPOINT a", "INSERT INTO t VALUES ('a', 1)", "ROLLBACK TO a"}, want: branches.VotePrepare},
		"serializable select":          {begin: serializable, statements: []string{"SELECT * FROM t"}, want: branches.VotePrepare},
		"serializable by text":         {statements: []string{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SELECT * FROM t"}, want: branches.VotePrepare},
		"notice":                       {statements: []string{"SELECT * FROM t"}, unit: branches.Unit{Notice: true}, want: branches.VotePrepare},
		"read-only":                    {begin: branches.BeginOptions{ReadOnly: true}, statements: []string{"SELECT * FROM t"}, want: branches.VoteReadOnly},
		"read-only by text":            {statements: []string{"SET TRANSACTION READ ONLY", "SELECT * FROM t"}, want: branches.VoteReadOnly},
		"read-only by setting":         {statements: []string{"SET LOCAL transaction_read_only = on"}, want: branches.VoteReadOnly},
		"read-only by function":        {statements: []string{"SELECT set_config('transaction_read_only', 'on', true)"}, want: branches.VoteReadOnly},
		"read-only in odd spelling":    {statements: []string{"set transaction /* so */ Read\n -- x\n Only"}, want: branches.VoteReadOnly},
		"read-only, temporary table":   {statements: []string{"CREATE TEMPORARY TABLE x (y int)", "SET TRANSACTION READ ONLY", "INSERT INTO x VALUES (1)"}, want: branches.VoteReadOnly},
		"read-only serializable":       {begin: branches.BeginOptions{ReadOnly: true, Isolation: serializable.Isolation}, statements: []string{"SELECT * FROM t"}, want: branches.VoteReadOnly},
		"read-write though begun so":   {begin: branches.BeginOptions{ReadOnly: true}, statements: []string{"SET TRANSACTION READ WRITE", "INSERT INTO t VALUES ('a', 1)"}, want: branches.VotePrepare},
		"select, foreign table around": {setup: "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; CREATE FOREIGN TABLE f (x int) SERVER s", statements: []string{"SELECT * FROM t"}, want: branches.VotePrepare},
	} {
		t.Run(name, func(t *testing.T) {
			p := shared.in(t).emptied()
			if row.setup != "" {
				p = newPlace(t)
				p.cluster.Exec(t, p.dsn, row.setup)
			}
			store := p.open(postgres.Options{})
			row.begin.Shared = true
			u := begin(t, connect(t, store), row.begin)
			for _, s := range row.statements {
				u.exec(s)
			}
			if w, ok := u.Branch.(branches.Writer); ok && w.Wrote() && row.want != branches.VotePrepare {
				t.Error("Wrote = true")
			}
			staged, err := u.stage(row.unit)
			if err != nil || staged.Vote != row.want {
				t.Fatalf("Stage = %s, %v, want %s", staged.Vote, err, row.want)
			}
			if err := u.Prepare(t.Context(), u.gid); err != nil {
				t.Fatal(err)
			}
			want := branches.FateAbsent
			if row.want == branches.VotePrepare {
				want = branches.FateApplied
				err = u.Finish(t.Context(), u.ref())
			} else {
				err = u.Commit(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := fate(t.Context(), t, store, u.txn); got != want {
				t.Errorf("fate = %s, want %s", got, want)
			}
		})
	}
}

// Read-only by a setting of the role or the session before the unit.
func TestReadOnlyByDefault(t *testing.T) {
	p := newPlace(t)
	session := connect(t, p.open(postgres.Options{}))
	if _, err := session.Exec(t.Context(), "SET default_transaction_read_only = on", nil); err != nil {
		t.Fatal(err)
	}
	for _, onePhase := range []bool{true, false} {
		u := begin(t, session, branches.BeginOptions{Shared: true})
		u.exec("SELECT * FROM t")
		staged, err := u.stage(branches.Unit{OnePhase: onePhase})
		if err != nil || staged.Vote != branches.VoteReadOnly {
			t.Errorf("Stage = %s, %v, want read-only", staged.Vote, err)
		}
		if err := u.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Only the tags of what was written count, and not those that a savepoint took
// back.
func TestWrote(t *testing.T) {
	p := newPlace(t)
	session := connect(t, p.open(postgres.Options{}))
	for _, row := range []struct {
		statement string
		query     bool
		want      bool
	}{
		{"INSERT INTO t VALUES ('a', 1)", false, true},
		{"INSERT INTO t SELECT 'x' WHERE false", false, false},
		{"INSERT INTO t VALUES ('a', 1) RETURNING k", true, true},
		{"/* trace */ -- id\n insert INTO t VALUES ('a', 1) RETURNING k", true, true},
		{"WITH x AS (SELECT 1) INSERT INTO t VALUES ('a', 1)", false, true},
		{"SELECT * FROM generate_series(1, 3)", false, false},
		{"SELECT * FROM generate_series(1, 3)", true, false},
		{"CREATE TABLE x (y int)", false, false},
		{"UPDATE t SET v = 1", false, false},
	} {
		u := begin(t, session, branches.BeginOptions{Shared: true})
		if row.query {
			rows, err := session.Query(t.Context(), row.statement, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			u.exec(row.statement)
		}
		if got := u.Branch.(*postgres.Branch).Wrote(); got != row.want {
			t.Errorf("Wrote after %s = %t, want %t", row.statement, got, row.want)
		}
		if err := u.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	u := begin(t, session, branches.BeginOptions{Shared: true})
	b := u.Branch.(*postgres.Branch)
	if err := errors.Join(b.Savepoint(t.Context(), "s"), u.try("INSERT INTO t VALUES ('a', 1)"), b.RollbackTo(t.Context(), "s")); err != nil {
		t.Fatal(err)
	}
	if b.Wrote() {
		t.Error("Wrote after ROLLBACK TO = true")
	}
}

// Deferred constraints speak at S3, where aborting is cheapest.
func TestDeferredConstraint(t *testing.T) {
	for _, onePhase := range []bool{true, false} {
		p := newPlace(t)
		p.cluster.Exec(t, p.dsn, "CREATE TABLE child (k text REFERENCES t DEFERRABLE INITIALLY DEFERRED)")
		store := p.open(postgres.Options{})
		session := connect(t, store)
		u := begin(t, session, branches.BeginOptions{Shared: true})
		u.exec("INSERT INTO child VALUES ('nobody')")
		_, err := u.stage(branches.Unit{OnePhase: onePhase})
		switch {
		case err == nil && onePhase:
			err = u.Commit(t.Context())
		case err == nil:
			err = u.Prepare(t.Context(), u.gid)
		}
		pgErr, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || pgErr.Code != "23503" || branches.Classify(store, err) != branches.Constraint || branches.IsUnknown(err) {
			t.Fatalf("one phase %t: %v, want the foreign key's error", onePhase, err)
		}
		if err := u.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !session.Usable() {
			t.Error("session is not usable")
		}
		if n := p.cluster.Int(t, p.dsn, "SELECT count(*) FROM child"); n != 0 {
			t.Errorf("%d rows", n)
		}
	}
}

// A trigger or rule that suppresses the marker would make a committed branch
// look as if it never was.
func TestMarkerSuppressed(t *testing.T) {
	for _, hook := range []string{
		"CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER no BEFORE INSERT ON dat_applied FOR EACH ROW EXECUTE FUNCTION no()",
		"CREATE RULE no AS ON INSERT TO dat_applied DO INSTEAD NOTHING",
	} {
		for _, onePhase := range []bool{true, false} {
			p := newPlace(t)
			p.cluster.Exec(t, p.dsn, hook)
			u := begin(t, connect(t, p.open(postgres.Options{})), branches.BeginOptions{Shared: true})
			u.exec("INSERT INTO t VALUES ('a', 1)")
			_, err := u.stage(branches.Unit{OnePhase: onePhase})
			switch {
			case err == nil && onePhase:
				err = u.Commit(t.Context())
			case err == nil:
				// Prepared, and not to be committed: it is rolled back by its gid.
				if err = u.Prepare(t.Context(), u.gid); branches.IsUnknown(err) {
					if abort := p.open(postgres.Options{}).Abort(t.Context(), u.ref()); abort != nil {
						t.Error(abort)
					}
					err = errors.Unwrap(err)
				}
			}
			if err == nil || branches.IsUnknown(err) {
				t.Errorf("one phase %t: a suppressed marker = %v, want an error", onePhase, err)
			}
			if err := u.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := p.rows(); n != 0 {
				t.Errorf("one phase %t: %d rows committed without a marker", onePhase, n)
			}
		}
	}
}

func TestStageWithoutTables(t *testing.T) {
	dsn := pgtest.Server(t).Database(t, "bare")
	store := openStore(t, dsn, postgres.Options{})
	for _, onePhase := range []bool{true, false} {
		u := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
		u.exec("CREATE TABLE x (y int)")
		_, err := u.stage(branches.Unit{OnePhase: onePhase})
		if onePhase && err == nil {
			err = u.Commit(t.Context())
		}
		if !errors.Is(err, branches.ErrNotInstalled) || branches.IsUnknown(err) {
			t.Errorf("one phase %t: %v, want ErrNotInstalled", onePhase, err)
		}
	}
	if _, err := store.Meta(t.Context()); !errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("Meta = %v, want ErrNotInstalled", err)
	}
	if err := store.Probe(t.Context()); !errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("Probe = %v, want ErrNotInstalled", err)
	}
	if _, err := store.Settle(t.Context(), branches.TxnID{1}); !errors.Is(err, branches.ErrNotInstalled) {
		t.Errorf("Settle = %v, want ErrNotInstalled", err)
	}
	if err := store.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Probe(t.Context()); err != nil {
		t.Errorf("Probe after Install = %v", err)
	}
}

func TestStageNeedsTime(t *testing.T) {
	u := begin(t, connect(t, newPlace(t).open(postgres.Options{})), branches.BeginOptions{Shared: true})
	u.exec("INSERT INTO t VALUES ('a', 1)")
	if _, err := u.Stage(t.Context(), branches.Unit{Txn: u.txn, Marker: true, TxTime: hlc.Time(0)}); err == nil {
		t.Error("Stage without dat_tx_time = nil: its marker would be a tombstone")
	}
}

// A single-store program is told what pgx tells it.
func TestPlainCommitIsPgx(t *testing.T) {
	p := newPlace(t)
	session := connect(t, p.open(postgres.Options{}))
	plain := func(statement string) (unit, error) {
		u := begin(t, session, branches.BeginOptions{})
		failed := u.try(statement)
		if _, err := u.Stage(t.Context(), branches.Unit{Txn: u.txn, OnePhase: true}); err != nil {
			if failed == nil || !errors.Is(err, failed) || !errors.Is(err, pgx.ErrTxCommitRollback) {
				t.Errorf("Stage of a failed transaction = %v, want the statement's error and pgx's", err)
			}
		}
		return u, failed
	}
	u, _ := plain("INSERT INTO t VALUES ('a', 1)")
	if err := u.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if n := p.cluster.Int(t, p.dsn, "SELECT count(*) FROM dat_applied"); n != 0 {
		t.Errorf("%d markers of a program that has none", n)
	}
	u, failed := plain("INSERT INTO t VALUES ('a', 1)")
	if _, ok := failed.(*pgconn.PgError); !ok { //nolint:errorlint // GORM asserts the type directly
		t.Errorf("a statement's error is %T, want *pgconn.PgError itself", failed)
	}
	if err := u.Commit(t.Context()); err != pgx.ErrTxCommitRollback { //nolint:errorlint // pgx's own value
		t.Errorf("Commit of a failed transaction = %v, want pgx.ErrTxCommitRollback", err)
	}
	if !session.Usable() {
		t.Error("session is not usable")
	}
}

// A savepoint that the user's own text rolls back to clears the doom, and the
// next failure is the one that is told.
func TestDoomAfterRollbackByText(t *testing.T) {
	p := newPlace(t)
	u := begin(t, connect(t, p.open(postgres.Options{})), branches.BeginOptions{})
	u.exec("SAVEPOINT s")
	first := u.try("SELECT first")
	if err := u.Doomed(); first == nil || !errors.Is(err, first) {
		t.Errorf("Doomed = %v, want %v", err, first)
	}
	u.exec("ROLLBACK TO s")
	if err := u.Doomed(); err != nil {
		t.Errorf("Doomed after ROLLBACK TO = %v", err)
	}
	second := u.try("SELECT second")
	_ = u.try("SELECT 1") // fails because of it
	if err := u.Doomed(); !errors.Is(err, second) || errors.Is(err, first) {
		t.Errorf("Doomed = %v, want %v", err, second)
	}
}
