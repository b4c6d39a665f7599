package rhizodat_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// grown is a deployment of a PostgreSQL store, a drevo store and a journal.
type grown struct {
	pg    *pgtest.Cluster
	graph *drevotest.Graph
	bank  string // URL
	dsn   string
}

func newGrown(t *testing.T, cluster *drevotest.Cluster, options ...string) *grown {
	t.Helper()
	m := &grown{pg: pgtest.Server(t), graph: cluster.Graph(t, "relations")}
	m.bank = m.pg.Database(t, "bank")
	m.dsn = strings.Join(append([]string{
		"pg=" + m.bank, "graph=" + m.graph.URL(), "journal=" + m.pg.Database(t, "j"), "default=pg",
	}, options...), " ")
	m.pg.Exec(t, pgtest.Name(m.bank), `CREATE TABLE account (id int PRIMARY KEY, amount int)`)
	if err := connector(t, m.dsn, nil).Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// want checks what stands in both stores, and that nothing is left prepared.
func (m *grown) want(t *testing.T, accounts, people string) {
	t.Helper()
	if got := strings.Join(m.pg.Strings(t, pgtest.Name(m.bank), `SELECT id::text FROM account ORDER BY id`), " "); got != accounts {
		t.Errorf("accounts %q, want %q", got, accounts)
	}
	var found []string
	for _, row := range m.graph.Rows(t, "MATCH (n:Person) RETURN n.id AS id ORDER BY id", nil) {
		found = append(found, fmt.Sprint(row[0]))
	}
	if got := strings.Join(found, " "); got != people {
		t.Errorf("people %q, want %q", got, people)
	}
	if left := m.graph.Prepared(t); len(left) > 0 {
		t.Errorf("left prepared in drevo: %v", left)
	}
	if left := m.pg.Prepared(t, pgtest.Name(m.bank)); len(left) > 0 {
		t.Errorf("left prepared in PostgreSQL: %v", left)
	}
}

func (m *grown) recover(t *testing.T) recovery.Report {
	t.Helper()
	return passOver(t, m.dsn)
}

const person = `store:graph CREATE (:Person {id: $1, name: $name})`

func named(id int) []any { return []any{id, sql.Named("name", fmt.Sprint("p", id))} }

// One Commit over PostgreSQL and drevo: both or neither.
func TestCommitBesideDrevo(t *testing.T) {
	m := newGrown(t, drevotest.Server(t))
	db := openDSN(t, m.dsn)
	tx := begin(t, t.Context(), db)
	exec(t, tx, debit, 1, 10)
	exec(t, tx, person, named(1)...)
	m.want(t, "", "")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	m.want(t, "1", "1")

	for name, failing := range map[string]func(tx *sql.Tx) error{
		"rollback": (*sql.Tx).Rollback,
		"a failed statement in drevo": func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(t.Context(), "store:graph SELECT nonsense"); err == nil {
				t.Error("nonsense is taken")
			}
			return mustAbort(tx.Commit(), false)
		},
		"a conflict in drevo": func(tx *sql.Tx) error {
			m.graph.Exec(t, "CREATE (:Theirs)")
			return mustAbort(tx.Commit(), true)
		},
		"a failed statement in PostgreSQL": func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(t.Context(), debit, 1, 10); err == nil {
				t.Error("a second account 1 is taken")
			}
			return mustAbort(tx.Commit(), false)
		},
		"a rollback to a savepoint after a write in drevo": func(tx *sql.Tx) error {
			exec(t, tx, "SAVEPOINT s")
			exec(t, tx, person, named(3)...)
			exec(t, tx, "ROLLBACK TO s")
			return mustAbort(tx.Commit(), false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tx := begin(t, t.Context(), db)
			exec(t, tx, debit, 2, 10)
			exec(t, tx, person, named(2)...)
			if err := failing(tx); err != nil {
				t.Error(err)
			}
			m.want(t, "1", "1")
		})
	}
}

// mustAbort expects Commit to say that nothing took effect, and whether the unit
// is worth running again.
func mustAbort(err error, again bool) error {
	if _, ok := errors.AsType[*rhizodat.Aborted](err); !ok || rhizodat.IsRetryable(err) != again {
		return fmt.Errorf("commit = %w (retryable %t), want *Aborted, retryable %t", err, rhizodat.IsRetryable(err), again)
	}
	return nil
}

