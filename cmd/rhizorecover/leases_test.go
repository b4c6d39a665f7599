package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/lease"
	"github.com/rhizodat/rhizodat-go/step"
)

func TestLeasesAndSteps(t *testing.T) {
	t.Parallel()
	r := installed(t)
	for args, want := range map[string]string{"leases": "no leases", "steps": "no steps"} {
		if got := call(t, r.dsn, "", args); got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%s: exit %d: %s%s", args, got.code, got.out, got.err)
		}
	}
	db, err := sql.Open("rhizodat", r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	acquire := func(name string) *lease.Lease {
		t.Helper()
		l, err := lease.Acquire(t.Context(), db, name, lease.WithHolder("node 7"))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	defer acquire("a held one").Release(t.Context())
	if err := acquire("b released one").Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	lapsed := acquire("c lapsed one")
	r.cluster.Exec(t, r.journal, `DELETE FROM dat_lease WHERE name = 'rhizodat.probe'; UPDATE dat_lease SET expires_at = 0 WHERE name LIKE 'c%'`)
	defer lapsed.Release(t.Context())
	if _, err := step.Do(t.Context(), db, step.Key{Execution: "run 7", Label: "charge"}, func(context.Context) (string, error) {
		return "secret", nil
	}, step.WithHolder("node 7")); err != nil {
		t.Fatal(err)
	}
	r.cluster.Exec(t, r.journal, `INSERT INTO dat_step VALUES
		('run 7', 'mail', '00', 'node 8', 't', 0, NULL, 1, 1), ('run 8', 'charge', '00', 'node 8', 't', 99999999999999, NULL, 1, 1)`)
	golden(t, "leases", call(t, r.dsn, "", "leases").out)
	golden(t, "steps", call(t, r.dsn, "", "steps").out)
	golden(t, "steps-json", call(t, r.dsn, "", "steps", "--json", "--pending", "--execution", "run 7").out)
	if out := call(t, r.dsn, "", "steps", "--json").out; strings.Contains(out, "secret") {
		t.Error("a value was printed")
	}
	var leases []leaseLine
	if err := json.Unmarshal([]byte(call(t, r.dsn, "", "leases", "--json").out), &leases); err != nil || len(leases) != 3 {
		t.Fatalf("leases --json: %+v, %v", leases, err)
	}
	if l := leases[0]; l.Name != "a held one" || l.State != "held" || l.Fence != 1 || l.Holder != "node 7" || l.LeftMS < 1 || l.LeftMS > 30_000 {
		t.Errorf("%+v", l)
	}
	var limited []stepLine
	if err := json.Unmarshal([]byte(call(t, r.dsn, "", "steps", "--json", "--limit", "1").out), &limited); err != nil || len(limited) != 1 {
		t.Errorf("steps --limit 1: %+v, %v", limited, err)
	}

	if got := call(t, r.dsn, "", "compact", "--steps-older-than", "1h"); got.code != 0 || !strings.Contains(got.out, "removed 1 once-only steps") {
		t.Errorf("compact: exit %d: %s%s", got.code, got.out, got.err)
	}
	r.cluster.Exec(t, r.journal, `UPDATE dat_step SET updated_ms = updated_ms - 7200000 WHERE value IS NOT NULL`)
	if got := call(t, r.dsn, "", "compact", "--json", "--steps-older-than", time.Hour.String()); got.code != 0 || !strings.Contains(got.out, `"steps": 1`) {
		t.Errorf("compact --json: exit %d: %s%s", got.code, got.out, got.err)
	}
	if got := call(t, r.dsn, "", "steps"); !strings.Contains(got.out, "run 8") || strings.Count(got.out, "\n") != 2 {
		t.Errorf("a claim that lives was removed: %s", got.out)
	}
	if got := call(t, r.dsn, "", "compact", "--steps-older-than=-1h"); got.code != exitUsage {
		t.Errorf("a negative age: exit %d", got.code)
	}
}

// The grants of docs/operations.md are enough for leases and steps.
func TestLeaseGrantsOfTheManual(t *testing.T) {
	t.Parallel()
	r := installed(t)
	app, operator := r.cluster.Role(t, "app", ""), r.cluster.Role(t, "recovery", "")
	grants := manualGrants(t, map[string]string{"app": app.Name, "recovery": operator.Name})
	r.cluster.Exec(t, r.journal, grants["journal"]+grants["leases"])
	for _, url := range r.stores {
		r.cluster.Exec(t, url, grants["store"]+"GRANT SELECT, INSERT ON item TO "+app.Name)
	}
	as := func(role pgtest.Role) string {
		return "a=" + r.cluster.DSNAs(role, r.stores["a"]) + " b=" + r.cluster.DSNAs(role, r.stores["b"]) + " journal=" + r.cluster.DSNAs(role, r.journal)
	}
	db, err := sql.Open("rhizodat", as(app))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l, err := lease.Acquire(t.Context(), db, "p")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := step.DoTx(rhizodat.WithLease(t.Context(), l), db, step.Key{Execution: "e", Label: "l"}, func(ctx context.Context, tx *sql.Tx) (int, error) {
		_, err := tx.ExecContext(ctx, "store:a INSERT INTO item VALUES (1)")
		return 1, err
	}); err != nil {
		t.Errorf("a step under a lease: %v", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	r.cluster.Exec(t, r.journal, `UPDATE dat_step SET updated_ms = 1`)
	txn := r.cluster.Strings(t, r.journal, `SELECT dat_txn::text FROM dat_journal`)[0]
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"leases"}, "released"},
		{[]string{"steps"}, "recorded"},
		{[]string{"show", txn}, "under lease p, fence 1\n"},
		{[]string{"show", "--json", txn}, `"lease": "p"`},
		{[]string{"compact", "--steps-older-than", "1h"}, "removed 1 once-only steps"},
	} {
		if got := call(t, as(operator), "", c.args...); got.code != 0 || !strings.Contains(got.out, c.want) {
			t.Errorf("%v: exit %d: %s%s", c.args, got.code, got.out, got.err)
		}
	}
}
