package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/postgres"
)

func values(args ...any) []driver.NamedValue {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return named
}

// pgxConn is what a program without this driver has.
func pgxConn(t *testing.T, dsn string) *stdlib.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := stdlib.GetConnector(*config).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*stdlib.Conn)
}

// answer is everything a statement tells a program.
type answer struct {
	Affected int64
	Columns  []string
	Types    []string
	Rows     [][]driver.Value
	Code     string // and type of the error
}

func (a *answer) failed(t *testing.T, err error) bool {
	t.Helper()
	if err == nil {
		return false
	}
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		t.Errorf("error is %T, want the server's", err)
		return true
	}
	a.Code = fmt.Sprintf("%T %s", err, pgErr.Code) // the type: GORM asserts it
	return true
}

func (a *answer) read(t *testing.T, rows driver.Rows, err error) {
	t.Helper()
	if a.failed(t, err) {
		return
	}
	a.Columns = rows.Columns()
	types := rows.(driver.RowsColumnTypeDatabaseTypeName)
	for i := range a.Columns {
		a.Types = append(a.Types, types.ColumnTypeDatabaseTypeName(i))
	}
	for {
		row := make([]driver.Value, len(a.Columns))
		err := rows.Next(row)
		if errors.Is(err, io.EOF) {
			break
		}
		if a.failed(t, err) {
			break
		}
		a.Rows = append(a.Rows, row)
	}
	_ = rows.Close()
}

// A session answers every statement as pgx's stdlib does.
func TestStatementsAreStdlibs(t *testing.T) {
	p := newPlace(t)
	ours, theirs := connect(t, p.open(postgres.Options{})), pgxConn(t, p.dsn)
	for _, row := range []struct {
		query string
		args  []any
	}{
		{"INSERT INTO t VALUES ($1, $2)", []any{"a", 1}},
		{"INSERT INTO t VALUES ('a', 1) ON CONFLICT DO NOTHING", nil},
		{"SELECT k, v, NULL, 1.5::float8, now() < '2000-01-01', '{1,2}'::int[], '{\"a\":1}'::jsonb FROM t WHERE k = $1", []any{"a"}},
		{"SELECT $1::text", []any{pgx.QueryExecModeSimpleProtocol, "x"}},
		{"SELECT $1::int[]", []any{[]int32{1, 2}}},
		{"SELECT 1/$1::int", []any{0}},
		{"SELECT x/(x-2) FROM generate_series(1,3) x", nil},
		{"SELECT nonsense", nil},
		{"INSERT INTO t VALUES ('b', 1) RETURNING k", nil},
		{"DELETE FROM t", nil},
	} {
		var got, want [2]answer
		for i, conn := range []interface {
			QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error)
			ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error)
		}{theirs, asStdlib{ours}} {
			into := &want
			if i == 1 {
				into = &got
			}
			if _, err := theirs.ExecContext(t.Context(), "TRUNCATE t", nil); err != nil {
				t.Fatal(err)
			}
			result, err := conn.ExecContext(t.Context(), row.query, values(row.args...))
			if !into[0].failed(t, err) {
				into[0].Affected, _ = result.RowsAffected()
			}
			if _, err := theirs.ExecContext(t.Context(), "TRUNCATE t", nil); err != nil {
				t.Fatal(err)
			}
			rows, err := conn.QueryContext(t.Context(), row.query, values(row.args...))
			into[1].read(t, rows, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-pgx +ours)\n%s", row.query, diff)
		}
	}
}

type asStdlib struct{ branches.Session }

func (s asStdlib) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return s.Query(ctx, query, args)
}

func (s asStdlib) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return s.Exec(ctx, query, args)
}

