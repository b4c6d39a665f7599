package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// The life of a deployment as an operator sees it, one golden file per answer.
func TestReadCommands(t *testing.T) {
	t.Parallel()
	r := installed(t)
	call(t, r.dsn, "", "once")
	golden(t, "status-empty", call(t, r.dsn, "", "status").out)
	golden(t, "list-empty", call(t, r.dsn, "", "list").out)
	undecided, decided := r.leave(t, false), r.leave(t, true)
	r.cluster.Exec(t, r.journal, "UPDATE dat_store SET sweeps = 7")
	for _, c := range []struct {
		file string
		args []string
	}{
		{"status", []string{"status"}},
		{"status-json", []string{"status", "--json"}},
		{"list", []string{"list"}},
		{"list-json", []string{"list", "--json"}},
		{"list-committed", []string{"list", "--state", "COMMITTED"}},
		{"show-active", []string{"show", undecided.String()}},
		{"show-committed", []string{"show", "dat:" + decided.String() + ":b"}},
		{"show-json", []string{"show", "--json", undecided.String()}},
		{"doctor", []string{"doctor"}},
	} {
		got := call(t, r.dsn, "", c.args...)
		if got.code != 0 {
			t.Errorf("%v: exit %d: %s", c.args, got.code, got.err)
		}
		golden(t, c.file, got.out)
	}
	fresh := call(t, r.dsn, "", "once")
	if fresh.code != exitLeft {
		t.Errorf("once: exit %d, want 3: %s", fresh.code, fresh.err)
	}
	golden(t, "once-fresh", fresh.out)
	r.older(t, time.Hour)
	golden(t, "show-stale", call(t, r.dsn, "", "show", undecided.String()).out)
	golden(t, "show-stuck", call(t, r.dsn, "", "show", decided.String()).out)
	if got := call(t, r.dsn, "", "once"); got.code != exitOK || !strings.Contains(got.out, "rolled back 1, rolled forward 1") {
		t.Errorf("once: exit %d: %s%s", got.code, got.out, got.err)
	}
	golden(t, "show-done", call(t, r.dsn, "", "show", decided.String()).out)
	golden(t, "show-aborted", call(t, r.dsn, "", "show", undecided.String()).out)
	golden(t, "list-all", call(t, r.dsn, "", "list", "--all").out)
	none, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "show-unknown", call(t, r.dsn, "", "show", none.String()).out)

	got := call(t, r.dsn, "", "compact", "--retain=1ns")
	golden(t, "compact", got.out)
	if n := r.cluster.Int(t, r.journal, "SELECT count(*) FROM dat_journal"); n != 0 || got.code != 0 {
		t.Errorf("%d records are left, exit %d: %s", n, got.code, got.err)
	}
	golden(t, "show-compacted", call(t, r.dsn, "", "show", decided.String()).out)
}

// --json of every read command is JSON and nothing else.
func TestJSON(t *testing.T) {
	t.Parallel()
	r := installed(t)
	txn := r.leave(t, true)
	for _, args := range [][]string{
		{"status"}, {"list"}, {"show", txn.String()}, {"doctor"}, {"once"}, {"compact"}, {"init"},
	} {
		got := call(t, r.dsn, "", append(args, "--json")...)
		var v any
		if err := json.Unmarshal([]byte(got.out), &v); err != nil {
			t.Errorf("%v: %v: %s", args, err, got.out)
		}
	}
}

// A journal in a file: the same commands, and one line that says what it is for.
func TestFileJournal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dsn := "a=" + r.stores["a"] + " b=" + r.stores["b"] + " journal=file://" + filepath.Join(t.TempDir(), "journal.db")
	if got := call(t, dsn, "", "once"); got.code != exitError || !strings.Contains(got.err, "rhizorecover init") {
		t.Errorf("before init: exit %d: %s", got.code, got.err)
	}
	for _, args := range [][]string{{"init"}, {"once"}, {"status"}, {"doctor"}, {"compact"}} {
		if got := call(t, dsn, "", args...); got.code != 0 || strings.Count(got.err, "development") != 1 {
			t.Errorf("%v: exit %d: %s%s", args, got.code, got.out, got.err)
		}
	}
}

