package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// result is what one run of the program printed and returned.
type result struct {
	code     int
	out, err string
}

// call runs the program in this process.
func call(t *testing.T, dsn, stdin string, args ...string) result {
	t.Helper()
	return callContext(t.Context(), dsn, stdin, args...)
}

func callContext(ctx context.Context, dsn, stdin string, args ...string) result {
	var out, errs bytes.Buffer
	code := run(ctx, console{
		args: args, in: strings.NewReader(stdin), out: &out, err: &errs,
		env:   func(key string) (string, bool) { return dsn, key == envDSN && dsn != "" },
		width: 10_000, // ages differ in length, and must not break lines elsewhere
	})
	return result{code, out.String(), errs.String()}
}

// deployment under test: stores a and b and a journal, each in its own database.
type rig struct {
	cluster *pgtest.Cluster
	dsn     string
	stores  map[string]string
	journal string
	config  recovery.Config
	rows    int
}

// newRig makes databases and nothing in them.
func newRig(t *testing.T, options ...string) *rig {
	t.Helper()
	c := pgtest.Server(t)
	r := &rig{cluster: c, journal: c.Database(t, "j"), stores: map[string]string{"a": c.Database(t, "a"), "b": c.Database(t, "b")}}
	words := append([]string{"a=" + r.stores["a"], "b=" + r.stores["b"], "journal=" + r.journal}, options...)
	r.dsn = strings.Join(words, " ")
	for _, url := range r.stores {
		c.Exec(t, url, "CREATE TABLE item (id bigint PRIMARY KEY)")
	}
	return r
}

// installed is newRig after rhizorecover init.
func installed(t *testing.T, options ...string) *rig {
	t.Helper()
	r := newRig(t, options...)
	r.install(t)
	return r
}

func (r *rig) install(t *testing.T) {
	t.Helper()
	if got := call(t, r.dsn, "", "init"); got.code != 0 {
		t.Fatalf("init: exit %d: %s", got.code, got.err)
	}
	cfg, err := rhizodat.ParseDSN(r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := rhizodat.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connector.Close() })
	if r.config, err = connector.Recovery(); err != nil {
		t.Fatal(err)
	}
}

// leave leaves a unit prepared in both stores, decided or not.
func (r *rig) leave(t *testing.T, decided bool) branches.TxnID {
	t.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	r.rows++
	rec := journal.Record{Txn: txn, TxTime: r.config.Clock.Now()}
	for _, name := range slices.Sorted(maps.Keys(r.stores)) {
		rec.Branches = append(rec.Branches, journal.Branch{Store: name, GID: branches.NewGID(txn, name), TwoPhase: true})
	}
	session, err := r.config.Journal.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Release()
	if err := session.Create(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	for _, b := range rec.Branches {
		r.cluster.Exec(t, r.stores[b.Store], fmt.Sprintf(
			"BEGIN; INSERT INTO item VALUES (%d); INSERT INTO dat_applied VALUES ('%s', %d); PREPARE TRANSACTION '%s'", r.rows, txn, rec.TxTime, b.GID))
	}
	if decided {
		if err := session.Decide(t.Context(), journal.Decision{Txn: txn, TxTime: rec.TxTime, WithPrepare: true}); err != nil {
			t.Fatal(err)
		}
	}
	return txn
}

// older makes records look older to everybody.
func (r *rig) older(t *testing.T, by time.Duration) {
	t.Helper()
	r.cluster.Exec(t, r.journal, fmt.Sprintf("UPDATE dat_journal SET created_ms = created_ms - %[1]d, updated_ms = updated_ms - %[1]d", by.Milliseconds()))
}

// volatile is what differs from run to run, and what stands for it in a golden file.
var volatile = []struct {
	pattern *regexp.Regexp
	stands  string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`pg:\d+/\w+/\w+`), "PLACE"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z(/\d+)?`), "TIME"},
	{regexp.MustCompile(`("(?:[a-z_]*_ms)": )\d+`), "${1}MS"},
	{regexp.MustCompile(`\b(?:\d+h)?(?:\d+m)?(?:[0-9.]+(?:ms|s))\b`), "AGE"},
	{regexp.MustCompile(`PostgreSQL [0-9][^"<\n]*?( {2,}|"|\n)`), "PostgreSQL VERSION$1"},
	{regexp.MustCompile(`\d+ of \d+ slots`), "N of M slots"},
	{regexp.MustCompile(` {2,}`), "  "},
	// Of the server: who the superuser is, and whether it syncs.
	{regexp.MustCompile(`(for AGE  |dat:ID:\w  \w  AGE  |"owner": "|by role )[\w-]+`), "${1}OWNER"},
	{regexp.MustCompile(`\w+  (fsync|standbys)  .*`), "$1 ..."},
	{regexp.MustCompile(` +\n`), "\n"},
}

// golden compares text, without what is volatile, with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.stands)
	}
	path := filepath.Join("testdata", name+".golden")
	if *rewrite {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (go test -run %s -rewrite writes it anew):\n%s", path, t.Name(), diff)
	}
}
