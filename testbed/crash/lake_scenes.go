package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/internal/restcatalog"
	"github.com/rhizodat/rhizodat-go/testbed/crash/lake"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// restScenes are about a REST catalog. It is its URL to us, so that it cannot lie
// behind a proxy: its server itself fails.
func restScenes(rounds int) []scene {
	beside, alone := kindOfLane{lake: lake.Layout{Kind: lake.REST}}, kindOfLane{lake: lake.Layout{Kind: lake.REST}, alone: true}
	return []scene{
		{name: "REST: 503 to every commit", kind: beside, play: unavailable},
		{name: "REST: 503 to a commit that was applied", kind: beside, play: answeredOnce(http.StatusServiceUnavailable, true)},
		{name: "REST: commit lost", kind: beside, play: answeredOnce(restcatalog.NoAnswer, false)},
		{name: "REST: reply to the commit lost", kind: beside, play: answeredOnce(restcatalog.NoAnswer, true)},
		{name: "REST: three finishers at once", kind: beside, play: heldAtOnce, rounds: rounds, rare: rounds, guard: guard.OneCommit},
		{name: "REST: one store: 503 to a commit", kind: alone, play: answeredOnce(http.StatusServiceUnavailable, false)},
		{name: "REST: one store: 503 to a commit that was applied", kind: alone, play: answeredOnce(http.StatusServiceUnavailable, true)},
		{name: "REST: one store: reply to the commit lost", kind: alone, play: answeredOnce(restcatalog.NoAnswer, true)},
	}
}

// fileScenes are about catalogs that are files, with no network to hold anybody up.
func fileScenes(kind lake.Kind, rounds int) []scene {
	return []scene{{
		name: string(kind) + ": three finishers at once", kind: kindOfLane{lake: lake.Layout{Kind: kind}},
		play: frozenAtOnce, rounds: rounds, rare: 2 * rounds,
	}}
}

// unavailable lets a REST catalog answer 503 to every commit, of recovery too: the
// unit is pending until it no longer does.
func unavailable(ctx context.Context, l *lane, s *sight) error {
	var met atomic.Int64
	l.lake.Fail(func(after bool) int {
		if after {
			return 0
		}
		met.Add(1)
		return http.StatusServiceUnavailable
	})
	err := l.act(ctx, cell{plan: plan.Plan{Work: l.work()}, options: optionsOfOutage}, s)
	s.hit = met.Load() > 0
	if err == nil && s.hit {
		err = l.pending(ctx, s)
	}
	l.lake.Fail(nil)
	return err
}

// answeredOnce lets a REST catalog answer so to one commit, which it has applied or
// has not.
func answeredOnce(status int, applied bool) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		var met atomic.Int64
		l.lake.Fail(func(after bool) int {
			if after != applied || met.Add(1) > 1 {
				return 0
			}
			return status
		})
		err := l.act(ctx, cell{plan: plan.Plan{Work: l.work()}}, s)
		l.lake.Fail(nil)
		s.hit = met.Load() > 0
		return err
	}
}

// trap catches one finisher between its look at a table and its commit: armed
// before the finisher is there, it answers whether it has it.
type trap func() (caught func(ctx context.Context, child *rig.Child) (bool, error), err error)

// three lets the coordinator and two workers commit at the same time, on the same
// head. open lets all of them go.
func (l *lane) three(ctx context.Context, s *sight, arm trap, open func(all []*rig.Child) error) error {
	return l.act(ctx, cell{
		plan: plan.Plan{Work: l.work()},
		beside: func(ctx context.Context, l *lane, child *rig.Child, s *sight) error {
			all := []*rig.Child{child}
			n, err := l.catch(ctx, arm, &all)
			if err == nil && n == 3 {
				var late bool
				late, err = l.lake.Committed(ctx, s.txn)
				s.hit = !late
			}
			err = errors.Join(err, open(all))
			for _, worker := range all[1:] {
				_ = worker.Wait() // what it has left, others finish
			}
			return err
		},
	}, s)
}

// catch traps the first of all, then starts two workers and traps them, too. n tells
// how many it has.
func (l *lane) catch(ctx context.Context, arm trap, all *[]*rig.Child) (n int, err error) {
	for ; n < 3; n++ {
		if n > 0 {
			// The record is stale, and nobody else's.
			if err := errors.Join(rig.Pause(ctx, staleAfter+clockDrift), l.lapse(ctx)); err != nil {
				return n, err
			}
		}
		caught, err := arm()
		if err != nil {
			return n, err
		}
		if n > 0 {
			worker, err := l.pass(ctx)
			if err != nil {
				return n, err
			}
			*all = append(*all, worker)
		}
		if got, err := caught(ctx, (*all)[n]); err != nil || !got {
			return n, err
		}
	}
	return n, nil
}

// pass starts a pass of recovery.
func (l *lane) pass(ctx context.Context) (*rig.Child, error) {
	worker, err := rig.Start(ctx, l.recovery.Program, []string{"once"}, append([]string{"RHIZODAT_DSN=" + l.recovery.DSN}, l.env...)...)
	if err != nil {
		return nil, err
	}
	go func() {
		for range worker.Lines { // what it did is looked up in the stores
			continue
		}
	}()
	return worker, nil
}

// heldAtOnce is three finishers whose commits a REST catalog keeps waiting.
func heldAtOnce(ctx context.Context, l *lane, s *sight) error {
	var waiting atomic.Int64
	opened := make(chan struct{})
	l.lake.Fail(func(after bool) int {
		if !after {
			waiting.Add(1)
			<-opened
		}
		return 0
	})
	err := l.three(ctx, s, func() (func(context.Context, *rig.Child) (bool, error), error) {
		before := waiting.Load()
		return func(ctx context.Context, child *rig.Child) (bool, error) {
			return until(ctx, child, func() (bool, error) { return waiting.Load() > before, nil })
		}, nil
	}, func([]*rig.Child) error {
		close(opened)
		return nil
	})
	l.lake.Fail(nil)
	return err
}

// frozenAtOnce is three finishers of which each is stopped when it has written its
// manifest list.
func frozenAtOnce(ctx context.Context, l *lane, s *sight) error {
	return l.three(ctx, s, func() (func(context.Context, *rig.Child) (bool, error), error) {
		before, err := l.lake.Lists()
		return func(ctx context.Context, child *rig.Child) (bool, error) {
			got, err := until(ctx, child, func() (bool, error) {
				lists, err := l.lake.Lists()
				return len(lists) > len(before), err
			})
			if err == nil && got {
				err = child.Freeze()
			}
			return got, err
		}, err
	}, func(all []*rig.Child) error {
		var errs []error
		for _, child := range all {
			select {
			case <-child.Ended():
			default:
				errs = append(errs, child.Thaw())
			}
		}
		return errors.Join(errs...)
	})
}

// glance is how long a finisher may go on behind what it is caught at.
const glance = 300 * time.Microsecond

// until looks until ok is true. false: the child has ended before.
func until(ctx context.Context, child *rig.Child, ok func() (bool, error)) (bool, error) {
	for {
		select {
		case <-child.Ended():
			return false, nil
		default:
		}
		if done, err := ok(); done || err != nil {
			return done, err
		}
		if err := rig.Pause(ctx, glance); err != nil {
			return false, err
		}
	}
}
