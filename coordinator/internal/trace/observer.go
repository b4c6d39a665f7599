package trace

import (
	"context"
	"time"

	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Observer writes the steps of one process's units into a Log.
type Observer struct {
	Log  *Log
	Proc string
	// Stores are the names in the order in which simultaneous parts of one step
	// are to be written.
	Stores []string
	// At is called after a step was written, on the commit's own goroutine.
	At func(coordinator.StepEvent)
	// Outcomes is told of every outcome; nil is not.
	Outcomes func(coordinator.OutcomeEvent)
	// Split makes S6 and S7 two requests.
	Split bool
}

var (
	_ coordinator.Observer = (*Observer)(nil)
	_ coordinator.Splitter = (*Observer)(nil)
)

// SplitDecision implements coordinator.Splitter.
func (o *Observer) SplitDecision() bool { return o.Split }

// Step implements coordinator.Observer.
func (o *Observer) Step(ctx context.Context, e coordinator.StepEvent) {
	rank := time.Duration(e.Step)
	for i, name := range o.Stores {
		if name == e.Store {
			rank = time.Duration(100 * (i + 1))
		}
	}
	_ = hlc.System.Sleep(context.WithoutCancel(ctx), rank)
	o.Log.Add(Event{What: Point, Proc: o.Proc, Txn: e.Txn, Step: e})
	if o.At != nil {
		o.At(e)
	}
}

// Outcome implements coordinator.Observer.
func (o *Observer) Outcome(_ context.Context, e coordinator.OutcomeEvent) {
	if o.Outcomes != nil {
		o.Outcomes(e)
	}
}
