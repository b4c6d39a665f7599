package promobserver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/lease"
	"github.com/rhizodat/rhizodat-go/observers/promobserver"
)

// One commit over two stores and one that is refused, seen by their metrics.
func TestObserver(t *testing.T) {
	cluster := pgtest.Server(t)
	a, b := cluster.Database(t, "a"), cluster.Database(t, "b")
	for _, url := range []string{a, b} {
		cluster.Exec(t, pgtest.Name(url), `CREATE TABLE item (id int PRIMARY KEY, n int REFERENCES item DEFERRABLE INITIALLY DEFERRED)`)
	}
	cfg, err := rhizodat.ParseDSN("a=" + a + " b=" + b + " journal=" + cluster.Database(t, "j"))
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	observer, err := promobserver.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := promobserver.New(registry); err == nil {
		t.Error("the names were registered twice")
	}
	cfg.Observer = observer
	connector, err := rhizodat.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := connector.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	commitUnder := func(ctx context.Context, id, n int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, store := range []string{"a", "b"} {
			if _, err := tx.ExecContext(t.Context(), "store:"+store+" INSERT INTO item VALUES ($1, $2)", id, n); err != nil {
				t.Fatal(err)
			}
		}
		return tx.Commit()
	}
	commit := func(id, n int) error { return commitUnder(t.Context(), id, n) }
	if err := commit(1, 1); err != nil {
		t.Fatal(err)
	}
	if err := commit(2, 7); err == nil {
		t.Fatal("a dangling reference was committed")
	}
	first, err := lease.Acquire(t.Context(), db, "p", lease.WithHolder("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Acquire(t.Context(), db, "p", lease.WithHolder("a")); err != nil {
		t.Fatal(err)
	}
	if fenced := (*lease.Fenced)(nil); !errors.As(commitUnder(rhizodat.WithLease(t.Context(), first), 3, 3), &fenced) {
		t.Error("a late commit was not fenced")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{ // series of each metric
		"rhizodat_commits_total":           2,
		"rhizodat_commit_seconds":          2,
		"rhizodat_journal_conflicts_total": 1,
		"rhizodat_lock_window_seconds":     1,
	} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n != want {
			t.Errorf("%s has %d series, %v, want %d", name, n, err, want)
		}
	}
	got := values(t, registry)
	for key, want := range map[string]float64{
		"rhizodat_commits_total committed": 1, "rhizodat_commits_total aborted": 2,
		"rhizodat_lock_window_seconds":       1,
		"rhizodat_step_seconds S7 ":          2,
		"rhizodat_step_seconds S8 a":         1,
		"rhizodat_step_seconds S5 b":         3,
		"rhizodat_step_seconds S10 ":         1,
		"rhizodat_journal_conflicts_total":   1, // by the fence
		"rhizodat_late_commits_total fenced": 1,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v (of %v)", key, got[key], want, got)
		}
	}
	if got["rhizodat_step_failures_total S5 a"]+got["rhizodat_step_failures_total S5 b"] == 0 {
		t.Errorf("no step failed: %v", got)
	}
}

// values is what was counted, by a metric's name and its labels.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	found, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range found {
		for _, m := range family.GetMetric() {
			key := family.GetName()
			for _, label := range m.GetLabel() {
				key += " " + label.GetValue()
			}
			values[key] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}
