package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rhizodat/rhizodat-go/journal"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// watch makes metrics and health of what a worker reports.
type watch struct {
	registry *prometheus.Registry
	metrics  metrics
	patience time.Duration // after which a worker without a pass is not healthy

	mu       sync.Mutex
	started  time.Time
	lastPass time.Time // also of a failed one
	lastErr  error
	passed   bool // the last pass could be finished
}

// metrics are named rhizodat_recovery_...; docs/operations.md lists them.
type metrics struct {
	passes, rolledBack, rolledForward, restored, raced *prometheus.CounterVec
	seconds                                            prometheus.Histogram
	last                                               prometheus.Gauge
	records, items                                     *prometheus.GaugeVec
	oldestRecord                                       prometheus.Gauge
	standing, prepared, foreign, oldest, sweeps        *prometheus.GaugeVec
}

// passesMissed is how many passes may fail to come before a worker counts as hung.
const passesMissed = 10

func newWatch(interval time.Duration) *watch {
	w := &watch{registry: prometheus.NewRegistry(), started: now(), patience: max(passesMissed*interval, 5*time.Minute)}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "rhizodat", Subsystem: "recovery", Name: name, Help: help}, labels)
		w.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "rhizodat", Subsystem: "recovery", Name: name, Help: help}, labels)
		w.registry.MustRegister(g)
		return g
	}
	w.metrics = metrics{
		passes:        counter("passes_total", "Passes, by result (ok, failed).", "result"),
		rolledBack:    counter("rolled_back_total", "Transactions aborted and taken back."),
		rolledForward: counter("rolled_forward_total", "Decided transactions finished."),
		restored:      counter("restored_total", "Branches found prepared although their transaction was done."),
		raced:         counter("raced_total", "Transactions that their coordinator decided before recovery could abort them."),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "rhizodat", Subsystem: "recovery", Name: "pass_seconds", Help: "Duration of a pass.",
			Buckets: prometheus.ExponentialBuckets(0.005, 4, 8),
		}),
		last:         gauge("last_pass_timestamp_seconds", "When the last pass that could be finished ended.").WithLabelValues(),
		records:      gauge("records", "Records that are not final, by state.", "state"),
		items:        gauge("items", "What the last pass left, by kind (stuck, heuristic, unexplained, ...).", "kind"),
		oldestRecord: gauge("oldest_record_age_seconds", "Age of the oldest record that is not final.").WithLabelValues(),
		standing:     gauge("store_standing", "1 for the store's standing (ok, down, refused), 0 for the others.", "store", "standing"),
		prepared:     gauge("store_prepared", "Prepared transactions of this deployment's form in the store.", "store"),
		foreign:      gauge("store_foreign", "Of these, other deployments'.", "store"),
		oldest:       gauge("store_oldest_prepared_age_seconds", "Age of the oldest of this deployment's.", "store"),
		sweeps:       gauge("store_sweeps", "Sweeps of the store so far, by all workers.", "store"),
	}
	w.registry.MustRegister(w.metrics.seconds,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	for _, result := range []string{"ok", "failed"} {
		w.metrics.passes.WithLabelValues(result)
	}
	for _, c := range []*prometheus.CounterVec{w.metrics.rolledBack, w.metrics.rolledForward, w.metrics.restored, w.metrics.raced} {
		c.WithLabelValues()
	}
	return w
}

var _ recovery.Observer = (*watch)(nil)

// Pass takes in a report.
func (w *watch) Pass(_ context.Context, r recovery.Report, err error) {
	w.mu.Lock()
	w.lastPass, w.lastErr, w.passed = now(), err, err == nil
	w.mu.Unlock()
	m := &w.metrics
	m.seconds.Observe(float64(r.TookMS) / 1000)
	m.rolledBack.WithLabelValues().Add(float64(r.RolledBack))
	m.rolledForward.WithLabelValues().Add(float64(r.RolledForward))
	m.restored.WithLabelValues().Add(float64(r.Restored))
	m.raced.WithLabelValues().Add(float64(r.Raced))
	if err != nil {
		// The gauges keep what the last whole pass saw: half a pass would show a
		// journal that is down as one with nothing left to do.
		m.passes.WithLabelValues("failed").Inc()
		return
	}
	m.passes.WithLabelValues("ok").Inc()
	m.last.SetToCurrentTime()
	m.oldestRecord.Set(float64(r.OldestLeftMS) / 1000)
	for _, state := range journal.States {
		if !state.Final() {
			m.records.WithLabelValues(state.String()).Set(float64(r.Left[state]))
		}
	}
	kinds := map[recovery.Kind]int{}
	for _, i := range r.Items {
		kinds[i.Kind]++
	}
	for _, kind := range recovery.Kinds {
		m.items.WithLabelValues(string(kind)).Set(float64(kinds[kind]))
	}
	for _, st := range r.Stores {
		for _, standing := range []recovery.Standing{recovery.StandingOK, recovery.StandingDown, recovery.StandingRefused} {
			value := 0.0
			if st.Standing == standing {
				value = 1
			}
			m.standing.WithLabelValues(st.Store, string(standing)).Set(value)
		}
		m.prepared.WithLabelValues(st.Store).Set(float64(st.Listed))
		m.foreign.WithLabelValues(st.Store).Set(float64(st.Foreign))
		m.oldest.WithLabelValues(st.Store).Set(float64(st.OldestMS) / 1000)
		m.sweeps.WithLabelValues(st.Store).Set(float64(st.Sweeps))
	}
}

func (w *watch) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { answer(out, w.healthy()) })
	mux.HandleFunc("GET /readyz", func(out http.ResponseWriter, _ *http.Request) { answer(out, w.ready()) })
	return mux
}

// healthy: passes are made, whatever they find. A journal that is down is not
// mended by starting this program again.
func (w *watch) healthy() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.lastPass
	if last.IsZero() {
		last = w.started
	}
	if silent := now().Sub(last); silent > w.patience {
		return fmt.Sprintf("no pass for %s", silent.Round(time.Second))
	}
	return ""
}

// ready: the last pass could be finished.
func (w *watch) ready() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.lastPass.IsZero():
		return "no pass yet"
	case !w.passed:
		return "the last pass could not be finished: the log says why"
	}
	return ""
}

func answer(out http.ResponseWriter, problem string) {
	out.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if problem != "" {
		out.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(out, problem) // nobody is left to tell when this fails
		return
	}
	_, _ = fmt.Fprintln(out, "ok")
}
