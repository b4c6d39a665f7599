package clickhouse_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	client "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

const mixed = ` (id UInt32, s String, d Date, n Nullable(Int64), a Array(UInt8), dec Decimal(9, 2), t DateTime64(3, 'UTC'), f FixedString(3),
	e Enum8('a' = 1, 'b\'c' = 2), u UUID, m Map(String, Int64), v UInt8 DEFAULT 7, mat UInt8 MATERIALIZED 1, "odd name" String,
	dat_txn Nullable(UUID), dat_tx_time Nullable(Int64)) ENGINE = MergeTree ORDER BY id`

func named(values map[string]any) []driver.NamedValue {
	var list []driver.NamedValue
	for name, v := range values {
		list = append(list, driver.NamedValue{Ordinal: len(list) + 1, Name: name, Value: v})
	}
	return list
}

// Every way to write an INSERT, and the rows it makes.
func TestInsertStatements(t *testing.T) {
	at := time.Date(2024, 5, 6, 7, 8, 9, 123_000_000, time.UTC)
	tests := []struct {
		query string
		args  []driver.NamedValue
		shows string // columns to show
		want  string
	}{
		{"INSERT INTO m (id, s) VALUES (?, ?)", args(1, "x"), "id, s", "1\tx"},
		{"insert into m (id, s) values (1, 'it''s'), (2, 'a\\'b\\n'), (3, '?')", nil, "id, s", "1\tit\\'s\n2\ta\\'b\\n\n3\t?"},
		{"INSERT INTO m (id, s) VALUES ($2, $1), ($2, 'z')", args("x", 5), "id, s", "5\tx\n5\tz"},
		{"INSERT INTO m (id, s) VALUES (@id, @text)", named(map[string]any{"id": 6, "text": "named"}), "id, s", "6\tnamed"},
		{"INSERT INTO m (id, s) VALUES ({id:UInt32}, {text:String})", named(map[string]any{"id": 6, "text": "named"}), "id, s", "6\tnamed"},
		{"INSERT INTO m (id, s) VALUES (?, upper(?)), (1 + 1, concat(?, '!'))", args(7, "up", "b"), "id, s", "2\tb!\n7\tUP"},
		{"INSERT INTO m (id, s) VALUES (@id, upper(@text))", named(map[string]any{"id": 6, "text": "named"}), "id, s", "6\tNAMED"},
		{"INSERT INTO m (id, s) VALUES (1, lower($1))", args("UP"), "id, s", "1\tup"},
		{"INSERT INTO m (id, d, n, a) VALUES (1, '2024-01-02', NULL, [1, 2]), (2, toDate('2020-02-03') + 1, -5, [])", nil, "id, d, n, a", "1\t2024-01-02\t\\N\t[1,2]\n2\t2020-02-04\t-5\t[]"},
		{"INSERT INTO m (dec, t, m) VALUES (1.50, '2024-05-06 07:08:09.123', map('k', 5, 'l', -1))", nil, "dec, t, m", "1.5\t2024-05-06 07:08:09.123\t{'k':5,'l':-1}"},
		{"INSERT INTO m (dec, t, f, e) VALUES (?, ?, ?, ?)", args("-1.25", at, []byte("ab"), 2), "dec, t, f, e", "-1.25\t2024-05-06 07:08:09.123\tab\\0\tb\\'c"},
		{"INSERT INTO m (id, v) VALUES (8, no_such_thing)", nil, "", ""},
		{"INSERT INTO m (m) VALUES ({'k': 5})", nil, "", ""},
		{"INSERT INTO m (id) VALUES (9)", nil, "id, v, mat", "9\t7\t1"},
		{"INSERT INTO m (id, `odd name`) VALUES (9, 'quoted')", nil, "`odd name`", "quoted"},
		{"/* a */ INSERT INTO TABLE m -- b\n (id, s) VALUES # c\n (1, /* 'x' */ 'y') ;", nil, "id, s", "1\ty"},
		{"INSERT INTO m (id, s)", args(3, "no values"), "id, s", "3\tno values"},
		{"INSERT INTO m (id, s) VALUES", args(3, "no rows"), "id, s", "3\tno rows"},
		{"INSERT INTO m (id, u) VALUES (1, '0190a0b0-0000-7000-8000-000000000001')", nil, "u", "0190a0b0-0000-7000-8000-000000000001"},
	}
	for _, protocol := range chtest.Protocols {
		p := newPlace(t, chtest.Server(t))
		p.cluster.Exec(t, "CREATE TABLE "+p.database+".m"+mixed)
		session := connect(t, p.open(t, protocol, clickhouse.Options{}))
		for _, c := range tests {
			u := begin(t, session)
			_, err := session.Exec(t.Context(), c.query, c.args)
			if c.want == "" {
				if err == nil {
					t.Errorf("%s: %s = nil", protocol, c.query)
				}
				if err := u.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %s: %v", protocol, c.query, err)
				_ = u.Rollback(t.Context())
				continue
			}
			u.commit(t)
			got := p.cluster.Ask(t, "SELECT "+c.shows+" FROM "+p.database+".m WHERE dat_txn='"+u.txn.String()+"' ORDER BY id, s")
			if got != c.want {
				t.Errorf("%s: %s\nmade %q\nwant %q", protocol, c.query, got, c.want)
			}
		}
	}
}