func TestPreparedStatement(t *testing.T) {
	p := newPlace(t)
	session := connect(t, p.open(postgres.Options{}))
	stmt, err := session.Prepare(t.Context(), "INSERT INTO t VALUES ($1, 1) RETURNING k")
	if err != nil {
		t.Fatal(err)
	}
	if stmt.NumInput() != 1 {
		t.Errorf("NumInput = %d", stmt.NumInput())
	}
	u := begin(t, session, branches.BeginOptions{Shared: true})
	if _, err := stmt.(driver.StmtExecContext).ExecContext(t.Context(), values("a")); err != nil {
		t.Fatal(err)
	}
	var got answer
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(t.Context(), values("b"))
	got.read(t, rows, err)
	if len(got.Rows) != 1 || !u.Branch.(*postgres.Branch).Wrote() {
		t.Errorf("prepared statement returned %v, wrote %t", got.Rows, u.Branch.(*postgres.Branch).Wrote())
	}
	if _, err := session.Prepare(t.Context(), "SELECT nonsense"); err == nil || u.Doomed() == nil {
		t.Error("a failed Prepare has not doomed its branch")
	}
	if err := errors.Join(u.Rollback(t.Context()), stmt.Close()); err != nil {
		t.Error(err)
	}
}

// At most two allocations a statement beside pgx's own, of which the facade
// needs one.
func TestAllocations(t *testing.T) {
	p := newPlace(t)
	ours, theirs := connect(t, p.open(postgres.Options{})), pgxConn(t, p.dsn)
	ctx, args := t.Context(), values(int64(1))
	row := make([]driver.Value, 1)
	read := func(rows driver.Rows, err error) {
		if err == nil {
			err = rows.Next(row)
		}
		if err == nil {
			err = rows.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	exec := func(_ driver.Result, err error) {
		if err != nil {
			t.Error(err)
		}
	}
	for name, pair := range map[string][2]func(){
		"exec":  {func() { exec(theirs.ExecContext(ctx, "SELECT $1::int8", args)) }, func() { exec(ours.Exec(ctx, "SELECT $1::int8", args)) }},
		"query": {func() { read(theirs.QueryContext(ctx, "SELECT $1::int8", args)) }, func() { read(ours.Query(ctx, "SELECT $1::int8", args)) }},
	} {
		want, got := testing.AllocsPerRun(200, pair[0]), testing.AllocsPerRun(200, pair[1])
		if got > want+1 {
			t.Errorf("%s: %v allocations, pgx alone %v", name, got, want)
		}
	}
}

func TestBegin(t *testing.T) {
	p := newPlace(t)
	session := connect(t, p.open(postgres.Options{LockTimeout: 10 * time.Second}))
	show := func(setting string) string {
		t.Helper()
		var got answer
		rows, err := session.Query(t.Context(), "SHOW "+setting, nil)
		got.read(t, rows, err)
		return got.Rows[0][0].(string)
	}
	for _, row := range []struct {
		own     string
		opts    branches.BeginOptions
		setting string
		want    string
	}{
		{"0", branches.BeginOptions{Shared: true}, "lock_timeout", "10s"},
		{"0", branches.BeginOptions{}, "lock_timeout", "0"},
		{"3s", branches.BeginOptions{Shared: true}, "lock_timeout", "3s"},
		{"500ms", branches.BeginOptions{Shared: true}, "lock_timeout", "500ms"},
		{"1min", branches.BeginOptions{Shared: true}, "lock_timeout", "10s"},
		{"1h", branches.BeginOptions{Shared: true}, "lock_timeout", "10s"},
		{"0", branches.BeginOptions{Shared: true}, "transaction_isolation", "read committed"},
		{"0", branches.BeginOptions{Isolation: driver.IsolationLevel(sql.LevelRepeatableRead)}, "transaction_isolation", "repeatable read"},
		{"0", branches.BeginOptions{Isolation: driver.IsolationLevel(sql.LevelSnapshot)}, "transaction_isolation", "repeatable read"},
		{"0", branches.BeginOptions{Isolation: driver.IsolationLevel(sql.LevelSerializable), Shared: true}, "transaction_isolation", "serializable"},
		{"0", branches.BeginOptions{Isolation: driver.IsolationLevel(sql.LevelReadUncommitted)}, "transaction_isolation", "read uncommitted"},
		{"0", branches.BeginOptions{ReadOnly: true, Shared: true}, "transaction_read_only", "on"},
		{"0", branches.BeginOptions{}, "transaction_read_only", "off"},
	} {
		if _, err := session.Exec(t.Context(), "SET lock_timeout = '"+row.own+"'", nil); err != nil {
			t.Fatal(err)
		}
		u := begin(t, session, row.opts)
		if _, err := session.Begin(t.Context(), row.opts); err == nil || errors.Is(err, driver.ErrBadConn) {
			t.Errorf("second Begin on one session = %v", err)
		}
		b := u.Branch.(*postgres.Branch)
		if err := errors.Join(b.Savepoint(t.Context(), "s"), b.RollbackTo(t.Context(), "s")); err != nil {
			t.Fatal(err)
		}
		if got := show(row.setting); got != row.want {
			t.Errorf("%+v, own lock_timeout %s: %s = %s, want %s", row.opts, row.own, row.setting, got, row.want)
		}
		if err := u.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := show("lock_timeout"); row.own == "0" && got != "0" {
			t.Errorf("lock_timeout after the branch = %s", got)
		}
	}
	if _, err := session.Begin(t.Context(), branches.BeginOptions{Isolation: driver.IsolationLevel(sql.LevelLinearizable)}); err == nil {
		t.Error("an isolation level that the server lacks was taken")
	}
}

// What travels with BEGIN takes no snapshot: SET TRANSACTION may still follow.
func TestSetTransactionMayBeTheFirstStatement(t *testing.T) {
	for _, mode := range []string{"cache_statement", "simple_protocol"} {
		p := newPlace(t)
		store := openStore(t, p.dsn+"&default_query_exec_mode="+mode, postgres.Options{LockTimeout: time.Second})
		u := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
		u.exec("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
		u.exec("INSERT INTO t VALUES ('a', 1)")
		if err := u.prepared().Finish(t.Context(), u.ref()); err != nil {
			t.Fatal(err)
		}
		if n := p.rows(); n != 1 {
			t.Errorf("%s: %d rows", mode, n)
		}
	}
}

// A wait for a lock that another unit holds ends, and says what it was.
func TestLockTimeout(t *testing.T) {
	p := newPlace(t)
	store := p.open(postgres.Options{LockTimeout: 50 * time.Millisecond})
	holder := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
	holder.exec("INSERT INTO t VALUES ('a', 1)")
	waiter := begin(t, connect(t, store), branches.BeginOptions{Shared: true})
	err := waiter.try("INSERT INTO t VALUES ('a', 2)")
	if branches.Classify(store, err) != branches.Transient {
		t.Errorf("wait for a lock = %v, want a transient error", err)
	}
}

// An error that comes with the rows dooms as one that comes before them.
func TestErrorWhileReadingDooms(t *testing.T) {
	p := newPlace(t)
	session := connect(t, p.open(postgres.Options{}))
	for _, byClose := range []bool{true, false} {
		u := begin(t, session, branches.BeginOptions{})
		rows, err := session.Query(t.Context(), "SELECT 1/(x-5000) FROM generate_series(1, 10000) x", nil)
		if err != nil {
			t.Fatal(err)
		}
		var failed error
		for row := make([]driver.Value, 1); !byClose && failed == nil; {
			failed = rows.Next(row)
		}
		if err := rows.Close(); byClose {
			failed = err
		}
		if failed == nil || !errors.Is(u.Doomed(), failed) {
			t.Errorf("met at Close %t: error %v, Doomed %v", byClose, failed, u.Doomed())
		}
		if err := u.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// wrapper is a tracing driver's connection.
type wrapper struct {
	driver.Conn
	inner any
}

func (w wrapper) Unwrap() any { return w.inner }

type stores map[string]any

func (s stores) Store(name string) any { return s[name] }

func TestConnLooksThroughWrappers(t *testing.T) {
	p := newPlace(t)
	session := connect(t, p.open(postgres.Options{}))
	want := session.(branches.Raw).Raw().(*pgx.Conn)
	for name, conn := range map[string]any{
		"session": session, "stores": stores{"pg": session}, "raw": stores{"pg": want},
		"wrapped": wrapper{inner: wrapper{inner: stores{"pg": session}}},
	} {
		if got, err := postgres.Conn(conn, "pg"); err != nil || got != want {
			t.Errorf("%s: Conn = %p, %v", name, got, err)
		}
	}
	for name, conn := range map[string]any{"nil": nil, "other": 7, "no session": stores{}, "loop": loop{}, "error": stores{"pg": io.EOF}} {
		if got, err := postgres.Conn(conn, "pg"); err == nil {
			t.Errorf("%s: Conn = %p", name, got)
		}
	}
}

type loop struct{}

func (l loop) Raw() any { return l }
