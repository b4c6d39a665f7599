package hlc_test

import (
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/hlc"
)

const minute = time.Minute

func at(ms int64) time.Time { return time.UnixMilli(ms) }

// TestClockNow walks one clock through the situations that protocol §11 names.
func TestClockNow(t *testing.T) {
	wall := hlc.NewManual(at(1000))
	clock := hlc.NewClock(wall, minute)
	expect := func(why string, millis int64, counter uint16) {
		t.Helper()
		if got := clock.Now(); got.Millis() != millis || got.Counter() != counter {
			t.Fatalf("%s: Now() = %d ms / %d, want %d ms / %d", why, got.Millis(), got.Counter(), millis, counter)
		}
	}
	expect("first", 1000, 0)
	expect("wall stands still", 1000, 1)
	wall.Advance(5 * time.Millisecond)
	expect("wall moves: counter starts again", 1005, 0)
	wall.Set(at(400))
	expect("wall steps back", 1005, 1)
	clock.Raise(hlc.FromMillis(1005) + 0xFFFE)
	expect("last of the counter", 1005, 0xFFFF)
	expect("counter overflows into the next millisecond", 1006, 0)
	wall.Set(at(1006))
	expect("wall reaches the borrowed millisecond", 1006, 1)
	wall.Set(at(1007))
	expect("wall passes it", 1007, 0)
	if clock.Wall() != hlc.Wall(wall) {
		t.Error("Wall() is not the wall it was made over")
	}
}

func TestClockNeverReturnsZero(t *testing.T) {
	for _, start := range []time.Time{at(0), at(-1), {}} {
		if got := hlc.NewClock(hlc.NewManual(start), minute).Now(); got <= 0 {
			t.Errorf("wall at %v: Now() = %d, want > 0", start, got)
		}
	}
}

func TestObserveDrift(t *testing.T) {
	const now = 1_000_000
	for _, row := range []struct {
		name    string
		max     time.Duration
		peer    hlc.Time
		refused bool
	}{
		{"zero peer", minute, 0, false},
		{"negative peer", minute, -7, false},
		{"behind", minute, hlc.FromMillis(now - 500), false},
		{"level", minute, hlc.FromMillis(now) + 3, false},
		{"exactly max", minute, hlc.FromMillis(now+60_000) + 0xFFFF, false},
		{"one millisecond over", minute, hlc.FromMillis(now + 60_001), true},
		{"a year ahead", minute, hlc.FromMillis(now + 365*24*3600*1000), true},
		{"end of time", minute, hlc.Max, true},
		{"no drift allowed, level", 0, hlc.FromMillis(now) + 1, false},
		{"no drift allowed, ahead", 0, hlc.FromMillis(now + 1), true},
		{"negative drift is none", -minute, hlc.FromMillis(now) + 1, false},
		{"any drift allowed", math.MaxInt64, hlc.FromMillis(now + 365*24*3600*1000), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			clock := hlc.NewClock(hlc.NewManual(at(now)), row.max)
			before := clock.Now()
			err := clock.Observe(row.peer)
			after := clock.Now()
			if after <= before {
				t.Errorf("Now() went from %v to %v", before, after)
			}
			if !row.refused {
				if err != nil || after <= row.peer {
					t.Errorf("Observe = %v, Now() = %v, want accepted and above %v", err, after, row.peer)
				}
				return
			}
			drift, ok := errors.AsType[*hlc.DriftError](err)
			if !ok {
				t.Fatalf("Observe = %v, want a DriftError", err)
			}
			if want := (hlc.DriftError{Peer: row.peer, Local: hlc.FromMillis(now), Max: max(row.max, 0)}); *drift != want {
				t.Errorf("error holds %+v, want %+v", *drift, want)
			}
			// Not poisoned: the clock goes on as if the peer had not spoken.
			if after != before+1 {
				t.Errorf("Now() = %v after the refusal, want %v", after, before+1)
			}
		})
	}
}