// One that was prepared runs as often as is wanted, in units and outside.
func TestPreparedInsert(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	session := connect(t, p.open(t, chtest.Native, clickhouse.Options{Markers: true}))
	st, err := session.Prepare(t.Context(), "INSERT INTO t (k, n) VALUES (?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	run := func(i int) {
		result, err := st.(driver.StmtExecContext).ExecContext(t.Context(), args(fmt.Sprint("k", i), i))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := result.RowsAffected(); n != 1 || err != nil {
			t.Errorf("affected %d, %v", n, err)
		}
	}
	u := begin(t, session)
	for i := range 1000 {
		run(i)
	}
	u.commit(t)
	run(1000)
	if got := p.cluster.Ask(t, "SELECT count(), sum(n), uniqExact(dat_txn) FROM "+p.database+".t"); got != "1001\t500500\t2" {
		t.Errorf("rows, sum, units: %q", got)
	}
	if n := p.cluster.Int(t, "SELECT count() FROM "+p.database+".dat_applied"); n != 2 {
		t.Errorf("%d markers, want 2", n)
	}
	if _, err := session.Prepare(t.Context(), "INSERT INTO nowhere (k) VALUES (?)"); err == nil {
		t.Error("prepare into a table that is not there = nil")
	}
}

// What a unit cannot hold is refused with the reason, and leaves the unit as it was.
func TestRefusedStatements(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	store := p.open(t, chtest.Native, clickhouse.Options{})
	session := connect(t, store)
	for _, c := range []struct{ query, reason string }{
		{"INSERT INTO t (k) SELECT 'x'", "INSERT … SELECT is evaluated by the server"},
		{"INSERT INTO t WITH 'x' AS y SELECT y, 1", "INSERT … SELECT is evaluated by the server"},
		{"INSERT INTO t (SELECT 'x')", "INSERT … SELECT is evaluated by the server"},
		{"INSERT INTO t SETTINGS async_insert=1 VALUES ('x')", "INSERT … SETTINGS"},
		{"INSERT INTO t FORMAT CSV", "INSERT … FORMAT"},
		{"INSERT INTO FUNCTION remote('h', d.t) VALUES ('x')", "INSERT INTO FUNCTION"},
		{"INSERT INTO t (* EXCEPT (n)) VALUES ('x')", "name the columns"},
		{"INSERT INTO t (k, n) VALUES ('x', DEFAULT)", "leave the column out"},
		{"INSERT INTO t (k) VALUES ('x'); DROP TABLE t", "one statement at a time"},
		{"INSERT INTO t (k) VALUES ('x', 'y')", "2 values for 1 columns"},
		{"INSERT INTO t (k, n) VALUES ('x', 1), ('y')", "row 2 has 1 values"},
		{"INSERT INTO t (nonsense) VALUES ('x')", "there is no column nonsense"},
		{"INSERT INTO t (k, k) VALUES ('x', 'y')", "column k is named twice"},
		{"INSERT INTO t (k, dat_txn) VALUES ('x', NULL)", "column dat_txn is filled by the driver"},
		{"INSERT INTO nowhere (k) VALUES ('x')", "there is no table"},
		{"ALTER TABLE t DELETE WHERE 1", "ALTER inside a transaction"},
		{"ALTER TABLE t UPDATE n = 1 WHERE 1", "ALTER inside a transaction"},
		{"DELETE FROM t WHERE 1", "DELETE inside a transaction"},
		{"UPDATE t SET n = 1 WHERE 1", "UPDATE inside a transaction"},
		{"TRUNCATE TABLE t", "TRUNCATE inside a transaction"},
		{"CREATE TABLE x (k Int8) ENGINE = Memory", "CREATE inside a transaction"},
		{"DROP TABLE t", "DROP inside a transaction"},
		{"OPTIMIZE TABLE t FINAL", "OPTIMIZE inside a transaction"},
		{"SYSTEM FLUSH LOGS", "SYSTEM inside a transaction"},
		{"SET max_threads = 1", "SET changes one connection of a pool"},
		{"USE system", "USE changes one connection of a pool"},
		{"INSERT INTO t (k) VALUES (?)", "0 arguments for 1 placeholders"},
		{"INSERT INTO t (k) VALUES (@k)", "no argument named k"},
		{"INSERT INTO t (k, n) VALUES (?, @n)", "placeholders of two kinds"},
		{"INSERT INTO t (k) VALUES (nonsense())", "nonsense"},
		{"WITH x AS (SELECT 1) INSERT INTO t (k) SELECT toString(1)", "it does not begin with INSERT"},
		{"-- DELETE\n/* SELECT */ ALTER TABLE t MODIFY COMMENT 'x'", "ALTER inside a transaction"},
		{"INSERT INTO `t` (`k`) VALUES ('a') /* then */ SELECT 'x' -- ", "the statement goes on with SELECT"},
	} {
		u := begin(t, session)
		execute(t, session, "INSERT INTO t (k, n) VALUES ('kept', 1)")
		_, err := session.Exec(t.Context(), c.query, nil)
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s\nerror %v\nwant  %s", c.query, err, c.reason)
		} else if kind := branches.Classify(store, err); kind != branches.Permanent {
			t.Errorf("%s is %s, want permanent", c.query, kind)
		}
		if err := u.Doomed(); err != nil {
			t.Errorf("%s has doomed the unit: %v", c.query, err)
		}
		u.commit(t)
		if n := p.cluster.Int(t, "SELECT count() FROM "+p.database+".t WHERE dat_txn='"+u.txn.String()+"'"); n != 1 {
			t.Errorf("%s: the unit has %d rows, want the one that was kept", c.query, n)
		}
	}
}

