package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/internal/byteproxy"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/testbed/crash/lake"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// iceberg is the survey of Iceberg.
func iceberg(ctx context.Context, h *house) error {
	rounds := 30
	if h.short {
		rounds = 2
	}
	v := newSurvey(h, "iceberg", "Iceberg")
	all := jobsOf(shapeLake, shapeLakeAlone, coordinator.S9, h.short)
	queue := feed(all.any)
	postgres, sqlite, dir := kindOfLake(lake.Layout{}), kindOfLake(lake.Layout{Kind: lake.SQLite}), kindOfLake(lake.Layout{Kind: lake.Dir})
	crashing, alone := sqlite, dir
	crashing.crashing, alone.alone = true, true
	room, err := canFill(ctx, h)
	if err != nil {
		return err
	}
	others := append(restScenes(rounds), historyScenes()...)
	if room {
		others = append(others, fullScenes()...)
	}
	err = together(
		inTurn(v.lane(ctx, postgres, queue), v.lane(ctx, alone, feed(all.alone))),
		inTurn(v.lane(ctx, crashing, feed(all.crashing)), v.lane(ctx, sqlite, queue), v.lane(ctx, dir, queue)),
		v.play(ctx, postgres, lakeScenes(rounds)),
		v.play(ctx, postgres, others),
		v.play(ctx, postgres, append(fileScenes(lake.SQLite, rounds), fileScenes(lake.Dir, rounds)...)),
	)
	v.end(35, 22) // and three more where a disk can be filled
	return err
}

// beforeCommit holds a finisher up at the commit of a table.
var beforeCommit hold = func(p *byteproxy.Proxy) *byteproxy.Rule { return p.HoldRequest(lake.TextCommit) }

// havingLooked holds a finisher up when it has looked at the table and before it
// asks for it again to commit.
var havingLooked hold = func(p *byteproxy.Proxy) *byteproxy.Rule { return p.HoldRequest(lake.TextLoad).Skip(1) }

// lakeScenes are about files that nobody sees, and the one commit that names them.
func lakeScenes(rounds int) []scene {
	return []scene{
		// A unit's rows go to a file at each 100,000.
		{name: "killed between data files", kind: kindOfLane{lake: lake.Layout{Rows: 450_000}}, play: killedBetweenFiles, rare: 3},
		{name: "commit lost", play: cutOff(lake.TextCommit, byteproxy.Before)},
		{name: "reply to the catalog's COMMIT lost", play: cutCommit},
		{name: "killed at the commit of the table", play: killedAtCommit},
		{name: "three finishers at once", play: atOnce(beforeCommit), rounds: rounds, rare: 3},
		{name: "stopped past its claim, at its commit", play: stopped(beforeCommit, nil, finishMeanwhile), guard: guard.OneCommit},
		{name: "stopped past its claim, having looked", play: stopped(havingLooked, nil, finishMeanwhile)},
		{name: "one store: commit lost", kind: kindOfLane{alone: true}, play: cutOff(lake.TextCommit, byteproxy.Before)},
		{name: "one store: reply to the catalog's COMMIT lost", kind: kindOfLane{alone: true}, play: cutCommit},
		{name: "a staged file is cleaned away", kind: kindOfLane{apart: "cleaned"}, play: cleanedAway, ends: true},
	}
}

// killedBetweenFiles kills the coordinator while its unit is still at work and some
// of its files are there.
func killedBetweenFiles(ctx context.Context, l *lane, s *sight) error {
	before, err := l.lake.Files()
	if err != nil {
		return err
	}
	return l.act(ctx, cell{
		plan: plan.Plan{Work: l.work()},
		beside: func(ctx context.Context, l *lane, child *rig.Child, s *sight) error {
			err := rig.Await(ctx, "first data file", func() (bool, error) {
				select {
				case <-child.Ended():
					return true, nil
				default:
				}
				files, err := l.lake.Files()
				return len(files) > len(before), err
			})
			if err != nil {
				return err
			}
			err = kill(ctx, l, child, s)
			files, lookErr := l.lake.Files()
			s.hit = len(files) < len(before)+5 // of five files
			return errors.Join(err, lookErr)
		},
	}, s)
}

// held lets the coordinator come to the commit of its table, and then does deed.
func (l *lane) held(ctx context.Context, s *sight, deed func(net *byteproxy.Proxy, child *rig.Child) error) error {
	net, err := byteproxy.Listen(ctx, l.far.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = net.Close() }() // its listener is all that could fail
	rule := beforeCommit(net)
	return l.act(ctx, cell{
		plan: plan.Plan{Work: l.work()}, ways: l.through(net),
		beside: func(ctx context.Context, _ *lane, child *rig.Child, _ *sight) error {
			defer rule.Release()
			if err := met(ctx, rule, child); err != nil || !rule.Met() {
				return err
			}
			s.hit = true
			return deed(net, child)
		},
	}, s)
}

// cutCommit loses the reply to the COMMIT behind the update of the catalog.
func cutCommit(ctx context.Context, l *lane, s *sight) error {
	return l.held(ctx, s, func(net *byteproxy.Proxy, _ *rig.Child) error {
		net.Cut("commit", byteproxy.Reply)
		return nil
	})
}

// killedAtCommit kills the coordinator when its update of the catalog is on its way.
func killedAtCommit(ctx context.Context, l *lane, s *sight) error {
	return l.held(ctx, s, func(_ *byteproxy.Proxy, child *rig.Child) error { return kill(ctx, l, child, s) })
}

// cleanedAway: orphan cleanup that keeps too little removes a staged file of a
// decided unit. That cannot be whole any more; it is said, no snapshot names the
// file, and a person ends it.
func cleanedAway(ctx context.Context, l *lane, s *sight) error {
	err := l.act(ctx, cell{
		plan: plan.Plan{Work: l.work(), Point: "S9.before"},
		deed: func(_ context.Context, l *lane, _ *rig.Child, _ *sight) error {
			files, err := l.lake.Files()
			if err != nil {
				return err
			}
			if len(files) != 1 {
				return fmt.Errorf("%d data files of one unit", len(files))
			}
			return os.Remove(files[0])
		},
	}, s)
	return errors.Join(err, l.byPerson(ctx, s))
}
