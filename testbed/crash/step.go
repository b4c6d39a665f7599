package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// steps kills and stops owners of once-only steps between claim, effect and
// record, lets others ask for the same step, and counts the effects.
func steps(ctx context.Context, h *house) error {
	b, err := openBank(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = b.server.Close() }() // its listener is all that could fail
	t := &sceneTable{}
	err = together(
		t.on(ctx, h, kindOfLane{}, askScenes(b)),
		t.on(ctx, h, kindOfLane{}, unitScenes(h.short)),
	)
	t.print()
	t.figures(h, "step", 8)
	h.violations("step", t.violations)
	return err
}

// bank is a service that is asked by steps, and remembers under which keys.
type bank struct {
	server *http.Server
	addr   string

	mu    sync.Mutex
	asked map[string][]string // path -> idempotency keys, one for each request
}

func openBank(ctx context.Context) (*bank, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open bank: %w", err)
	}
	b := &bank{addr: listener.Addr().String(), asked: map[string][]string{}}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = b.server.Serve(listener) }() // until it is closed
	return b, nil
}

// ServeHTTP answers with the key: whoever asks twice under it gets the same.
func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	b.asked[r.URL.Path] = append(b.asked[r.URL.Path], key)
	b.mu.Unlock()
	_, _ = w.Write([]byte(key)) //nolint:gosec // to our own children, of which a killed one does not read it
}

func (b *bank) keys(execution string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked["/"+execution])
}

// askScenes are about an effect on somebody who is no store: at least once, and
// each time under the same key.
func askScenes(b *bank) []scene {
	return []scene{
		{name: "owner killed between claim and effect", play: b.scene(plan.PointClaimed, kill, 1), ends: true},
		{name: "owner killed between effect and record", play: b.scene(plan.PointEffect, kill, 2), ends: true},
		{name: "owner killed behind its record", play: b.scene(plan.PointRecorded, kill, 1), ends: true},
		{name: "owner stopped between claim and effect, and replaced", play: b.scene(plan.PointClaimed, nil, 1), ends: true},
		{name: "owner stopped between effect and record, and replaced", play: b.scene(plan.PointEffect, nil, 2), ends: true},
	}
}

// scene does a deed to the owner of a step at a point; nil: it is stopped until
// another has taken the step over, and goes on. Then others ask for the step.
// requests is how often the bank is asked in all.
func (b *bank) scene(at string, what deed, requests int) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		todo := l.theStep()
		todo.Asks = "http://" + b.addr + "/" + todo.Step
		second, err := l.twoOwners(ctx, s, todo, at, what)
		if err != nil {
			return err
		}
		third := &sight{}
		if err := l.act(ctx, cell{plan: todo}, third); err != nil {
			return err
		}
		keys := b.keys(todo.Step)
		if len(keys) != requests || len(slices.Compact(slices.Clone(keys))) != 1 {
			s.wrong("the bank was asked under the keys %v, want %d times the same", keys, requests)
		}
		stands, err := l.recorded(ctx, todo.Step)
		if err != nil {
			return err
		}
		if got := third.value(); got == "" || got != second.value() || got != stands {
			s.wrong("callers got %q and %q, and %q is recorded", second.value(), got, stands)
		}
		if what == nil && !s.outcome.Superseded {
			s.wrong("the owner that was replaced ended with %q", s.outcome.Error)
		}
		return l.judge(ctx, s, second, third)
	}
}

// unitScenes are about an effect that is a unit: exactly once.
func unitScenes(short bool) []scene {
	points := []point{{name: plan.PointClaimed}, {name: plan.PointEffect}}
	for _, p := range shapeTwo.points(false, false) {
		if p.step >= coordinator.S3 && p.step <= coordinator.S8 {
			points = append(points, p)
		}
	}
	points = append(points, point{name: plan.PointRecorded, decided: true})
	if short {
		points = only(points, plan.PointClaimed, plan.PointEffect, "S5.after", "S7.before", "S7.after", plan.PointRecorded)
	}
	var all []scene
	for _, p := range points {
		all = append(all, scene{name: "unit of a step killed at " + p.name, play: unitScene(p, kill), ends: true})
		if !p.decided && (!short || p.name == "S7.before") {
			all = append(all, scene{name: "unit of a step stopped at " + p.name + ", and replaced", play: unitScene(p, nil), ends: true})
		}
	}
	return all
}