// Outside of a unit everything goes to the server, and reads do in both.
func TestPassedStatements(t *testing.T) {
	for _, protocol := range chtest.Protocols {
		p := newPlace(t, chtest.Server(t))
		session := connect(t, p.open(t, protocol, clickhouse.Options{Markers: true}))
		execute(t, session, "CREATE TABLE bare (k String, t DateTime64(9, 'UTC')) ENGINE = MergeTree ORDER BY k")
		at := time.Date(2024, 1, 2, 3, 4, 5, 678_901_234, time.UTC)
		execute(t, session, "INSERT INTO bare VALUES (?, ?), ('b', ?)", "a", at, at)
		execute(t, session, "INSERT INTO bare SELECT 'c', t FROM bare WHERE k = 'a'")
		execute(t, session, "INSERT INTO bare SETTINGS async_insert=0 VALUES ('d', '2024-01-02 03:04:05.678901234')")
		execute(t, session, "ALTER TABLE bare DELETE WHERE k = 'b' SETTINGS mutations_sync=2")
		if got := p.cluster.Ask(t, "SELECT groupArray(k), countIf(t = '2024-01-02 03:04:05.678901234') FROM (SELECT * FROM "+p.database+".bare ORDER BY k)"); got != "['a','c','d']\t3" {
			t.Errorf("%s: rows %s", protocol, got)
		}
		if n := p.cluster.Int(t, "SELECT count() FROM "+p.database+".dat_applied"); n != 0 {
			t.Errorf("%d markers of a table without dat_txn", n)
		}
		execute(t, session, "INSERT INTO t (k) VALUES ('one'), ('two')")
		if got := p.cluster.Ask(t, "SELECT count(), uniqExact(dat_txn), min(dat_tx_time)>0, (SELECT count() FROM "+p.database+".dat_applied) FROM "+p.database+".t"); got != "2\t1\t1\t1" {
			t.Errorf("%s: rows, units, stamped, markers: %s", protocol, got)
		}
		u := begin(t, session)
		rows := query(t, session, "SELECT k FROM t ORDER BY k")
		if len(rows) != 2 || rows[0][0] != "one" {
			t.Errorf("read inside of a unit: %v", rows)
		}
		execute(t, session, "EXPLAIN SELECT 1")
		if err := u.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A unit that was begun to read writes nothing.
func TestReadOnlyUnit(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	session := connect(t, p.open(t, chtest.Native, clickhouse.Options{}))
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	branch, err := session.Begin(t.Context(), branches.BeginOptions{Txn: txn, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"INSERT INTO t (k) VALUES ('x')", "ALTER TABLE t DELETE WHERE 1"} {
		if _, err := session.Exec(t.Context(), text, nil); !errors.Is(err, branches.ErrReadOnlyUnit) {
			t.Errorf("%s = %v", text, err)
		}
	}
	if _, err := session.(branches.Copier).CopyFrom(t.Context(), "t", nil, nil); !errors.Is(err, branches.ErrReadOnlyUnit) {
		t.Errorf("append = %v", err)
	}
	if err := branch.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}

// Values that a column cannot hold are refused at once, with column and value,
// and the whole statement with them.
func TestBadValues(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.cluster.Exec(t, "CREATE TABLE "+p.database+".m"+mixed)
	store := p.open(t, chtest.Native, clickhouse.Options{})
	session := connect(t, store)
	long := strings.Repeat("y", 500)
	for _, c := range []struct {
		column string
		value  any
		reason string
	}{
		{"id", nil, "value NULL: NULL, and the column is not Nullable"},
		{"id", (*int)(nil), "NULL"},
		{"id", -1, "value -1: out of range"},
		{"id", int64(math.MaxUint32) + 1, "out of range"},
		{"id", "12", "of a type that the column does not take"},
		{"id", 1.5, "of a type that the column does not take"},
		{"id", true, "of a type that the column does not take"},
		{"v", 256, "out of range"},
		{"n", uint64(math.MaxUint64), "out of range"},
		{"s", 5, "of a type that the column does not take"},
		{"s", []string{"a"}, "of a type that the column does not take"},
		{"d", time.Time{}, "out of range"},
		{"d", "yesterday", "not a time"},
		{"d", time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), "out of range"},
		{"t", time.Date(1850, 1, 1, 0, 0, 0, 0, time.UTC), "out of range"},
		{"dec", "1.234", "more than 2 digits"},
		{"dec", "12345678.00", "out of range"},
		{"dec", 1.5, "give a string or a decimal.Decimal"},
		{"dec", "1e99999", "not a number"},
		{"f", "abcd", "longer than 3 bytes"},
		{"e", "c", "not a name of the Enum"},
		{"e", 3, "not a name of the Enum"},
		{"u", "not-a-uuid", "not a UUID"},
		{"a", []int{1, 2, 300}, "element 2: out of range"},
		{"a", []any{1, nil}, "element 1: NULL"},
		{"a", "[1]", "of a type"},
		{"m", map[string]any{"k": "x"}, "value of key k"},
		{"m", []int{1}, "of a type"},
		{"id", long, "…"},
	} {
		u := begin(t, session)
		_, err := session.Exec(t.Context(), "INSERT INTO m ("+c.column+") VALUES (?)", args(c.value))
		bad, ok := errors.AsType[*clickhouse.ValueError](err)
		switch {
		case !ok || bad.Column != c.column || !strings.Contains(err.Error(), "column "+c.column) || !strings.Contains(err.Error(), c.reason):
			t.Errorf("%v into %s\nerror %v\nwant  %s", c.value, c.column, err, c.reason)
		case branches.Classify(store, err) != branches.Permanent:
			t.Errorf("%v into %s is not permanent", c.value, c.column)
		case len(err.Error()) > 400:
			t.Errorf("error of %d bytes", len(err.Error()))
		}
		if err := u.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	u := begin(t, session)
	execute(t, session, "INSERT INTO m (id) VALUES (1)")
	if _, err := session.Exec(t.Context(), "INSERT INTO m (id) VALUES (?), (?), (?)", args(2, 3, -4)); err == nil {
		t.Error("a row of three is bad, and the statement is not refused")
	}
	n, err := session.(branches.Copier).CopyFrom(t.Context(), "m", []string{"id"}, rowsOf([]any{5}, []any{6}, []any{nil}))
	if err == nil || n != 0 {
		t.Errorf("append with a bad row = %d, %v", n, err)
	}
	if n, err = session.(branches.Copier).CopyFrom(t.Context(), "m", []string{"id"}, rowsOf([]any{7}, []any{8})); err != nil || n != 2 {
		t.Errorf("append = %d, %v", n, err)
	}
	u.commit(t)
	if got := p.cluster.Ask(t, "SELECT groupArray(id) FROM (SELECT id FROM "+p.database+".m ORDER BY id)"); got != "[1,7,8]" {
		t.Errorf("rows %s, want those of the statements that were taken", got)
	}
}

func rowsOf(rows ...[]any) func() ([]any, error) {
	return func() ([]any, error) {
		if len(rows) == 0 {
			return nil, nil
		}
		row := rows[0]
		rows = rows[1:]
		return row, nil
	}
}

func TestPayloadTooLarge(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	store := p.open(t, chtest.Native, clickhouse.Options{MaxPayload: 1000})
	session := connect(t, store)
	u := begin(t, session)
	for i := range 200 {
		execute(t, session, "INSERT INTO t (k, n) VALUES (?, ?)", fmt.Sprint(i*i*7919), i)
	}
	_, err := u.Stage(t.Context(), branches.Unit{Txn: u.txn, TxTime: txTime, Marker: true})
	if !errors.Is(err, clickhouse.ErrTooLarge) || !strings.Contains(err.Error(), "max_payload") || branches.Classify(store, err) != branches.Permanent {
		t.Errorf("stage = %v", err)
	}
}

// The application's own settings in a context reach its reads and not our writes.
func TestContextSettings(t *testing.T) {
	for _, protocol := range chtest.Protocols {
		p := newPlace(t, chtest.Server(t))
		store := p.open(t, protocol, clickhouse.Options{})
		ctx := client.Context(t.Context(), client.WithAsync(false), client.WithQueryID("mine"),
			client.WithSettings(client.Settings{"limit": 1, "async_insert": 1}))
		session := connect(t, store)
		txn, err := branches.NewTxnID()
		if err != nil {
			t.Fatal(err)
		}
		branch, err := session.Begin(ctx, branches.BeginOptions{Txn: txn})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Exec(ctx, "INSERT INTO t (k) VALUES ('a'), ('b')", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := branch.Stage(ctx, branches.Unit{Txn: txn, TxTime: txTime, OnePhase: true, Marker: true}); err != nil {
			t.Fatal(err)
		}
		if err := branch.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if n := p.cluster.Int(t, "SELECT count() FROM "+p.database+".t"); n != 2 {
			t.Errorf("%d rows, want 2", n)
		}
		rows, err := session.Query(ctx, "SELECT k FROM t", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := drain(t, rows); len(got) != 1 {
			t.Errorf("%d rows of a read with limit=1", len(got))
		}
	}
}
