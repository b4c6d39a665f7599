package main

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/testbed/crash/events"
)

// windowed has a deduplication window, as every replicated table has.
var windowed = kindOfLane{events: events.Layout{Window: 100}}

// clickhouse is the survey of ClickHouse.
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
	v := newSurvey(h, "clickhouse", "ClickHouse")
	all := jobsOf(shapeEvents, shapeEventsAlone, coordinator.S9, h.short)
	queue := feed(all.any)
	native, web := kindOfEvents(engines[0]), kindOfEvents(engines[1])
	web.events = events.Layout{HTTP: true, Window: 100}
	crashing, alone := web, web.on(native)
	crashing.crashing, alone.alone = true, true
	err = together(
		inTurn(
			v.lane(ctx, native, queue),
			v.lane(ctx, alone, feed(all.alone)),
		),
		inTurn(
			v.lane(ctx, crashing, feed(all.crashing)),
			v.lane(ctx, web, queue),
			v.play(ctx, web, engineScenes(h.short)),
		),
		v.play(ctx, kindOfEvents(engines[2]), finisherScenes(kindOfLane{}, rounds)),
		v.play(ctx, kindOfEvents(engines[3]), append(clientScenes(false, h.short), moreScenes(h.short, rounds)...)),
	)
	v.end(40, 25)
	return err
}

// moreScenes are those of the other protocol, and those with a window.
func moreScenes(short bool, rounds int) []scene {
	if short {
		return clientScenes(true, true)[:1]
	}
	return append(clientScenes(true, false), finisherScenes(windowed, rounds)...)
}
