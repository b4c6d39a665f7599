package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/byteproxy"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/testbed/crash/graph"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// What a branch is held up at.
var (
	beforeRelease  hold = func(p *byteproxy.Proxy) *byteproxy.Rule { return p.HoldRequest(graph.TextCommit) }
	beforeRollback hold = func(p *byteproxy.Proxy) *byteproxy.Rule { return p.HoldRequest(graph.TextRollback) }
)

// branchScenes are about a branch that its server holds prepared. Half of them
// restart the server.
func branchScenes(short bool) []scene {
	apart := func(word string) kindOfLane { return kindOfLane{apart: word} }
	alone := kindOfLane{alone: true}
	all := []scene{
		{name: "server dies before prepare", play: fallen("prepare:before", false)},
		{name: "server dies after prepare", play: fallen("prepare:after", false)},
		{name: "server dies before commitPrepared", play: fallen("commitPrepared:before", false)},
		{name: "server dies after commitPrepared", play: fallen("commitPrepared:after", false)},
		{name: "reply to prepare lost", play: cutOff(graph.TextPrepare, byteproxy.Reply)},
		{name: "reply to commitPrepared lost", play: cutOff(graph.TextCommit, byteproxy.Reply)},
		{name: "reply to rollbackPrepared lost", play: cutRollback(byteproxy.Reply)},
		{name: "alone: server dies after COMMIT", kind: alone, play: fallen("commit:after", false), guard: guard.Marker},
		{name: "disk full at prepare", play: fullAtPrepare},
		{name: "heuristic timeout before the decision", kind: apart("timeout"), play: heuristicTimeout, ends: true},
		{name: "rolled back by hand after the decision", kind: apart("hand"), play: resolvedByHand, ends: true, guard: guard.Exists},
		{name: "another unit on the connection of a prepared one", play: secondUnit, guard: guard.Between},
		{name: "three that commit it at once", play: atOnce(beforeRelease)},
		{name: "a worker's commitPrepared comes late", play: stopped(beforeRelease, nil, finishMeanwhile)},
		{name: "a worker's rollbackPrepared comes late", play: stopped(beforeRollback, undecided, finishMeanwhile)},
	}
	if short {
		return all
	}
	return append(all,
		scene{name: "server dies before rollbackPrepared", play: fallen("rollbackPrepared:before", true)},
		scene{name: "server dies after rollbackPrepared", play: fallen("rollbackPrepared:after", true)},
		scene{name: "alone: server dies before COMMIT", kind: alone, play: fallen("commit:before", false)},
		scene{name: "prepare lost", play: cutOff(graph.TextPrepare, byteproxy.Before)},
		scene{name: "commitPrepared lost", play: cutOff(graph.TextCommit, byteproxy.Before)},
		scene{name: "rollbackPrepared lost", play: cutRollback(byteproxy.Before)},
	)
}

// spoiled is work that b refuses to prepare, so that the unit is aborted when g
// is prepared.
func spoiled() plan.Plan {
	return plan.Plan{Work: []string{insert("a", "3"), createNode("3"), insertUnseen("b", "3")}, Spoil: "b"}
}

// fallen lets the server end itself at a request, of a unit that commits or
// aborts, and starts it again.
func fallen(fault string, aborts bool) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		server := l.graph.Server()
		if err := server.Restart(ctx, "--fault", fault+":exit"); err != nil {
			return err
		}
		p := plan.Plan{Work: l.work()}
		if aborts {
			p = spoiled()
		}
		return l.act(ctx, cell{
			plan: p,
			beside: func(ctx context.Context, _ *lane, _ *rig.Child, s *sight) (err error) {
				if s.hit, err = server.Fallen(); err != nil {
					return err
				}
				return server.Start(ctx)
			},
		}, s)
	}
}

// cutRollback cuts the connection at the abort's own request.
func cutRollback(m byteproxy.Manner) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		return l.cut(ctx, s, graph.TextRollback, m, spoiled())
	}
}

