package drevo_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

// named is an argument by name.
func named(name string, v any) driver.NamedValue { return driver.NamedValue{Name: name, Value: v} }

// Arguments become parameters and come back as rows; scalars as they are.
func TestScalars(t *testing.T) {
	_, store := installed(t, drevotest.Server(t))
	session := connect(t, store)
	rows, got := query(t, session, "RETURN $1 AS a, $2 AS `b c`, $n AS n, $f AS f, $b AS b, $i AS i, $none AS none",
		driver.NamedValue{Ordinal: 1, Value: "x"}, driver.NamedValue{Ordinal: 2, Value: int32(7)},
		named("n", "ü\"'\\"), named("f", 1.5), named("b", true), named("i", int64(math.MinInt64)), named("none", nil))
	if want := []string{"a", "b c", "n", "f", "b", "i", "none"}; !cmp.Equal(rows.Columns(), want) {
		t.Errorf("columns %q, want %q", rows.Columns(), want)
	}
	want := [][]driver.Value{{"x", int64(7), "ü\"'\\", 1.5, true, int64(math.MinInt64), nil}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	types := rows.(interface {
		driver.RowsColumnTypeDatabaseTypeName
		driver.RowsColumnTypeScanType
	})
	for i, want := range []struct {
		name string
		scan reflect.Type
	}{
		{"STRING", reflect.TypeFor[string]()},
		{"INTEGER", reflect.TypeFor[int64]()},
		{"STRING", reflect.TypeFor[string]()},
		{"FLOAT", reflect.TypeFor[float64]()},
		{"BOOLEAN", reflect.TypeFor[bool]()},
		{"INTEGER", reflect.TypeFor[int64]()},
		{"", reflect.TypeFor[any]()},
	} {
		if types.ColumnTypeDatabaseTypeName(i) != want.name || types.ColumnTypeScanType(i) != want.scan {
			t.Errorf("column %d is %s, %s, want %v", i, types.ColumnTypeDatabaseTypeName(i), types.ColumnTypeScanType(i), want)
		}
	}
}

// What is no scalar is JSON.
func TestJSON(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	g.Exec(t, "CREATE (:A {title: 'a', n: 9007199254740993, l: [1, 'x', null]})-[:R {w: 1.5}]->(:B {title: 'b'})")
	rows, got := query(t, connect(t, store), "MATCH (a:A)-[r:R]->(b:B) RETURN a, r, a.l AS l, {k: b.title, n: [r.w]} AS m")
	var (
		node struct {
			ID         string
			Labels     []string
			Properties map[string]json.RawMessage
		}
		rel struct {
			ID, Start, End, Type string
			Properties           map[string]float64
		}
	)
	for i, into := range []any{&node, &rel} {
		if err := json.Unmarshal(got[0][i].([]byte), into); err != nil {
			t.Fatalf("%s: %v", got[0][i], err)
		}
	}
	if node.Labels[0] != "A" || string(node.Properties["n"]) != "9007199254740993" || node.ID == "" {
		t.Errorf("node %s", got[0][0])
	}
	if rel.Type != "R" || rel.Start != node.ID || rel.End == rel.Start || rel.Properties["w"] != 1.5 {
		t.Errorf("relationship %s", got[0][1])
	}
	if l, m := string(got[0][2].([]byte)), string(got[0][3].([]byte)); l != `[1,"x",null]` || m != `{"k":"b","n":[1.5]}` {
		t.Errorf("list %s, map %s", l, m)
	}
	for i, want := range []string{"NODE", "RELATIONSHIP", "LIST", "MAP"} {
		if name := rows.(driver.RowsColumnTypeDatabaseTypeName).ColumnTypeDatabaseTypeName(i); name != want {
			t.Errorf("column %d is %s, want %s", i, name, want)
		}
	}
	rows, _ = query(t, connect(t, store), "UNWIND [1, 'x', null] AS v RETURN v")
	if name := rows.(driver.RowsColumnTypeDatabaseTypeName).ColumnTypeDatabaseTypeName(0); name != "ANY" {
		t.Errorf("a column of several types is %s", name)
	}
}

type text string

// What drevo would refuse is refused before it is sent.
func TestParameter(t *testing.T) {
	at := time.Date(2024, 2, 29, 13, 5, 6, 500_000_000, time.FixedZone("", 3600))
	deep := any(1)
	for range 60 {
		deep = []any{deep}
	}
	n := 5
	for _, test := range []struct {
		in      any
		want    any
		refused string
	}{
		{in: uint64(7), want: int64(7)},
		{in: uint64(math.MaxUint64), refused: "64 bits"},
		{in: float32(1.5), want: 1.5},
		{in: text("x"), want: "x"},
		{in: &n, want: int64(5)},
		{in: (*int)(nil), want: nil},
		{in: at, want: "2024-02-29T13:05:06.5+01:00"},
		{in: sql.NullString{}, want: nil},
		{in: sql.NullInt64{Int64: 3, Valid: true}, want: int64(3)},
		{in: []string{"a", "b"}, want: []any{"a", "b"}},
		{in: map[text]any{"k": []int{1}, "t": at}, want: map[string]any{"k": []any{int64(1)}, "t": "2024-02-29T13:05:06.5+01:00"}},
		{in: []int(nil), want: nil},
		{in: map[string]int(nil), want: nil},
		{in: []byte("x"), refused: "base64"},
		{in: map[string]any{"k": [][]byte{{1}}}, refused: "base64"},
		{in: json.RawMessage(`{}`), refused: "base64"},
		{in: map[int]string{1: "a"}, refused: "keys"},
		{in: struct{}{}, refused: "no form"},
		{in: func() {}, refused: "no form"},
		{in: deep, refused: "deeply"},
	} {
		got, err := drevo.Parameter(test.in)
		switch {
		case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
			t.Errorf("%T: %v, %v, want refused: %s", test.in, got, err, test.refused)
		case test.refused == "" && (err != nil || !cmp.Equal(got, test.want)):
			t.Errorf("%T: %#v, %v, want %#v", test.in, got, err, test.want)
		}
	}
}

// A statement that is refused before it reaches the server dooms nothing; one that
// the server refuses dooms for good.
func TestRefusedStatements(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	session := connect(t, store)
	u := begin(t, session).exec("CREATE (:A)")
	for query, arg := range map[string]any{
		"CREATE (:B {v: $1})":                []byte("x"),
		"CALL drevo.tx.prepare($1)":          "g",
		"CALL drevo.tx.commitPrepared($1)":   "g",
		"CALL `drevo`.tx.listPrepared() // ": "g",
	} {
		err := u.try(query, arg)
		if refused, ok := errors.AsType[*branches.StatementError](err); !ok || store.Classify(err) != branches.Permanent || refused.Store != "s" {
			t.Errorf("%s = %v, want a StatementError", query, err)
		}
	}
	if err := u.Doomed(); err != nil {
		t.Errorf("doomed by what was never sent: %v", err)
	}
	failed := u.try("MATCH (n")
	if failed == nil {
		t.Fatal("nonsense is taken")
	}
	if err := u.try("MATCH (n) RETURN 1"); !errors.Is(err, failed) {
		t.Errorf("a statement of a doomed branch = %v, want the first error in it", err)
	}
	if _, err := u.stage(true); !errors.Is(err, failed) || branches.Classify(store, err) != branches.Permanent {
		t.Errorf("Stage of a doomed branch = %v", err)
	}
	if err := u.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	wantCount(t, g, "A", 0)

	reader := beginAs(t, session, branches.BeginOptions{ReadOnly: true})
	if err := reader.try("CREATE (:A)"); !errors.Is(err, branches.ErrReadOnlyUnit) {
		t.Errorf("a write of a read-only unit = %v", err)
	}
	if _, err := session.Begin(t.Context(), branches.BeginOptions{}); err == nil {
		t.Error("a second branch on one session")
	}
	if err := reader.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := session.Begin(t.Context(), branches.BeginOptions{Isolation: driver.IsolationLevel(sql.LevelLinearizable)}); err == nil {
		t.Error("linearizable is promised")
	}
}

// Outside of a transaction statements go as they are, drevo.tx with them.
func TestAutocommit(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	session := connect(t, store)
	result, err := session.Exec(t.Context(), "CREATE (:A {v: $1})", positional([]any{1}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := result.RowsAffected(); err == nil || !strings.Contains(err.Error(), "RETURN count(n)") {
		t.Errorf("RowsAffected = %v, want an error that names the way", err)
	}
	u := prepared(t, store, "B")
	if _, err := session.Exec(t.Context(), "CREATE (:A)", nil); store.Classify(err) != branches.Transient {
		t.Errorf("autocommit under the fence = %v", err)
	}
	_, rows := query(t, session, "CALL drevo.tx.listPrepared()")
	if len(rows) != 1 || rows[0][0] != u.gid.String() {
		t.Errorf("listPrepared: %v", rows)
	}
	query(t, session, "CALL drevo.tx.commitPrepared($gid)", named("gid", u.gid.String()))
	wantCount(t, g, "B", 1)
	if !session.Usable() {
		t.Error("the session is not usable after a refused statement")
	}

	st, err := session.Prepare(t.Context(), "CREATE (:C {v: $1})")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := st.(driver.StmtExecContext).ExecContext(t.Context(), positional([]any{i})); err != nil {
			t.Fatal(err)
		}
	}
	wantCount(t, g, "C", 2)
	if err := errors.Join(st.Close(), session.Close()); err != nil {
		t.Error(err)
	}
	if _, err := session.Exec(t.Context(), "CREATE (:C)", nil); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("a statement on a closed session = %v", err)
	}
}

// A server that was restarted between two units is met on new connections.
func TestRestartBetweenUnits(t *testing.T) {
	cluster := drevotest.Own(t)
	g, store := installed(t, cluster)
	session := connect(t, store)
	for range 3 {
		u := begin(t, session).exec("CREATE (:A)").staged(true)
		if err := u.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.Restart(t)
	}
	wantCount(t, g, "A", 3)
	u := begin(t, session).exec("CREATE (:A)")
	cluster.Restart(t)
	err := u.try("MATCH (n) RETURN 1")
	if err == nil || store.Classify(err) != branches.Transient {
		t.Errorf("a statement of a transaction that died with its server = %v (%s)", err, store.Classify(err))
	}
	if err := u.Rollback(t.Context()); err != nil || session.Usable() {
		t.Errorf("Rollback = %v, usable %t", err, session.Usable())
	}
	wantCount(t, g, "A", 3)
}
