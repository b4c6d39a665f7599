package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
)

// tries is how often a cell is run whose point was not reached.
const tries = 3

// job is a cell of the matrix.
type job struct {
	point point
	mode  mode
	cell  cell
}

// jobs lists the cells of one shape.
func jobs(s shape, split, shares bool, modes []mode) []job {
	var all []job
	for i, p := range s.points(split, shares) {
		for _, m := range modes {
			victim := []string{"a", "b"}[i%2]
			name := fmt.Sprintf("%s at %s (%s, split %t)", m, p.name, s, split)
			all = append(all, job{p, m, cell{
				name: name, deed: m.deed(victim),
				plan: plan.Plan{Work: s.work(), Point: p.name, Split: split},
			}})
		}
	}
	return all
}

// optionsOfOutage are those of a unit that will miss a server.
const optionsOfOutage = "commit_timeout=1s finish_timeout=1s"

// outages lists the cells in which the journal's server stays down.
func outages(points ...string) []job {
	var all []job
	for _, j := range jobs(shapeTwo, false, false, []mode{modeOutage}) {
		if slices.Contains(points, j.point.name) {
			j.cell.options = optionsOfOutage
			j.cell.after = func(ctx context.Context, l *lane) error { return l.crashes.Start(ctx) }
			all = append(all, j)
		}
	}
	return all
}

// matrix runs every point in every mode.
func matrix(ctx context.Context, h *house) error {
	living := []mode{modeKill, modeFreeze, modeBackend}
	var plain, crashing, payload []job
	if h.short {
		plain = append(jobs(shapeTwo, false, true, living[:1]), jobs(shapeTwo, false, false, living[1:])...)
		crashing = append(jobs(shapeTwo, false, false, []mode{modeJournal}), outages("S7.before")...)
		for _, j := range jobs(shapePayload, false, false, modes) {
			if j.point.step == coordinator.S9 {
				payload = append(payload, j)
			}
		}
	} else {
		for _, split := range []bool{false, true} {
			for _, s := range []shape{shapeTwo, shapeReader} {
				plain = append(plain, jobs(s, split, true, living)...)
				crashing = append(crashing, jobs(s, split, true, []mode{modeJournal})...)
			}
		}
		crashing = append(crashing, outages(outagePoints...)...)
		payload = jobs(shapePayload, false, true, modes)
	}
	t := newTable()
	// The server of the crashing journals serves one lane at a time.
	groups := []func() error{
		func() error {
			if err := h.drain(ctx, kindOfLane{crashing: true}, feed(crashing), t); err != nil {
				return err
			}
			return h.drain(ctx, kindOfLane{crashing: true, third: thirdPayload}, feed(payload), t)
		},
	}
	queue := feed(plain)
	for range 3 {
		groups = append(groups, func() error { return h.drain(ctx, kindOfLane{}, queue, t) })
	}
	err := together(groups...)
	t.print()
	t.figures(h)
	return err
}

// together runs functions side by side.
func together(all ...func() error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, f := range all {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// feed makes a queue that several lanes may take from.
func feed(all []job) <-chan job {
	queue := make(chan job, len(all))
	for _, j := range all {
		queue <- j
	}
	close(queue)
	return queue
}

// drain runs jobs on one lane until the queue is empty.
func (h *house) drain(ctx context.Context, kind kindOfLane, queue <-chan job, t *table) error {
	l, err := h.lane(ctx, kind)
	if err != nil {
		return err
	}
	for j := range queue {
		for try := 1; ; try++ {
			s, err := l.run(ctx, j.cell)
			if err != nil {
				return err
			}
			t.add(j, s)
			if s.hit || try == tries {
				break
			}
		}
	}
	return nil
}
