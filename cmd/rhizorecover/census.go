package main

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rhizodat/rhizodat-go/journal"
)

const (
	// A scrape does not ask the journal for what it was asked for so lately. There
	// are few leases; of steps there is one for each that was ever run and kept.
	leasesFresh, stepsFresh = 10 * time.Second, 5 * time.Minute
	censusWithin            = 2 * time.Second // bounds what a scrape waits for
)

// census counts the leases and the steps of a journal for /metrics, when it is
// asked. What cannot be counted stays as it was counted last.
type census struct{ parts []*tallied }

// tallied is one kind of rows, counted by their state.
type tallied struct {
	desc   *prometheus.Desc
	states []string
	fresh  time.Duration
	count  func(by map[string]float64) error

	mu sync.Mutex
	by map[string]float64 // nil: never counted
	at time.Time
}

var _ prometheus.Collector = (*census)(nil)

// newCensus asks under ctx, which is that of the program: a scrape has none.
func newCensus(ctx context.Context, j journal.Journal) *census {
	part := func(name, help string, fresh time.Duration, states []string, count func(context.Context, map[string]float64) error) *tallied {
		return &tallied{
			desc:   prometheus.NewDesc("rhizodat_recovery_"+name, help, []string{"state"}, nil),
			states: states, fresh: fresh,
			count: func(by map[string]float64) error {
				ctx, cancel := context.WithTimeout(ctx, censusWithin)
				defer cancel()
				return count(ctx, by)
			},
		}
	}
	return &census{[]*tallied{
		part("leases", "Leases, by state (held, lapsed, released).", leasesFresh, []string{"held", "lapsed", "released"},
			func(ctx context.Context, by map[string]float64) error { return countLeases(ctx, j, by) }),
		part("steps", "Once-only steps, by state (claimed, lapsed, recorded).", stepsFresh, []string{"claimed", "lapsed", "recorded"},
			func(ctx context.Context, by map[string]float64) error { return countSteps(ctx, j, by) }),
	}}
}

func countLeases(ctx context.Context, j journal.Journal, by map[string]float64) error {
	keeps, ok := j.(journal.Conditional)
	if !ok {
		return errKeepsNone
	}
	leases, err := keeps.Leases(ctx)
	if err != nil {
		return err
	}
	list, err := leases.List(ctx)
	for _, l := range list {
		by[leaseState(l)]++
	}
	return err
}

func countSteps(ctx context.Context, j journal.Journal, by map[string]float64) error {
	lister, err := stepLister(ctx, j)
	if err != nil {
		return err
	}
	return lister.List(ctx, func(s journal.Step) error {
		by[stepState(s)]++
		return nil
	})
}

// Describe implements prometheus.Collector.
func (c *census) Describe(out chan<- *prometheus.Desc) {
	for _, p := range c.parts {
		out <- p.desc
	}
}

// Collect implements prometheus.Collector.
func (c *census) Collect(out chan<- prometheus.Metric) {
	for _, p := range c.parts {
		by := p.counted()
		if by == nil {
			continue
		}
		for _, state := range p.states {
			out <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, by[state], state)
		}
	}
}

func (p *tallied) counted() map[string]float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() || now().Sub(p.at) > p.fresh {
		by := map[string]float64{}
		if p.count(by) == nil {
			p.by = by
		}
		p.at = now() // also after a failure: a scrape must not wait each time
	}
	return p.by
}
