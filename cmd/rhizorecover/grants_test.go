package main

import (
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go"
)

// The grants of docs/operations.md are enough: the application commits with its
// role, and recovery ends what another coordinator of that role has left, with
// its own.
func TestGrantsOfTheManual(t *testing.T) {
	t.Parallel()
	r := installed(t)
	app, operator := r.cluster.Role(t, "app", ""), r.cluster.Role(t, "recovery", "")
	grants := manualGrants(t, map[string]string{"app": app.Name, "recovery": operator.Name})
	r.cluster.Exec(t, "", grants["cluster"])
	r.cluster.Exec(t, r.journal, grants["journal"])
	for _, url := range r.stores {
		r.cluster.Exec(t, url, grants["store"]+"GRANT SELECT, INSERT ON item TO "+app.Name)
	}
	as := func(login func(string) string) string {
		return "a=" + login(r.stores["a"]) + " b=" + login(r.stores["b"]) + " journal=" + login(r.journal)
	}
	db, err := sql.Open("rhizodat", as(func(url string) string { return r.cluster.DSNAs(app, url) }))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{"a", "b"} {
		if _, err := tx.ExecContext(t.Context(), "store:"+store+" INSERT INTO item VALUES (1000)"); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil && !rhizodat.IsCommitted(err) {
		t.Fatalf("commit as the application's role: %v", err)
	}

	dsn := as(func(url string) string { return r.cluster.DSNAs(operator, url) })
	undecided, decided := r.leave(t, false), r.leave(t, true)
	row := 2000
	for name, url := range r.stores { // prepared by the application's role
		for _, txn := range []string{undecided.String(), decided.String()} {
			gid := fmt.Sprintf("dat:%s:%s", txn, name)
			r.cluster.Exec(t, url, fmt.Sprintf("ROLLBACK PREPARED '%s'", gid))
			r.cluster.Exec(t, url, fmt.Sprintf(
				"SET SESSION AUTHORIZATION %s; BEGIN; INSERT INTO item VALUES (%d); INSERT INTO dat_applied VALUES ('%s', 1); PREPARE TRANSACTION '%s'",
				app.Name, row, txn, gid))
			row++
		}
	}
	r.older(t, time.Hour)
	for _, args := range [][]string{{"once"}, {"status"}, {"show", decided.String()}, {"compact", "--retain=1ns"}, {"doctor"}, {"once"}} {
		if got := call(t, dsn, "", args...); got.code != 0 {
			t.Errorf("%v as the recovery role: exit %d: %s%s", args, got.code, got.out, got.err)
		}
	}
	for name, url := range r.stores {
		if left := r.cluster.Prepared(t, url); len(left) != 0 {
			t.Errorf("store %s: %v are left", name, left)
		}
		if n := r.cluster.Int(t, url, "SELECT count(*) FROM item"); n != 2 {
			t.Errorf("store %s has %d rows, want the application's and the decided one", name, n)
		}
	}
}

// manualGrants reads the SQL of the manual, by the word behind "grants:".
func manualGrants(t *testing.T, roles map[string]string) map[string]string {
	t.Helper()
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	grants := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)<!-- grants: (\\w+) -->\n```sql\n(.*?)```").FindAllStringSubmatch(string(manual), -1) {
		text := m[2]
		for name, role := range roles {
			text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(text, role)
		}
		grants[m[1]] = text
	}
	if len(grants) != 4 {
		t.Fatalf("the manual has grants for %d places, want 4", len(grants))
	}
	return grants
}
