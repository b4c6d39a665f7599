package drevo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

// A sweep is needed while a branch is in doubt, and then nobody can write its
// counter: it is raised as soon as the fence is down.
func TestSweepUnderTheFence(t *testing.T) {
	_, store := installed(t, drevotest.Server(t))
	for i, end := range []func(*unit) error{
		func(u *unit) error { return store.Abort(t.Context(), u.ref()) },
		func(u *unit) error { return store.Finish(t.Context(), u.ref()) },
	} {
		to := int64(10 * (i + 1))
		u := prepared(t, store, "A")
		for _, n := range []int64{to, to - 1} {
			if err := store.RaiseSweeps(t.Context(), n); err != nil {
				t.Errorf("RaiseSweeps under a fence of our own = %v", err)
			}
		}
		if meta, err := store.Meta(t.Context()); err != nil || meta.Sweeps >= to {
			t.Errorf("under the fence the counter is %d, %v", meta.Sweeps, err)
		}
		if err := end(u); err != nil {
			t.Fatal(err)
		}
		if meta, err := store.Meta(t.Context()); err != nil || meta.Sweeps != to {
			t.Errorf("after the fence the counter is %d, %v, want %d", meta.Sweeps, err, to)
		}
	}
}

// Under somebody else's fence there is nothing of ours to sweep: the store waits.
func TestSweepUnderForeignFence(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	foreign(t, g, "theirs")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := store.RaiseSweeps(ctx, 5); err == nil {
		t.Error("RaiseSweeps under a foreign fence = nil")
	}
	list, err := store.Prepared(t.Context())
	if err != nil || len(list) != 0 {
		t.Errorf("listed as ours: %v, %v", list, err)
	}
	findings, err := store.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := find(findings, "prepared transactions"); f.Severity != branches.SeverityWarning || !strings.Contains(f.Text, "theirs") {
		t.Errorf("the foreign fence is not found: %+v", f)
	}
	if err := g.Resolve(t.Context(), "rollbackPrepared", "theirs"); err != nil {
		t.Fatal(err)
	}
	if err := store.RaiseSweeps(t.Context(), 5); err != nil {
		t.Error(err)
	}
}

// foreign prepares a transaction that is not ours.
func foreign(t *testing.T, g *drevotest.Graph, gid string) {
	t.Helper()
	tx, err := g.Session(t).BeginTransaction(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	result, err := tx.Run(t.Context(), "CALL drevo.tx.prepare($gid)", map[string]any{"gid": gid})
	if err == nil {
		_, err = result.Single(t.Context())
	}
	if err = errors.Join(err, tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func find(findings []branches.Finding, check string) branches.Finding {
	for _, f := range findings {
		if f.Check == check {
			return f
		}
	}
	return branches.Finding{}
}

// Installed once, a graph is installed for good, also while it is fenced.
func TestInstallUnderTheFence(t *testing.T) {
	_, store := installed(t, drevotest.Server(t))
	before, err := store.Meta(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u := prepared(t, store, "A")
	install(t, store)
	if after, err := store.Meta(t.Context()); err != nil || after != before {
		t.Errorf("meta node %+v, %v, was %+v", after, err, before)
	}
	if err := store.Abort(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
}

// Nodes of a newer program are left alone.
func TestNewerLayout(t *testing.T) {
	g, store := installed(t, drevotest.Server(t))
	g.Exec(t, "MATCH (m:DatMeta) SET m.layout = 2")
	_, metaErr := store.Meta(t.Context())
	for what, err := range map[string]error{
		"Meta": metaErr, "Install": store.Install(t.Context()), "RaiseSweeps": store.RaiseSweeps(t.Context(), 1), "Probe": store.Probe(t.Context()),
	} {
		if err == nil || !strings.Contains(err.Error(), "layout version 2, this program knows up to 1") {
			t.Errorf("%s = %v, want both versions", what, err)
		}
	}
}

// A graph without our nodes says what to do.
func TestNotInstalled(t *testing.T) {
	g := drevotest.Server(t).Graph(t, "bare")
	store := open(t, g, drevo.Options{})
	_, metaErr := store.Meta(t.Context())
	_, placeErr := store.Place(t.Context())
	_, listErr := store.Prepared(t.Context())
	for what, err := range map[string]error{"Meta": metaErr, "Place": placeErr, "Prepared": listErr, "Probe": store.Probe(t.Context())} {
		if !errors.Is(err, branches.ErrNotInstalled) {
			t.Errorf("%s = %v, want ErrNotInstalled", what, err)
		}
	}
	findings, err := store.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := find(findings, "nodes of rhizodat"); f.Severity != branches.SeverityError || !strings.Contains(f.Way, "rhizorecover init") {
		t.Errorf("the missing node is not found: %+v", f)
	}
}

// The timeout of the server is compared with how long a branch may wait.
func TestExamineTimeout(t *testing.T) {
	g, _ := installed(t, drevotest.Server(t))
	for query, want := range map[string]branches.Severity{
		"": branches.SeverityNote, "?dat_prepared_timeout=20s": branches.SeverityWarning, "?dat_prepared_timeout=1h": branches.SeverityOK,
	} {
		findings, err := openURL(t, g.URL()+query, drevo.Options{}).Examine(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f := find(findings, "timeout of prepared transactions"); f.Severity != want || f.Text == "" || (f.Way == "") != (want == branches.SeverityOK) {
			t.Errorf("%q: %+v, want %s", query, f, want)
		}
	}
}

// A graph that is not there is named.
func TestNoGraph(t *testing.T) {
	cluster := drevotest.Server(t)
	store := openURL(t, cluster.URL("never_made"), drevo.Options{})
	_, err := connect(t, store).Begin(t.Context(), branches.BeginOptions{})
	if err == nil || !strings.Contains(err.Error(), "never_made") || !strings.Contains(err.Error(), "POST /databases") {
		t.Errorf("Begin in a graph that is not there = %v", err)
	}
	if store.Classify(err) != branches.Permanent {
		t.Errorf("it is %s, want permanent", store.Classify(err))
	}
}
