package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// scenario is what an application does to its session with store b.
type scenario struct {
	name    string
	before  []string // of the session, outside of the unit
	work    []string // of the unit, beside the write of store a
	refused bool     // PostgreSQL cannot prepare this: the unit must be aborted, whole
}

// scenarioTables are what the scenarios find in store b. {app} is a role that
// the login is a member of, {login} the login, {url} this database's own.
const scenarioTables = `
	GRANT INSERT, SELECT ON ledger TO {app};
	CREATE SCHEMA elsewhere AUTHORIZATION {login};
	CREATE TABLE elsewhere.dat_applied (dat_txn uuid PRIMARY KEY, dat_tx_time bigint NOT NULL);
	GRANT ALL ON SCHEMA elsewhere TO {app};
	CREATE TABLE guarded (dat_txn uuid NOT NULL, tenant text NOT NULL);
	ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
	ALTER TABLE guarded FORCE ROW LEVEL SECURITY;
	CREATE POLICY tenant ON guarded USING (tenant = current_setting('app.tenant', true));
	GRANT INSERT, SELECT ON guarded TO {app};
	CREATE TABLE parent (id uuid PRIMARY KEY);
	CREATE TABLE child (id uuid NOT NULL REFERENCES parent DEFERRABLE INITIALLY DEFERRED);`

const foreignTables = `
	CREATE EXTENSION postgres_fdw;
	CREATE TABLE behind (n int);
	GRANT ALL ON behind TO {login};
	CREATE SERVER itself FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{host}', port '{port}', dbname '{db}');
	CREATE USER MAPPING FOR {login} SERVER itself OPTIONS (user '{login}', password '{password}');
	CREATE FOREIGN TABLE foreign_table (n int) SERVER itself OPTIONS (table_name 'behind');
	GRANT ALL ON foreign_table TO {login};`

func allScenarios() []scenario {
	b := insert("b", "2")
	return []scenario{
		{name: "plain", work: []string{b}},
		{name: "SET ROLE", before: []string{"store:b SET ROLE {app}"}, work: []string{b}},
		{name: "SET LOCAL ROLE", work: []string{"store:b SET LOCAL ROLE {app}", b}},
		{name: "changed search_path", before: []string{"store:b SET search_path = elsewhere"}, work: []string{b}},
		{name: "temporary dat_applied", before: []string{
			"store:b CREATE TEMPORARY TABLE dat_applied (dat_txn uuid PRIMARY KEY, dat_tx_time bigint NOT NULL)",
		}, work: []string{b}},
		{name: "row level security", before: []string{
			"store:b SET ROLE {app}", "store:b SET app.tenant = 'one'", "store:b SET row_security = on",
		}, work: []string{b, "store:b INSERT INTO guarded VALUES ('" + plan.Txn + "', 'one')"}},
		{name: "deferred constraints", work: []string{
			b, "store:b INSERT INTO child VALUES ('" + plan.Txn + "')", "store:b INSERT INTO parent VALUES ('" + plan.Txn + "')",
		}},
		{name: "deferred constraint, violated", refused: true, work: []string{
			b, "store:b INSERT INTO child VALUES ('" + plan.Txn + "')",
		}},
		{name: "SET default_transaction_isolation", before: []string{
			"store:b SET default_transaction_isolation = 'serializable'",
		}, work: []string{"store:b SELECT count(*) FROM public.ledger", b}},
		{name: "SET synchronous_commit", before: []string{"store:b SET synchronous_commit = off"}, work: []string{b}},
		{name: "NOTIFY", refused: true, work: []string{b, "store:b NOTIFY news"}},
		{name: "NOTIFY before the unit", before: []string{"store:b NOTIFY news"}, work: []string{b}},
		{name: "temporary table used", refused: true, before: []string{
			"store:b CREATE TEMPORARY TABLE scratch (n int)",
		}, work: []string{b, "store:b INSERT INTO scratch VALUES (1)"}},
	}
}

// foreignScenarios need a database that has a foreign table: there every
// branch that may have written is prepared.
func foreignScenarios() []scenario {
	b := insert("b", "2")
	return []scenario{
		{name: "database with foreign tables", work: []string{b}},
		{name: "foreign table written", refused: true, work: []string{b, "store:b INSERT INTO foreign_table VALUES (1)"}},
	}
}