// A savepoint after which drevo was only read takes back what PostgreSQL wrote.
func TestSavepointBesideDrevo(t *testing.T) {
	m := newGrown(t, drevotest.Server(t))
	db := openDSN(t, m.dsn)
	tx := begin(t, t.Context(), db)
	exec(t, tx, debit, 1, 10)
	exec(t, tx, person, named(1)...)
	exec(t, tx, "SAVEPOINT s")
	exec(t, tx, debit, 2, 10)
	exec(t, tx, "store:graph MATCH (n) RETURN count(n)")
	exec(t, tx, "ROLLBACK TO s")
	exec(t, tx, person, named(2)...)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	m.want(t, "1", "1 2")
}

// What drevo returns, in the forms of database/sql.
func TestRowsOfDrevo(t *testing.T) {
	m := newGrown(t, drevotest.Server(t))
	db := openDSN(t, m.dsn)
	ctx := rhizodat.WithStore(t.Context(), "graph")
	if _, err := db.ExecContext(ctx, "CREATE (a:Person {title: $1, born: $2})-[:KNOWS {since: 3}]->(b:Person {title: 'b'})", "a", 1815); err != nil {
		t.Fatal(err)
	}
	var (
		node  json.RawMessage
		title string
		born  int
		none  sql.NullString
	)
	row := db.QueryRowContext(ctx, "MATCH (n:Person)-[r:KNOWS]->() WHERE n.title = $t RETURN n, n.title, n.born, n.nothing", sql.Named("t", "a"))
	if err := row.Scan(&node, &title, &born, &none); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Labels     []string
		Properties map[string]any
	}
	if err := json.Unmarshal(node, &got); err != nil {
		t.Fatal(err)
	}
	if title != "a" || born != 1815 || none.Valid || got.Labels[0] != "Person" || got.Properties["born"] != 1815.0 {
		t.Errorf("row %s %s %d %v", node, title, born, none)
	}
}

// init makes the nodes of ours, status lists what is prepared, doctor knows what is
// missing.
func TestDrevoDoctor(t *testing.T) {
	m := newGrown(t, drevotest.Server(t))
	w := worker(t, m.dsn)
	if text := w.InstallSQL(); !strings.Contains(text, "DatMeta") {
		t.Errorf("what a DBA would run lacks the meta node:\n%s", text)
	}
	text := doctor(t, w)
	for _, part := range []string{"DREVO_PREPARED_TX_TIMEOUT_SECS", "size of the graph", "drevo-rig"} {
		if !strings.Contains(text, part) {
			t.Errorf("doctor does not speak of %s:\n%s", part, text)
		}
	}
	m.graph.Exec(t, "MATCH (m:DatMeta) DELETE m")
	if text := doctor(t, w); !strings.Contains(text, "error") || !strings.Contains(text, "rhizorecover init") {
		t.Errorf("doctor does not miss the meta node:\n%s", text)
	}
}

// With one store and no journal nothing of ours is in the graph.
func TestDrevoAlone(t *testing.T) {
	g := drevotest.Server(t).Graph(t, "alone")
	db := openDSN(t, "graph="+g.URL())
	tx := begin(t, t.Context(), db)
	exec(t, tx, "CREATE (:A {v: $1})", 1)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := db.QueryRowContext(t.Context(), "MATCH (n) RETURN count(n)").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d nodes, %v, want the one that was written", n, err)
	}
	attempts := 0
	_, err := rhizodat.Run(t.Context(), db, rhizodat.Policy{
		OnRetry: func(_ context.Context, _ int, err error) {
			if _, ok := err.(*neo4j.Neo4jError); !ok { //nolint:errorlint // the driver's own value
				t.Errorf("commit in conflict = %T %v, want the driver's own error", err, err)
			}
		},
	}, func(ctx context.Context, tx *sql.Tx) error {
		attempts++
		_, err := tx.ExecContext(ctx, "CREATE (:A)")
		if attempts == 1 {
			g.Exec(t, "CREATE (:B)") //nolint:contextcheck // drevotest has a context of its own
		}
		return err
	})
	if err != nil || attempts != 2 || g.Count(t, "A") != 2 {
		t.Errorf("Run = %v after %d attempts, %d nodes; want the second to commit", err, attempts, g.Count(t, "A"))
	}
}