func TestDriftErrorNamesBothClocks(t *testing.T) {
	err := &hlc.DriftError{Peer: hlc.FromMillis(90_000) + 4, Local: hlc.FromMillis(1000), Max: minute}
	want := "rhizodat: observe peer time: clocks differ too much: peer 1970-01-01T00:01:30.000Z/4, local 1970-01-01T00:00:01.000Z/0, at most 1m0s ahead"
	if got := err.Error(); got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

// A process must be able to read its own markers back after its wall clock was
// set back by more than the drift; refusing them would stop it for no gain.
func TestObserveAcceptsOwnTimesAfterStepBack(t *testing.T) {
	wall := hlc.NewManual(at(10_000_000))
	clock := hlc.NewClock(wall, minute)
	own := clock.Now()
	wall.Set(at(1000))
	if err := clock.Observe(own); err != nil {
		t.Errorf("Observe(own time) = %v", err)
	}
	if err := clock.Observe(own + 1); err == nil {
		t.Error("Observe(a time above its own and out of drift) = nil")
	}
}

func TestRaiseKeepsOrderOverRestart(t *testing.T) {
	wall := hlc.NewManual(at(10_000_000))
	persisted := hlc.NewClock(wall, minute).Now()
	wall.Set(at(1000)) // restarted with the clock far in the past
	clock := hlc.NewClock(wall, minute)
	clock.Raise(persisted)
	if got := clock.Now(); got <= persisted {
		t.Errorf("Now() = %v after a restart, want above %v", got, persisted)
	}
	last := clock.Now()
	for _, lower := range []hlc.Time{0, -1, hlc.FromMillis(5), persisted} {
		clock.Raise(lower)
		if got := clock.Now(); got != last+1 {
			t.Errorf("Raise(%v) moved the clock from %v to %v", lower, last, got)
		}
		last++
	}
}

func TestNowPanicsAtTheEndOfTime(t *testing.T) {
	clock := hlc.NewClock(hlc.NewManual(at(1000)), minute)
	clock.Raise(hlc.Max - 1)
	if got := clock.Now(); got != hlc.Max {
		t.Fatalf("Now() = %v, want Max", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("Now() after Max did not panic")
		}
	}()
	t.Errorf("Now() after Max = %v", clock.Now())
}

func TestClockIsMonotonicForAllGoroutines(t *testing.T) {
	const goroutines, each = 8, 2000
	wall := hlc.NewManual(at(1000))
	clock := hlc.NewClock(wall, minute)
	times := make([][]hlc.Time, goroutines)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range each {
				if i%100 == g {
					wall.Set(at(1000 + int64(i%7) - int64(g)))
				}
				times[g] = append(times[g], clock.Now())
			}
		})
	}
	group.Wait()
	seen := map[hlc.Time]bool{}
	for g, list := range times {
		for i, one := range list {
			if seen[one] {
				t.Fatalf("%v was returned twice", one)
			}
			seen[one] = true
			if i > 0 && one <= list[i-1] {
				t.Fatalf("goroutine %d: %v after %v", g, one, list[i-1])
			}
		}
	}
}

// reference is the algorithm of Kulkarni et al. 2014, section 3, as printed:
// a pair (l, c) and one rule each for local or send events and for receive events.
type reference struct{ l, c int64 }

func (r *reference) send(pt int64) {
	before := r.l
	r.l = max(before, pt)
	if r.l == before {
		r.c++
	} else {
		r.c = 0
	}
}

func (r *reference) receive(pt int64, m reference) {
	before := r.l
	r.l = max(before, m.l, pt)
	switch {
	case r.l == before && r.l == m.l:
		r.c = max(r.c, m.c) + 1
	case r.l == before:
		r.c++
	case r.l == m.l:
		r.c = m.c + 1
	default:
		r.c = 0
	}
}