// scenarios kills a unit after S7 in each scenario; recovery must finish it.
func scenarios(ctx context.Context, h *house) error {
	t := &scenarioTable{w: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)}
	_, _ = fmt.Fprintln(t.w, "SCENARIO\tPOINT HIT\tREPORTED\tTOOK EFFECT") // to memory
	for _, run := range []struct {
		all    []scenario
		tables string
		// session is what the login's sessions begin with, the journal's too.
		session string
	}{
		{allScenarios(), scenarioTables, ""},
		{foreignScenarios(), scenarioTables + foreignTables, ""},
		{
			[]scenario{{name: "role's default isolation, in the journal too", work: []string{insert("b", "2")}}},
			scenarioTables, "SET default_transaction_isolation = 'repeatable read'",
		},
	} {
		l, err := h.loginLane(ctx, run.tables, run.session)
		if err != nil {
			return err
		}
		for _, sc := range run.all {
			if err := t.run(ctx, l, sc); err != nil {
				return err
			}
		}
	}
	_ = t.w.Flush() // a broken pipe ends the program by itself
	h.board.AtLeast("scenarios_finished_by_recovery", t.finished, t.toFinish)
	h.board.AtLeast("scenarios_refused", t.refused, t.toRefuse)
	h.violations("scenario", t.violations)
	return nil
}

type scenarioTable struct {
	w                                     *tabwriter.Writer
	finished, toFinish, refused, toRefuse int
	violations                            []string
}

func (t *scenarioTable) run(ctx context.Context, l *loginLane, sc scenario) error {
	c := cell{name: sc.name, deed: kill, plan: plan.Plan{Point: "S7.after", Work: []string{insert("a", "2")}}}
	for _, statement := range sc.before {
		c.plan.Before = append(c.plan.Before, l.words.Replace(statement))
	}
	for _, statement := range sc.work {
		c.plan.Work = append(c.plan.Work, l.words.Replace(statement))
	}
	s, err := l.run(ctx, c)
	if err != nil {
		return err
	}
	t.violations = append(t.violations, s.violations...)
	word := s.verdict()
	if s.outcome != nil && s.outcome.Error != "" {
		word += ": " + s.outcome.Error
	}
	_, _ = fmt.Fprintf(t.w, "%s\t%t\t%.150s\t%s\n", sc.name, s.hit, word, s.fate)
	if sc.refused {
		t.toRefuse++
		if !s.hit && s.verdict() == "aborted" && s.fate.None() {
			t.refused++
		}
		return nil
	}
	t.toFinish++
	if s.hit && s.fate.Whole() && s.state == "DONE" {
		t.finished++
	}
	return nil
}

// loginLane is a lane whose DSNs are those of an ordinary role: a superuser is
// above half of what the scenarios are about.
type loginLane struct {
	*lane
	words *strings.Replacer
}

// loginLane makes a lane, and hands it over to a role of its own.
func (h *house) loginLane(ctx context.Context, tables, session string) (*loginLane, error) {
	l, err := h.bareLane(ctx, kindOfLane{})
	if err != nil {
		return nil, err
	}
	id := strings.ToLower(rand.Text()[:8])
	login, app, password := "login_"+id, "app_"+id, "fixture-"+rand.Text()
	roles := fmt.Sprintf(`CREATE ROLE %[2]s; CREATE ROLE %[1]s LOGIN PASSWORD '%[3]s'; GRANT %[2]s TO %[1]s;`, login, app, password)
	if session != "" {
		roles += "ALTER ROLE " + login + " " + session
	}
	if _, err := l.Journal.Exec(ctx, roles); err != nil {
		return nil, err
	}
	ways := map[string]string{}
	for name, db := range map[string]*rig.Database{"a": l.Stores["a"], "b": l.Stores["b"], "c": l.Stores["c"], rig.JournalName: l.Journal} {
		own := fmt.Sprintf(`ALTER DATABASE %s OWNER TO %s`, db.Name, login)
		if name != rig.JournalName {
			own += fmt.Sprintf(`; ALTER TABLE ledger OWNER TO %s`, login)
		}
		if _, err := db.Exec(ctx, own); err != nil {
			return nil, err
		}
		ways[name] = as(db.DSN, login, password)
	}
	at, err := url.Parse(l.Stores["b"].DSN)
	if err != nil {
		return nil, err
	}
	words := strings.NewReplacer("{app}", app, "{login}", login, "{password}", password,
		"{host}", at.Hostname(), "{port}", at.Port(), "{db}", l.Stores["b"].Name)
	l.ways = ways
	if err := l.install(ctx); err != nil {
		return nil, err
	}
	_, err = l.Stores["b"].Exec(ctx, words.Replace(tables)+`
		ALTER TABLE guarded OWNER TO `+login+`; ALTER TABLE parent OWNER TO `+login+`; ALTER TABLE child OWNER TO `+login)
	return &loginLane{l, words}, err
}

// as is a DSN for another role.
func as(dsn, role, password string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic("crash: own DSN does not parse") // made by url.URL.String
	}
	u.User = url.UserPassword(role, password)
	return u.String()
}