// A journal in drevo: the same commands again, and what they are told is in the
// graph.
func TestDrevoJournal(t *testing.T) {
	t.Parallel()
	r := newRig(t, "stale_after=300ms", "commit_timeout=200ms", "max_clock_drift=1h", "retain=1ms")
	graph := drevotest.Server(t).Graph(t, "coord")
	r.dsn = strings.Replace(r.dsn, "journal="+r.journal, "journal="+graph.URL(), 1)
	if got := call(t, r.dsn, "", "once"); got.code != exitError || !strings.Contains(got.err, "rhizorecover init") {
		t.Errorf("before init: exit %d: %s", got.code, got.err)
	}
	if got := call(t, r.dsn, "", "init", "--print"); got.code != 0 || !strings.Contains(got.out, "DatJournal_meta") {
		t.Errorf("init --print: exit %d: %s%s", got.code, got.out, got.err)
	}
	r.install(t)
	decided, undecided := r.leave(t, true), r.leave(t, false)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"status"}, "COMMITTED"},
		{[]string{"list"}, undecided.String()},
		{[]string{"show", decided.String()}, "COMMITTED"},
		{[]string{"doctor"}, "holds nothing but the journal"},
		{[]string{"doctor", "--json"}, "journal fence"},
	} {
		if got := call(t, r.dsn, "", c.args...); !strings.Contains(got.out, c.want) || got.code == exitError {
			t.Errorf("%v: exit %d: %s%s, want %s in it", c.args, got.code, got.out, got.err, c.want)
		}
	}
	if got := call(t, r.dsn, "", "once", "--wait=1m"); got.code != exitOK {
		t.Errorf("once --wait: exit %d, want 0: %s%s", got.code, got.out, got.err)
	}
	for txn, want := range map[branches.TxnID]string{decided: "DONE", undecided: "ABORTED"} {
		if row := graph.Rows(t, "MATCH (j:DatJournal {dat_txn: $txn}) RETURN j.state", map[string]any{"txn": txn.String()}); len(row) != 1 || row[0][0] != want {
			t.Errorf("the journal holds %v, want %s", row, want)
		}
	}
	if got := call(t, r.dsn, "", "compact"); got.code != exitOK || graph.Count(t, "DatJournal") != 0 {
		t.Errorf("compact: exit %d: %s%s, %d records are left", got.code, got.out, got.err, graph.Count(t, "DatJournal"))
	}
}

func TestOnceWaits(t *testing.T) {
	t.Parallel()
	r := installed(t, "stale_after=300ms", "commit_timeout=200ms", "max_clock_drift=1h")
	r.leave(t, false)
	if got := call(t, r.dsn, "", "once"); got.code != exitLeft {
		t.Errorf("once: exit %d, want 3: %s", got.code, got.err)
	}
	if got := call(t, r.dsn, "", "once", "--wait=1m"); got.code != exitOK {
		t.Errorf("once --wait: exit %d, want 0: %s%s", got.code, got.out, got.err)
	}
}

func TestInitPrint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := call(t, r.dsn, "", "init", "--print")
	if got.code != 0 || strings.Count(got.out, "-- store") != 2 {
		t.Fatalf("init --print: exit %d: %s%s", got.code, got.out, got.err)
	}
	// A DBA runs each part in its own database; then everything works.
	journalSQL, rest, _ := strings.Cut(got.out, "\n-- store a\n")
	aSQL, bSQL, _ := strings.Cut(rest, "\n-- store b\n")
	r.cluster.Exec(t, r.journal, journalSQL)
	r.cluster.Exec(t, r.stores["a"], aSQL)
	r.cluster.Exec(t, r.stores["b"], bSQL)
	if got := call(t, r.dsn, "", "once"); got.code != 0 {
		t.Errorf("once after the DBA: exit %d: %s%s", got.code, got.out, got.err)
	}
	if got := call(t, r.dsn, "", "init"); got.code != 0 {
		t.Errorf("init after the DBA: exit %d: %s", got.code, got.err)
	}
}

func TestResolveAsksTwice(t *testing.T) {
	t.Parallel()
	r := installed(t)
	txn := r.leave(t, true)
	r.cluster.Exec(t, r.stores["b"], fmt.Sprintf("ROLLBACK PREPARED 'dat:%s:b'", txn))
	r.older(t, time.Hour)
	if got := call(t, r.dsn, "", "once"); got.code != exitPerson || !strings.Contains(got.out, "heuristic") {
		t.Fatalf("once: exit %d, want 4: %s%s", got.code, got.out, got.err)
	}
	golden(t, "show-heuristic", call(t, r.dsn, "", "show", txn.String()).out)
	args := []string{"resolve", txn.String(), "--store", "b", "--as", "skipped", "--reason", "booked by hand", "--who", "ann"}
	for _, answers := range []string{"", "no\n", "yes\n", "yes\n" + txn.String()[:8] + "\n"} {
		if got := call(t, r.dsn, answers, args...); got.code != exitError || !strings.Contains(got.err, "nothing was changed") {
			t.Errorf("answers %q: exit %d, %s; want a refusal", answers, got.code, got.err)
		}
	}
	got := call(t, r.dsn, "yes\n"+txn.String()+"\n", args...)
	if got.code != exitOK || !strings.Contains(got.out, "DONE") || !strings.Contains(got.err, "no marker") {
		t.Errorf("resolve: exit %d: %s%s", got.code, got.out, got.err)
	}
	golden(t, "show-resolved", call(t, r.dsn, "", "show", txn.String()).out)
	if got := call(t, r.dsn, "", "once"); got.code != exitOK {
		t.Errorf("once afterwards: exit %d: %s", got.code, got.out)
	}

	none, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	absent := []string{"resolve", none.String(), "--store", "b", "--as", "skipped", "--reason", "unknown here", "--yes"}
	if got := call(t, r.dsn, "", absent...); got.code != exitOK || !strings.Contains(got.out, "What came back is ABORTED") {
		t.Errorf("resolve of an absent unit: exit %d: %s%s", got.code, got.out, got.err)
	}
}

