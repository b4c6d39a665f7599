package main

import (
	"context"
	"fmt"

	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// leases kills and stops holders of a lease at every point from its grant to the
// decision, lets another have the lease, and asks what both of them have left.
func leases(ctx context.Context, h *house) error {
	t := &sceneTable{}
	var stages []func() error
	for _, s := range []shape{shapeTwo, shapeOne} {
		if all := leaseScenes(s, h.short); len(all) > 0 {
			stages = append(stages, t.on(ctx, h, kindOfLane{}, all))
		}
	}
	err := together(stages...)
	t.print()
	t.figures(h, "lease", 8)
	h.violations("lease", t.violations)
	return err
}

// leaseScenes of a shape: with one branch a unit under a lease is journaled too.
// The last of their points is behind the decision: what was decided in its time
// stays, whoever has the lease by then.
func leaseScenes(s shape, short bool) []scene {
	points := []point{{name: plan.PointGranted}}
	for _, p := range shapeTwo.points(false, false) {
		if p.step <= coordinator.S7 {
			points = append(points, p)
		}
	}
	if short {
		points = only(points, plan.PointGranted, "S3.after", "S5.after", "S7.before", "S7.after")
		if s == shapeOne {
			points = only(points, "S7.before")
		}
	}
	var all []scene
	for _, p := range points {
		guarded := guard.Name("")
		if p.name == "S7.before" {
			guarded = guard.Fence
		}
		all = append(all,
			scene{name: fmt.Sprintf("holder killed at %s (%s)", p.name, s), play: killedHolder(s, p), ends: true},
			scene{
				name: fmt.Sprintf("holder stopped at %s past its expiry (%s)", p.name, s),
				play: stoppedHolder(s, p), ends: true, guard: guarded,
			})
	}
	return all
}

// only keeps the points of these names.
func only(points []point, names ...string) []point {
	var kept []point
	for _, p := range points {
		for _, name := range names {
			if p.name == name {
				kept = append(kept, p)
			}
		}
	}
	return kept
}

// theLease is anew for each scene: its first two fences are 1 and 2.
func (l *lane) theLease() string {
	l.names++
	return fmt.Sprintf("crash/%d", l.names)
}

// killedHolder kills a holder, and lets another take its lease and commit.
func killedHolder(shape shape, p point) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		name, next := l.theLease(), &sight{}
		todo := plan.Plan{Work: shape.work(), Lease: name, Point: p.name}
		if err := l.act(ctx, cell{plan: todo, deed: kill}, s); err != nil {
			return err
		}
		if err := l.succeed(ctx, shape, name, next); err != nil {
			return err
		}
		return l.afterLease(ctx, p, name, s, next)
	}
}

// stoppedHolder stops a holder until another has taken its lease and committed;
// then it goes on. No recovery runs meanwhile: what stops it is the fence.
func stoppedHolder(shape shape, p point) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		name, next := l.theLease(), &sight{}
		c := cell{plan: plan.Plan{Work: shape.work(), Lease: name, Point: p.name}}
		c.deed = func(ctx context.Context, l *lane, child *rig.Child, _ *sight) error {
			if err := child.Freeze(); err != nil {
				return err
			}
			if err := l.succeed(ctx, shape, name, next); err != nil {
				return err
			}
			return child.Thaw()
		}
		if err := l.act(ctx, c, s); err != nil {
			return err
		}
		if fenced := s.outcome != nil && s.outcome.Fenced; fenced == p.decided {
			s.wrong("the late commit ended with %s, fenced %t", s.verdict(), fenced)
		}
		return l.afterLease(ctx, p, name, s, next)
	}
}

// succeed lets another process have the lease and commit under it, while what the
// first has sent may still be under way.
func (l *lane) succeed(ctx context.Context, shape shape, name string, next *sight) error {
	if _, err := l.Journal.Exec(ctx, `UPDATE dat_lease SET expires_at = 0 WHERE name = $1`, name); err != nil {
		return err
	}
	return l.begin(ctx, cell{plan: plan.Plan{Work: shape.work(), Lease: name}}, next)
}

// afterLease lets recovery finish, and asks for what each of the two must have
// left: the second everything, the first nothing unless it had been decided.
func (l *lane) afterLease(ctx context.Context, p point, name string, first, second *sight) error {
	if err := l.judge(ctx, first, second); err != nil {
		return err
	}
	if p.decided != first.fate.Whole() || p.decided == first.fate.None() {
		first.wrong("the first holder's unit took effect in %s, decided %t", first.fate, p.decided)
	}
	if second.verdict() != "committed" || second.outcome.Fence != 2 || !second.fate.Whole() {
		first.wrong("the second holder's unit was reported %s, and took effect in %s", second.verdict(), second.fate)
	}
	fences, err := l.Journal.Pairs(ctx, `SELECT name, fence::text FROM dat_lease WHERE name = $1`, name)
	if err != nil {
		return err
	}
	if fences[name] != "2" {
		first.wrong("the lease is left with fence %q, and was granted twice", fences[name])
	}
	records, err := l.Journal.Pairs(ctx, `SELECT dat_txn::text, fence::text FROM dat_journal WHERE lease = $1`, name)
	if err != nil {
		return err
	}
	if records[second.txn] != "2" || first.state != "" && records[first.txn] != "1" {
		first.wrong("the records carry the fences %v", records)
	}
	return nil
}

// judge lets recovery finish, and looks at the ends of several units.
func (l *lane) judge(ctx context.Context, first *sight, others ...*sight) error {
	c := cell{}
	if err := l.heal(ctx, c, first); err != nil {
		return err
	}
	for _, s := range append(others, first) {
		if err := l.inspect(ctx, c, s); err != nil {
			return err
		}
	}
	return nil
}

// wrong notes a violation.
func (s *sight) wrong(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}
