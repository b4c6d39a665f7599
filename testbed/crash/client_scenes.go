package main

import (
	"context"
	"fmt"

	"github.com/rhizodat/rhizodat-go/internal/byteproxy"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/testbed/crash/events"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// slow makes an insert of a unit's rows last for two seconds, before any of them
// is there.
const slow = ", slow UInt8 DEFAULT sleepEachRow(0.05)"

// clientScenes are about a client that is cut off from its server or gives up.
// With http its way is that protocol.
func clientScenes(http, short bool) []scene {
	three := kindOfLane{events: events.Layout{HTTP: http}}
	alone := kindOfLane{alone: true, events: events.Layout{HTTP: http}}
	slowThree, slowAlone := three, alone
	slowThree.events.Columns, slowAlone.events.Columns = slow, slow
	all := []scene{
		{name: "client gives up, server goes on", kind: slowThree, play: clientTimeout, untouched: true},
		{name: "one store: client cut off, server goes on", kind: slowAlone, play: clientGone, guard: guard.Quiet},
	}
	for _, request := range []struct{ name, text string }{{"insert", events.TextInsert}, {"marker", events.TextMarker}} {
		for _, m := range []byteproxy.Manner{byteproxy.Before, byteproxy.Behind, byteproxy.Reply} {
			name := fmt.Sprintf("network cut at the %s, %s", request.name, m)
			all = append(all, scene{name: name, kind: three, play: cutOff(request.text, m)})
			if !short || m != byteproxy.Behind {
				all = append(all, scene{name: "one store: " + name, kind: alone, play: cutOff(request.text, m)})
			}
		}
	}
	for i := range all {
		if http {
			all[i].name += " (HTTP)"
		}
	}
	return all
}

// clientTimeout: the unit's coordinator waits no longer than finish_timeout, and
// the insert goes on.
func clientTimeout(ctx context.Context, l *lane, s *sight) error {
	err := l.act(ctx, cell{plan: plan.Plan{Work: l.work()}, options: "finish_timeout=400ms"}, s)
	s.hit = s.verdict() == "pending"
	return err
}

// clientGone cuts the client off while its insert runs, and the server does not
// notice.
func clientGone(ctx context.Context, l *lane, s *sight) error {
	net, err := byteproxy.Listen(ctx, l.far.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = net.Close() }() // its listener is all that could fail
	rule := net.HoldReply(events.TextInsert)
	return l.act(ctx, cell{
		plan: plan.Plan{Work: l.work()}, ways: l.through(net),
		beside: func(ctx context.Context, l *lane, child *rig.Child, s *sight) error {
			if err := met(ctx, rule, child); err != nil || !rule.Met() {
				return err
			}
			if err := rig.Await(ctx, "running insert", func() (bool, error) { return l.events.Inserting(ctx) }); err != nil {
				return err
			}
			net.Desert()
			s.hit = true
			return nil
		},
	}, s)
}

// cutOff cuts the connection at the coordinator's own request.
func cutOff(text string, m byteproxy.Manner) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		return l.cut(ctx, s, text, m, plan.Plan{Work: l.work()})
	}
}

func (l *lane) cut(ctx context.Context, s *sight, text string, m byteproxy.Manner, p plan.Plan) error {
	net, err := byteproxy.Listen(ctx, l.far.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = net.Close() }() // its listener is all that could fail
	rule := net.Cut(text, m)
	err = l.act(ctx, cell{plan: p, ways: l.through(net)}, s)
	s.hit = rule.Met()
	return err
}