// unitScene is bank.scene for a unit, of which one must be there, whole.
func unitScene(p point, what deed) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error {
		todo := l.theStep()
		todo.Work = shapeTwo.work()
		second, err := l.twoOwners(ctx, s, todo, p.name, what)
		if err != nil {
			return err
		}
		third := &sight{}
		if err := l.act(ctx, cell{plan: todo}, third); err != nil {
			return err
		}
		if err := l.judge(ctx, s, second, third); err != nil {
			return err
		}
		winner, none := second.txn, s.fate
		if p.decided {
			winner, none = s.txn, second.fate
			if second.txn != "" || !s.fate.Whole() {
				s.wrong("the unit was decided and took effect in %s, and another one began: %q", s.fate, second.txn)
			}
		} else if !second.fate.Whole() {
			s.wrong("the second owner's unit took effect in %s", second.fate)
		}
		if !none.None() || third.txn != "" {
			s.wrong("another unit of the step took effect in %s, or began: %q", none, third.txn)
		}
		stands, err := l.recorded(ctx, todo.Step)
		if err != nil {
			return err
		}
		if got := third.value(); got != winner || got != second.value() || got != stands {
			s.wrong("callers got %q and %q, %q is recorded, and %q took effect", second.value(), got, stands, winner)
		}
		if what == nil && !s.outcome.Superseded {
			s.wrong("the owner that was replaced ended with %q", s.outcome.Error)
		}
		return nil
	}
}

// theStep is anew for each scene.
func (l *lane) theStep() plan.Plan {
	l.names++
	return plan.Plan{Step: fmt.Sprintf("execution-%s-%d", l.Journal.Name, l.names)}
}

// twoOwners does a deed to one owner of a step, whose claim then lapses, and lets
// another call it.
func (l *lane) twoOwners(ctx context.Context, s *sight, todo plan.Plan, at string, what deed) (second *sight, err error) {
	second = &sight{}
	next := func(ctx context.Context, l *lane) error {
		_, err := l.Journal.Exec(ctx, `UPDATE dat_step SET expires_at = 0 WHERE execution = $1 AND value IS NULL`, todo.Step)
		if err != nil {
			return err
		}
		return l.begin(ctx, cell{plan: todo}, second)
	}
	c := cell{plan: todo, deed: what}
	c.plan.Point = at
	if what != nil {
		c.after = next
		return second, l.act(ctx, c, s)
	}
	c.deed = func(ctx context.Context, l *lane, child *rig.Child, _ *sight) error {
		if err := child.Freeze(); err != nil {
			return err
		}
		if err := next(ctx, l); err != nil {
			return err
		}
		return child.Thaw()
	}
	return second, l.act(ctx, c, s)
}

// value of the step, as a caller got it.
func (s *sight) value() string {
	if s.outcome == nil {
		return ""
	}
	return s.outcome.Value
}

// recorded is the value of a step; empty unless there is exactly one.
func (l *lane) recorded(ctx context.Context, execution string) (value string, err error) {
	values, err := l.Journal.Texts(ctx, `SELECT convert_from(decode(value, 'base64'), 'UTF8') FROM dat_step
		WHERE execution = $1 AND value IS NOT NULL`, execution)
	if err != nil || len(values) != 1 {
		return "", err
	}
	if err := json.Unmarshal([]byte(values[0]), &value); err != nil {
		return "", fmt.Errorf("read step: %w", err)
	}
	return value, nil
}