func TestAdoptAsks(t *testing.T) {
	t.Parallel()
	r := installed(t)
	r.cluster.Exec(t, r.stores["a"], "UPDATE dat_meta SET sweeps = 99")
	got := call(t, r.dsn, "", "once")
	if got.code != exitPerson || !strings.Contains(got.out, "adopt --store a") {
		t.Fatalf("once: exit %d, want 4 and the way out: %s", got.code, got.out)
	}
	if got := call(t, r.dsn, "", "doctor"); got.code != exitPerson || !strings.Contains(got.out, "restored journal") {
		t.Errorf("doctor: exit %d: %s", got.code, got.out)
	}
	if got := call(t, r.dsn, "yes\n", "adopt", "--all"); got.code != exitError {
		t.Errorf("adopted without the store's name: exit %d: %s", got.code, got.out)
	}
	got = call(t, r.dsn, "a\n", "adopt", "--all")
	if got.code != exitOK || !strings.Contains(got.out, "becomes 99") {
		t.Errorf("adopt: exit %d: %s%s", got.code, got.out, got.err)
	}
	if got := call(t, r.dsn, "", "once"); got.code != exitOK {
		t.Errorf("once afterwards: exit %d: %s", got.code, got.out)
	}
	if got := call(t, r.dsn, "", "adopt", "--all", "--yes"); got.code != exitOK || !strings.Contains(got.out, "nothing to adopt") {
		t.Errorf("adopt again: exit %d: %s%s", got.code, got.out, got.err)
	}
	if got := call(t, r.dsn, "", "adopt", "--store", "z", "--yes"); got.code != exitError || !strings.Contains(got.err, "this DSN has a, b") {
		t.Errorf("adopt of an unknown store: exit %d: %s", got.code, got.err)
	}
}

// What doctor finds on a server that cannot take part.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	off := pgtest.Own(t, "max_prepared_transactions=0", "fsync=off")
	dsn := "a=" + off.Database(t, "a") + " b=" + off.Database(t, "b") + " journal=" + off.Database(t, "j")
	if got := call(t, dsn, "", "doctor"); got.code != exitPerson || !strings.Contains(got.out, "rhizorecover init") {
		t.Errorf("without tables: exit %d: %s", got.code, got.out)
	}
	if got := call(t, dsn, "", "init"); got.code != 0 {
		t.Fatalf("init: %s", got.err)
	}
	got := call(t, dsn, "", "doctor")
	for _, word := range []string{"max_prepared_transactions", "restart", "fsync=off", "clock", "registered"} {
		if !strings.Contains(got.out, word) {
			t.Errorf("doctor does not say %q: %s", word, got.out)
		}
	}
	if got.code != exitPerson {
		t.Errorf("exit %d, want 4", got.code)
	}
	off.Stop(t, true)
	if got := call(t, dsn, "", "doctor"); got.code != exitPerson || strings.Count(got.out, "reachable") == 0 {
		t.Errorf("server down: exit %d: %s", got.code, got.out)
	}
}

// No secret in anything that any command prints, in whatever state.
func TestNoSecretIsPrinted(t *testing.T) {
	t.Parallel()
	r := installed(t)
	txn := r.leave(t, true)
	role := r.cluster.Role(t, "operator", "SUPERUSER")
	secret := role.Password
	as := func(database string) string { return r.cluster.DSNAs(role, database) }
	right := "a=" + as(r.stores["a"]) + " b=" + as(r.stores["b"]) + " journal=" + as(r.journal)
	wrong := strings.ReplaceAll(right, secret, "wr0ng-s3cret")
	for _, dsn := range []string{right, wrong, right + " colour=red", strings.ReplaceAll(right, "postgres://", "postgres:/")} {
		for _, args := range [][]string{
			{"init", "--print"},
			{"init"},
			{"once", "-v"},
			{"status", "--json"},
			{"list", "--json"},
			{"doctor"},
			{"show", txn.String()},
			{"compact"},
			{"adopt", "--all", "--yes"},
			{"resolve", txn.String(), "--store", "a", "--as", "applied", "--reason", "x", "--yes"},
			{"once", "--log=json", "--dsn", dsn},
		} {
			got := call(t, dsn, "", args...)
			for _, s := range []string{secret, "wr0ng-s3cret"} {
				if strings.Contains(got.out+got.err, s) {
					t.Errorf("%v printed a password: %s%s", args, got.out, got.err)
				}
			}
		}
	}
}
