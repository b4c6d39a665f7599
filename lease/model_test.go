package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/memjournal"
)

const (
	nodes       = 3
	generations = 4
)

// turnPlan is one generation of one node: it waits, acquires, holds, and lets go
// in one of three ways.
type turnPlan struct {
	wait, hold time.Duration
	end        string
	cut        bool // from the moment it holds the lease the journal does not hear it
}

// plan is one random history.
type plan struct {
	turns [nodes][]turnPlan
	fates []fate // of the requests, in their order, over and over
}

// fate of one request: how long it is under way, and what becomes of it.
type fate struct {
	there, back time.Duration
	fault       memjournal.Fault
}

func plans() *rapid.Generator[plan] {
	ms := func(most int) *rapid.Generator[time.Duration] {
		return rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, "ms")) * time.Millisecond
		})
	}
	return rapid.Custom(func(t *rapid.T) plan {
		var p plan
		for n := range nodes {
			for range rapid.IntRange(1, generations).Draw(t, "generations") {
				p.turns[n] = append(p.turns[n], turnPlan{
					wait: ms(40_000).Draw(t, "wait"), hold: ms(100_000).Draw(t, "hold"),
					end: rapid.SampledFrom([]string{"release", "crash", "keep"}).Draw(t, "end"),
					cut: rapid.IntRange(0, 3).Draw(t, "cut") == 0,
				})
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "fates") {
			p.fates = append(p.fates, fate{
				there: ms(rapid.SampledFrom([]int{1, 500, 20_000}).Draw(t, "there within")).Draw(t, "there"),
				back:  ms(rapid.SampledFrom([]int{1, 500, 20_000}).Draw(t, "back within")).Draw(t, "back"),
				fault: rapid.SampledFrom([]memjournal.Fault{
					memjournal.None, memjournal.None, memjournal.None, memjournal.LostBefore, memjournal.LostAfter,
				}).Draw(t, "fault"),
			})
		}
		return p
	})
}

// referee sees every grant of every node.
type referee struct {
	mu     sync.Mutex
	grants []*Lease
	found  string
	counts map[string]int
}

// granted checks I1 and I2, and that no earlier holder relies on its lease any more.
func (r *referee) granted(l *Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts["granted"]++
	for _, other := range r.grants {
		if other.Fence() == l.Fence() {
			r.found += fmt.Sprintf("I1: fence %v has two holders\n", l.Fence())
		}
		// A grant whose reply was slow may be told of late, after a later one: then
		// its own context must have ended already.
		older, newer := other, l
		if older.Fence() > newer.Fence() {
			older, newer = newer, older
		}
		if older.Context().Err() == nil && newer.Context().Err() == nil {
			r.found += fmt.Sprintf("fences %v and %v are relied on at once\n", older.Fence(), newer.Fence())
		}
	}
	r.grants = append(r.grants, l)
}

func (r *referee) refused(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held := (*Held)(nil); errors.As(err, &held) {
		r.counts["held"]++
		return
	}
	r.counts["unknown"]++
}

// TestModel plays random histories of 3 nodes and 4 generations: slow and lost
// requests that may arrive late, crashes, nodes that are cut off. However they
// go, no two nodes rely on the lease at once, and the fences only rise.
func TestModel(t *testing.T) {
	counts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		p := plans().Draw(rt, "plan")
		r := &referee{counts: counts}
		synctest.Test(t, func(t *testing.T) {
			t.Helper()
			play(t, p, r)
		})
		if r.found != "" {
			rt.Fatal(r.found)
		}
	})
	t.Log(counts)
	for _, what := range []string{"granted", "held", "unknown", "lapsed", "released"} {
		if counts[what] == 0 {
			t.Errorf("no history had a lease %s", what)
		}
	}
}

// play REQUIRES a synctest bubble.
func play(t *testing.T, p plan, r *referee) {
	t.Helper()
	server := memjournal.New(hlc.System)
	var mu sync.Mutex
	n := 0
	next := func() fate {
		mu.Lock()
		defer mu.Unlock()
		n++
		return p.fates[n%len(p.fates)]
	}
	var wg sync.WaitGroup
	for i, turns := range p.turns {
		wg.Go(func() {
			cut := false
			node := server.Node(func(memjournal.Op) memjournal.Fault {
				mu.Lock()
				defer mu.Unlock()
				if cut {
					return memjournal.LostBefore
				}
				return p.fates[n%len(p.fates)].fault
			})
			node.Delay = func(memjournal.Op) (time.Duration, time.Duration) {
				f := next()
				return f.there, f.back
			}
			for _, turn := range turns {
				set := func(to bool) {
					mu.Lock()
					cut = to
					mu.Unlock()
				}
				r.turn(t, node, fmt.Sprintf("node %d", i), turn, set)
				set(false)
			}
		})
	}
	wg.Wait()
	for _, l := range r.grants {
		l.drop()
	}
	pass(t, time.Minute) // what is still under way arrives
}

func (r *referee) turn(t *testing.T, node *memjournal.Journal, name string, p turnPlan, cut func(bool)) {
	t.Helper()
	ctx := t.Context()
	_ = hlc.System.Sleep(ctx, p.wait)
	s, err := settingsOf("p", nil) // each acquisition is a holder of its own
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	asking, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	l, err := acquire(asking, node, s)
	if err != nil {
		r.refused(err)
		return
	}
	r.granted(l)
	cut(p.cut)
	_ = hlc.System.Sleep(l.Context(), p.hold)
	r.mu.Lock()
	if errors.Is(context.Cause(l.Context()), ErrLapsed) {
		r.counts["lapsed"]++
	}
	r.mu.Unlock()
	switch p.end {
	case "release":
		if l.Release(ctx) == nil {
			r.mu.Lock()
			r.counts["released"]++
			r.mu.Unlock()
		}
	case "crash":
		l.drop()
	case "keep": // it goes on beside the next generation
	}
}
