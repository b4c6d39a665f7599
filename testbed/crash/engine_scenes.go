package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/testbed/crash/events"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// smallDisk is a disk beside the default one, of which the server keeps so many
// bytes free.
const smallDisk = `<storage_configuration><disks>
	<small><type>local</type><path>DIR/small/</path><keep_free_space_bytes>%d</keep_free_space_bytes></small></disks>
	<policies><small><volumes><main><disk>small</disk></main></volumes></small></policies></storage_configuration>`

var (
	diskRoomy = fmt.Sprintf(smallDisk, 0)
	diskFull  = fmt.Sprintf(smallDisk, int64(1)<<50)
)

// engineScenes are about a server that dies, or has no room.
func engineScenes(short bool) []scene {
	wide := events.Layout{Rows: 20_000, Partitions: 90, Settings: ", fsync_after_insert=1"}
	rounds := 5
	if short {
		wide.Rows, wide.Partitions, rounds = 8_000, 40, 1
	}
	windowedWide := wide
	windowedWide.Window = 100
	small := kindOfLane{events: events.Layout{Settings: ", storage_policy='small'"}}
	all := []scene{
		{name: "engine killed inside the insert", kind: kindOfLane{events: wide}, play: killedInside, rounds: rounds, rare: 10 * rounds},
		{name: "the same, with a window", kind: kindOfLane{events: windowedWide}, play: killedInside, rounds: rounds, rare: 10 * rounds},
		{name: "disk full after the decision", kind: small, play: fullDisk, untouched: true},
		{name: "too many parts after the decision", play: tooManyParts, untouched: true},
		{name: "DONE lost, and the application deletes all rows", kind: kindOfLane{crashing: true}, play: doneLost("1")},
		{name: "DONE lost, and it deletes some", kind: kindOfLane{crashing: true}, play: doneLost("k <= 20")},
	}
	if !short {
		all = append(all, scene{name: "torn, and the disk full", kind: small, play: tornOnFullDisk})
	}
	return all
}

// killedInside kills the coordinator and the engine when some rows of the insert
// are there and some are not.
func killedInside(ctx context.Context, l *lane, s *sight) error {
	err := l.act(ctx, cell{
		plan: plan.Plan{Work: l.work()},
		beside: func(ctx context.Context, l *lane, child *rig.Child, s *sight) error {
			err := rig.Await(ctx, "first rows of an insert", func() (bool, error) {
				select {
				case <-child.Ended():
					return true, nil
				default:
				}
				rows, err := l.events.Has(ctx, s.txn)
				return rows > 0, err
			})
			s.killed = true
			return errors.Join(err, l.server.Crash(ctx), child.Kill(), l.server.Start(ctx))
		},
	}, s)
	if err != nil {
		return err
	}
	rows, err := l.events.Has(ctx, s.txn)
	s.hit = rows > 0 && rows < l.events.Rows()
	return err
}

// pending expects that the unit's coordinator reports it committed and pending,
// and that recovery leaves it: without room nothing can be done.
func (l *lane) pending(ctx context.Context, s *sight) error {
	if s.hit && s.verdict() != "pending" {
		s.violations = append(s.violations, "it was reported "+s.verdict()+", and not pending")
	}
	if err := rig.Pause(ctx, staleAfter+clockDrift); err != nil {
		return err
	}
	code, _, err := l.recovery.Run(ctx, "once")
	if code != rig.ExitLeft {
		s.violations = append(s.violations, fmt.Sprintf("recovery ends with %d, and has left something", code))
	}
	return err
}

// fullDisk fills the disk after the decision, and makes room again.
func fullDisk(ctx context.Context, l *lane, s *sight) error {
	engine := l.events.Engine()
	err := l.act(ctx, cell{
		plan: plan.Plan{Work: l.work(), Point: "S9.before"}, options: optionsOfOutage,
		deed: func(ctx context.Context, _ *lane, _ *rig.Child, _ *sight) error {
			return engine.Reconfigure(ctx, diskFull)
		},
	}, s)
	if err != nil {
		return err
	}
	return errors.Join(l.pending(ctx, s), engine.Reconfigure(ctx, diskRoomy))
}

// tornOnFullDisk is the same for a torn insert: its repair waits for room.
func tornOnFullDisk(ctx context.Context, l *lane, s *sight) error {
	if err := torn(ctx, l, s); err != nil {
		return err
	}
	engine := l.events.Engine()
	if err := engine.Reconfigure(ctx, diskFull); err != nil {
		return err
	}
	code, _, err := l.recovery.Run(ctx, "once")
	if code != rig.ExitLeft {
		s.violations = append(s.violations, fmt.Sprintf("recovery ends with %d, and has left something", code))
	}
	return errors.Join(err, engine.Reconfigure(ctx, diskRoomy), l.lapse(ctx))
}

// tooManyParts lets the table refuse every insert after the decision.
func tooManyParts(ctx context.Context, l *lane, s *sight) error {
	limit := func(n int) error {
		_, err := l.events.Ask(ctx, fmt.Sprintf("ALTER TABLE %s MODIFY SETTING parts_to_delay_insert=0, parts_to_throw_insert=%d", l.events.Table(), n))
		return err
	}
	err := l.act(ctx, cell{
		plan: plan.Plan{Work: l.work(), Point: "S9.before"}, options: optionsOfOutage,
		deed: func(ctx context.Context, l *lane, _ *rig.Child, _ *sight) error {
			// Two parts of nobody's, of which none may be merged away.
			for _, query := range []string{
				"SYSTEM STOP MERGES " + l.events.Table(),
				"INSERT INTO " + l.events.Table() + " (k) SELECT number FROM numbers(4)",
				"INSERT INTO " + l.events.Table() + " (k) SELECT number FROM numbers(4)",
			} {
				if _, err := l.events.Ask(ctx, query); err != nil {
					return err
				}
			}
			return limit(1)
		},
	}, s)
	if err != nil {
		return err
	}
	_, merges := l.events.Ask(ctx, "SYSTEM START MERGES "+l.events.Table())
	return errors.Join(l.pending(ctx, s), limit(3000), merges)
}

// doneLost crashes the journal when the unit is DONE, which is not forced, so
// that the record is COMMITTED again; and the application has deleted rows.
func doneLost(where string) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		err := l.act(ctx, cell{
			plan: plan.Plan{Work: l.work(), Point: "S10.after"},
			deed: func(ctx context.Context, l *lane, child *rig.Child, s *sight) error {
				return errors.Join(crashJournal(ctx, l, child, s), kill(ctx, l, child, s))
			},
		}, s)
		if err != nil {
			return err
		}
		s.hit = s.lost
		return l.events.Delete(ctx, s.txn, where)
	}
}