// undecided leaves a unit that is prepared everywhere and not decided.
func undecided(ctx context.Context, l *lane, s *sight) error {
	return l.left(ctx, s, "S7.before")
}

// fullAtPrepare lets the log of the graph fill up in front of prepare. Until its
// restart the server writes nothing more.
func fullAtPrepare(ctx context.Context, l *lane, s *sight) error {
	server := l.graph.Server()
	err := l.act(ctx, cell{
		plan: plan.Plan{Work: l.work(), Point: "S5.before"}, options: optionsOfOutage,
		deed: func(context.Context, *lane, *rig.Child, *sight) error { return server.LimitLog(l.graph, 100) },
	}, s)
	if s.verdict() != "aborted" {
		s.violations = append(s.violations, "it was reported "+s.verdict()+", and not aborted")
	}
	return errors.Join(err, server.Restart(ctx))
}

// heuristicTimeout lets drevo roll the prepared branch back by itself before the
// coordinator decides to commit. It cannot be whole any more; that is said, and a
// person ends it.
func heuristicTimeout(ctx context.Context, l *lane, s *sight) error {
	server := l.graph.Server()
	if err := server.Restart(ctx, "--prepared-timeout", "0.2", "--tick", "0.02"); err != nil {
		return err
	}
	err := l.act(ctx, cell{
		plan: plan.Plan{Work: l.work(), Point: "S7.before"},
		deed: func(ctx context.Context, l *lane, _ *rig.Child, _ *sight) error {
			return rig.Await(ctx, "heuristic rollback", func() (bool, error) {
				gids, err := l.graph.Prepared(ctx)
				return len(gids) == 0, err
			})
		},
	}, s)
	return errors.Join(err, server.Restart(ctx), l.byPerson(ctx, s))
}

// resolvedByHand: somebody rolls the prepared branch back between the decision and
// its release.
func resolvedByHand(ctx context.Context, l *lane, s *sight) error {
	err := l.act(ctx, cell{
		plan: plan.Plan{Work: l.work(), Point: "S8.before"},
		deed: func(ctx context.Context, l *lane, _ *rig.Child, s *sight) error {
			txn, err := branches.ParseTxnID(s.txn)
			if err != nil {
				return err
			}
			return l.graph.RollBack(ctx, branches.NewGID(txn, l.third).String())
		},
	}, s)
	return errors.Join(err, l.byPerson(ctx, s))
}

// byPerson expects that nobody was told that the unit is committed, that recovery
// leaves it to a person, and that the record is DONE when a person has spoken.
func (l *lane) byPerson(ctx context.Context, s *sight) error {
	wrong := func(format string, args ...any) { s.violations = append(s.violations, fmt.Sprintf(format, args...)) }
	if s.verdict() != "heuristic" {
		wrong("it was reported %s, and not heuristic", s.verdict())
	}
	found, err := l.Untrue(ctx, l.reported)
	if err != nil {
		return err
	}
	s.violations = append(s.violations, found...)
	if err := rig.Pause(ctx, staleAfter+clockDrift); err != nil {
		return err
	}
	code, _, err := l.recovery.Run(ctx, "once")
	if err != nil {
		return err
	}
	if code != rig.ExitPerson {
		wrong("recovery ends with %d where a person is needed", code)
	}
	if _, _, err = l.recovery.Run(ctx, "resolve", s.txn, "--store", l.third, "--as", "skipped", "--reason", "rolled back by the store", "--yes"); err != nil {
		return err
	}
	states, err := l.States(ctx)
	if err != nil {
		return err
	}
	if s.state = states[s.txn]; s.state != "DONE" {
		wrong("a person has resolved it and its record is %s", s.state)
	}
	fates, err := l.Fates(ctx)
	s.fate = fates[s.txn]
	return err
}

// secondUnit commits a unit with one store on the connection on which one was
// prepared.
func secondUnit(ctx context.Context, l *lane, s *sight) error {
	err := l.act(ctx, cell{plan: plan.Plan{Work: l.work(), Then: []string{createNode("1")}}}, s)
	s.hit = s.verdict() == "committed"
	return err
}
