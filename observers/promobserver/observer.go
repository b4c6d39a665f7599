// Package promobserver counts and times the commits of rhizodat connectors for
// Prometheus.
//
//	cfg, err := rhizodat.ParseDSN(dsn)
//	…
//	cfg.Observer, err = promobserver.New(prometheus.DefaultRegisterer)
//
// It is a module of its own, so that the driver needs no metrics library for it.
// What recovery does is not in here: rhizorecover run has its own /metrics.
package promobserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Observer is a rhizodat.Observer. It is safe for concurrent use, and for several
// connectors at once.
type Observer struct {
	began sync.Map // step -> time.Time, of the steps under way

	commits    *prometheus.CounterVec
	conflicts  prometheus.Counter
	late       *prometheus.CounterVec
	commit     *prometheus.HistogramVec
	lockWindow prometheus.Histogram
	steps      *prometheus.HistogramVec
	failures   *prometheus.CounterVec
}

var _ rhizodat.Observer = (*Observer)(nil)

// step is one step of one unit in one store.
type step struct {
	txn   string
	step  coordinator.Step
	store string
}

// New registers the metrics. It fails where one of their names is taken.
//
//	rhizodat_commits_total{verdict}               ended units: committed, pending, aborted, in doubt, heuristic
//	rhizodat_journal_conflicts_total              units of which the journal refused a write
//	rhizodat_late_commits_total{by}               units that came too late: fenced (their lease is another's), superseded (their step is)
//	rhizodat_commit_seconds{verdict}              from Commit to its return
//	rhizodat_lock_window_seconds                  from the last PREPARE reply to the last COMMIT PREPARED reply
//	rhizodat_step_seconds{step,store}             store is empty for the step as a whole
//	rhizodat_step_failures_total{step,store}      steps that ended in an error
func New(registry prometheus.Registerer) (*Observer, error) {
	buckets := prometheus.ExponentialBuckets(0.0005, 2, 16) // 0.5 ms to 16 s
	o := &Observer{
		commits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rhizodat_commits_total", Help: "Units that have ended, by verdict.",
		}, []string{"verdict"}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rhizodat_journal_conflicts_total", Help: "Units of which the journal refused a write.",
		}),
		late: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rhizodat_late_commits_total", Help: "Units aborted because their lease (fenced) or their step (superseded) is another's.",
		}, []string{"by"}),
		commit: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rhizodat_commit_seconds", Help: "Time of a Commit, by verdict.", Buckets: buckets,
		}, []string{"verdict"}),
		lockWindow: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "rhizodat_lock_window_seconds", Help: "Time for which branches stayed prepared.", Buckets: buckets,
		}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rhizodat_step_seconds", Help: "Time of a step of the commit protocol, by step and store.", Buckets: buckets,
		}, []string{"step", "store"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rhizodat_step_failures_total", Help: "Steps that ended in an error, by step and store.",
		}, []string{"step", "store"}),
	}
	for _, c := range []prometheus.Collector{o.commits, o.conflicts, o.late, o.commit, o.lockWindow, o.steps, o.failures} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("rhizodat: register metrics: %w", err)
		}
	}
	return o, nil
}

// Step implements rhizodat.Observer.
func (o *Observer) Step(_ context.Context, e rhizodat.StepEvent) {
	key := step{txn: e.Txn.String(), step: e.Step, store: e.Store}
	if e.Moment == coordinator.Before {
		o.began.Store(key, hlc.System.Now())
		return
	}
	if e.Err != nil {
		o.failures.WithLabelValues(e.Step.String(), e.Store).Inc()
	}
	if began, ok := o.began.LoadAndDelete(key); ok {
		o.steps.WithLabelValues(e.Step.String(), e.Store).Observe(hlc.System.Now().Sub(began.(time.Time)).Seconds())
	}
}

// Outcome implements rhizodat.Observer.
func (o *Observer) Outcome(_ context.Context, e rhizodat.OutcomeEvent) {
	verdict := e.Verdict.String()
	o.commits.WithLabelValues(verdict).Inc()
	o.commit.WithLabelValues(verdict).Observe(e.Took.Seconds())
	if e.Conflict {
		o.conflicts.Inc()
	}
	if fenced := (*journal.Fenced)(nil); errors.As(e.Err, &fenced) {
		o.late.WithLabelValues("fenced").Inc()
	}
	if superseded := (*journal.Superseded)(nil); errors.As(e.Err, &superseded) {
		o.late.WithLabelValues("superseded").Inc()
	}
	if e.LockWindow > 0 {
		o.lockWindow.Observe(e.LockWindow.Seconds())
	}
}