// TestClockFollowsThePublishedRules runs processes with wall clocks of their own,
// which also step back, and messages between them in any order, against the
// paper's algorithm and its claims (C1, C2, C3).
func TestClockFollowsThePublishedRules(t *testing.T) {
	type message struct {
		time hlc.Time
		ref  reference
	}
	rapid.Check(t, func(t *rapid.T) {
		const base = 1_000_000
		count := rapid.IntRange(1, 4).Draw(t, "processes")
		walls := make([]*hlc.Manual, count)
		clocks := make([]*hlc.Clock, count)
		refs := make([]reference, count)
		last := make([]hlc.Time, count)
		for p := range count {
			walls[p] = hlc.NewManual(at(base + rapid.Int64Range(-50, 50).Draw(t, "skew")))
			clocks[p] = hlc.NewClock(walls[p], minute)
		}
		var sent []message
		furthest := int64(0) // the greatest wall clock that any event has read
		event := func(p int) {
			pt := walls[p].Now().UnixMilli()
			furthest = max(furthest, pt)
			got := clocks[p].Now()
			if got <= last[p] {
				t.Fatalf("C1: process %d: %v after %v", p, got, last[p])
			}
			if got.Millis() < pt {
				t.Fatalf("C2: process %d: %v is behind its wall %d", p, got, pt)
			}
			if got.Millis() > furthest {
				t.Fatalf("C3: process %d: %v is ahead of every wall that was read (%d)", p, got, furthest)
			}
			if got.Millis() != refs[p].l || int64(got.Counter()) != refs[p].c {
				t.Fatalf("process %d: %v, but the published algorithm says (%d, %d)", p, got, refs[p].l, refs[p].c)
			}
			last[p] = got
		}
		process := rapid.IntRange(0, count-1)
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) {
				walls[process.Draw(t, "process")].Advance(time.Duration(rapid.IntRange(0, 20).Draw(t, "ms")) * time.Millisecond)
			},
			"step": func(t *rapid.T) {
				wall := walls[process.Draw(t, "process")]
				wall.Set(wall.Now().Add(time.Duration(rapid.IntRange(-50, 50).Draw(t, "ms")) * time.Millisecond))
			},
			"local or send": func(t *rapid.T) {
				p := process.Draw(t, "process")
				refs[p].send(walls[p].Now().UnixMilli())
				event(p)
				sent = append(sent, message{last[p], refs[p]})
			},
			"receive": func(t *rapid.T) {
				if len(sent) == 0 {
					t.Skip("nothing sent yet")
				}
				p, m := process.Draw(t, "process"), rapid.SampledFrom(sent).Draw(t, "message")
				refs[p].receive(walls[p].Now().UnixMilli(), m.ref)
				if err := clocks[p].Observe(m.time); err != nil {
					t.Fatalf("process %d: %v", p, err)
				}
				event(p)
				if last[p] <= m.time {
					t.Fatalf("C1: process %d received %v at %v", p, m.time, last[p])
				}
			},
		})
	})
}

// TestClockSurvivesLiars mixes honest events with peers from anywhere and wall
// steps: order holds, and no refused peer ever shows in a later time.
func TestClockSurvivesLiars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drift := time.Duration(rapid.Int64Range(0, 5000).Draw(t, "drift ms")) * time.Millisecond
		wall := hlc.NewManual(at(1_000_000))
		clock := hlc.NewClock(wall, drift)
		var last hlc.Time
		ceiling := int64(0) // ms no honest time can pass
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				ceiling = max(ceiling, wall.Now().UnixMilli()+drift.Milliseconds())
				got := clock.Now()
				// A peer at the edge with a full counter carries one millisecond over it.
				if got <= last || got.Millis() > ceiling+1 {
					t.Fatalf("Now() = %v after %v, ceiling %d ms", got, last, ceiling)
				}
				last = got
			},
			"step": func(t *rapid.T) {
				wall.Set(at(rapid.Int64Range(0, 2_000_000).Draw(t, "wall ms")))
			},
			"observe": func(t *rapid.T) {
				peer := hlc.Time(rapid.OneOf(
					rapid.Int64(),
					rapid.Int64Range(int64(hlc.FromMillis(900_000)), int64(hlc.FromMillis(2_100_000))),
				).Draw(t, "peer"))
				local := hlc.FromMillis(wall.Now().UnixMilli())
				err := clock.Observe(peer)
				tooFar := peer > last && peer.Millis()-local.Millis() > drift.Milliseconds()
				if tooFar != (err != nil) {
					t.Fatalf("Observe(%v) at %v = %v", peer, local, err)
				}
				if err == nil && clock.Now() <= peer {
					t.Fatalf("Now() is not above the observed %v", peer)
				}
			},
		})
	})
}
