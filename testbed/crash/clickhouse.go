package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/testbed/crash/events"
)

// eventJobs are the cells of the matrix with ClickHouse as the third store.
type eventJobs struct {
	any      []job // on any lane of three stores
	alone    []job // where ClickHouse is the only one
	crashing []job // where the journal may crash
}

func newEventJobs(short bool) eventJobs {
	living := []mode{modeKill, modeFreeze, modeBackend, modeStore}
	aloneModes := []mode{modeKill, modeFreeze, modeStore}
	if !short {
		j := eventJobs{
			any:      jobs(shapeEvents, false, true, living),
			alone:    jobs(shapeAlone, false, true, aloneModes),
			crashing: jobs(shapeEvents, false, true, []mode{modeJournal}),
		}
		j.any = append(append(j.any, jobs(shapeEvents, true, false, living[:2])...), absences()...)
		return j
	}
	j := eventJobs{any: jobs(shapeEvents, false, false, living[:1]), alone: jobs(shapeAlone, false, false, aloneModes[:1])}
	for _, late := range jobs(shapeEvents, false, false, append(living[1:], modeJournal)) {
		switch {
		case late.point.step < coordinator.S9:
		case late.mode == modeJournal:
			j.crashing = append(j.crashing, late)
		default:
			j.any = append(j.any, late)
		}
	}
	j.any = append(j.any, absences()[:1]...)
	return j
}

// absences are the cells in which the store stays away: the unit is decided and
// pending.
func absences() []job {
	var all []job
	for _, j := range jobs(shapeEvents, false, true, []mode{modeAbsent}) {
		if j.point.step == coordinator.S9 && !j.point.after {
			j.cell.options = optionsOfOutage
			j.cell.after = func(ctx context.Context, l *lane) error { return l.engine.Start(ctx) }
			all = append(all, j)
		}
	}
	return all
}

// clickhouse runs the matrix with ClickHouse in the set, and the scenes that are
// ClickHouse's own.
func clickhouse(ctx context.Context, h *house) error {
	engines, err := h.launchEngines(ctx, 4)
	if errors.Is(err, events.ErrNoServer) {
		h.leaveOut("ClickHouse: " + err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	rounds := 30
	if h.short {
		rounds = 2
	}
	t, alone := newTable(), newTable()
	all := newEventJobs(h.short)
	queue := feed(all.any)
	lane := func(engine *events.Engine, layout events.Layout, kind kindOfLane, queue <-chan job) func() error {
		kind.third, kind.engine, kind.events = thirdEvents, engine, layout
		table := t
		if kind.alone {
			table = alone
		}
		return func() error { return h.drain(ctx, kind, queue, table) }
	}
	web := events.Layout{HTTP: true, Window: 100}
	scenes := &sceneTable{}
	err = together(
		inTurn(
			lane(engines[0], events.Layout{}, kindOfLane{}, queue),
			lane(engines[0], web, kindOfLane{alone: true}, feed(all.alone)),
		),
		inTurn(
			lane(engines[1], web, kindOfLane{crashing: true}, feed(all.crashing)),
			lane(engines[1], web, kindOfLane{}, queue),
			scenes.on(ctx, h, engines[1], engineScenes(h.short)),
		),
		scenes.on(ctx, h, engines[2], finisherScenes(kindOfLane{}, rounds)),
		inTurn(
			scenes.on(ctx, h, engines[3], clientScenes(false, h.short)),
			scenes.on(ctx, h, engines[3], moreScenes(h.short, rounds)),
		),
	)
	fmt.Println("ClickHouse beside two PostgreSQL stores:")
	t.print()
	fmt.Println("ClickHouse alone:")
	alone.print()
	fmt.Println("Scenes of ClickHouse:")
	scenes.print()
	cells, missed := t.count()
	aloneCells, aloneMissed := alone.count()
	h.board.AtLeast("clickhouse_cells", cells+aloneCells, 40)
	h.board.Exactly("clickhouse_cells_not_hit", missed+aloneMissed, 0)
	h.board.AtLeast("clickhouse_finished_by_recovery", t.finished, 1)
	scenes.figures(h)
	h.violations("clickhouse", slices.Concat(t.violations, alone.violations, scenes.violations))
	return err
}

// moreScenes are those of the other protocol, and those with a window.
func moreScenes(short bool, rounds int) []scene {
	if short {
		return clientScenes(true, true)[:1]
	}
	return append(clientScenes(true, false), finisherScenes(windowed, rounds)...)
}

// inTurn runs functions one after the other, up to one that fails.
func inTurn(all ...func() error) func() error {
	return func() error {
		for _, f := range all {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}
