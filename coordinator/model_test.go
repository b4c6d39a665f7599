package coordinator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// plan is one random history: units, faults, crashes, recovery beside them.
type plan struct {
	stores    []string
	latency   []time.Duration // of each store, then of the journal
	units     []plannedUnit
	split     bool
	places    int
	script    fake.Script
	crashes   []time.Duration // of the journal
	restarts  []restart       // of a store
	resolves  *resolve        // a store ends its prepared branches by itself; nil: none does
	recovery  []time.Duration // passes of workers, all with stale_after=0
	kill      time.Duration   // of the program; 0 is never
	stop      string          // a point at which the program is stopped
	stopFor   time.Duration
	lastCrash bool // the journal crashes once more before the last recovery
}

type plannedUnit struct {
	at, patience time.Duration
	parts        []part
}

type restart struct {
	at    time.Duration
	store int
}

type resolve struct {
	point string
	store int
	to    fake.TxnState
}

// The requests that may meet a fault; those after which most is at stake come
// more than once.
var (
	storeOps = []trace.Op{
		trace.Prepare, trace.Prepare, trace.Finish, trace.Finish, trace.Commit, trace.Settle,
		trace.Abort, trace.Ping, trace.Stage, trace.Rollback,
	}
	journalOps = []trace.Op{
		trace.Decide, trace.Decide, trace.Decide, trace.Decide, trace.Forbid, trace.Forbid, trace.Harden,
		trace.Create, trace.Prepared, trace.Done, trace.Read, trace.Annotate,
	}
	faults = []fake.FaultKind{fake.Slow, fake.Refuse, fake.LostBefore, fake.LostAfter, fake.Late, fake.Hang, fake.HangAfter}
)

// moments are the times at which something may happen: most of them while the
// first units commit.
func moments() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		limit := rapid.SampledFrom([]int{5_000, 30_000, 400_000, 5_000_000}).Draw(t, "within")
		return time.Duration(rapid.IntRange(1, limit).Draw(t, "microseconds")) * time.Microsecond
	})
}

func plans() *rapid.Generator[plan] {
	return rapid.Custom(func(t *rapid.T) plan {
		p := plan{script: fake.Script{}}
		for i := range rapid.IntRange(1, 4).Draw(t, "stores") {
			p.stores = append(p.stores, string(rune('a'+i)))
		}
		for range len(p.stores) + 1 {
			p.latency = append(p.latency, time.Duration(rapid.IntRange(100, 6000).Draw(t, "latency"))*time.Microsecond)
		}
		p.split = rapid.Bool().Draw(t, "split")
		p.places = rapid.IntRange(1, 3).Draw(t, "places")
		for range rapid.IntRange(1, 3).Draw(t, "units") {
			p.units = append(p.units, drawUnit(t, p.stores))
		}
		for range rapid.IntRange(0, 6).Draw(t, "faults") {
			drawFault(t, p)
		}
		p.crashes = rapid.SliceOfN(moments(), 0, 2).Draw(t, "crashes")
		p.recovery = rapid.SliceOfN(moments(), 0, 4).Draw(t, "recovery")
		p.lastCrash = rapid.Bool().Draw(t, "last crash")
		if rapid.IntRange(0, 4).Draw(t, "restart") == 0 {
			p.restarts = append(p.restarts, restart{moments().Draw(t, "at"), rapid.IntRange(0, len(p.stores)-1).Draw(t, "store")})
		}
		if rapid.IntRange(0, 4).Draw(t, "resolve") == 0 {
			p.resolves = &resolve{
				point: rapid.SampledFrom([]string{"S5.after", "S7.before", "S7.after", "S8.before"}).Draw(t, "resolve at"),
				store: rapid.IntRange(0, len(p.stores)-1).Draw(t, "store"),
				to:    rapid.SampledFrom([]fake.TxnState{fake.Committed, fake.RolledBack}).Draw(t, "to"),
			}
		}
		switch rapid.IntRange(0, 5).Draw(t, "program") {
		case 0:
			p.kill = moments().Draw(t, "kill")
		case 1:
			p.stop = drawPoint(t)
			p.stopFor = moments().Draw(t, "stop for") * 100
		}
		return p
	})
}

func drawUnit(t *rapid.T, stores []string) plannedUnit {
	u := plannedUnit{at: time.Duration(rapid.IntRange(0, 20_000).Draw(t, "begin")) * time.Microsecond}
	for _, store := range stores {
		kind := rapid.SampledFrom([]func(string) part{writer, writer, certain, certain, reader, payload, nil}).Draw(t, "part")
		if kind != nil {
			u.parts = append(u.parts, kind(store))
		}
	}
	u.patience = time.Minute // S3 and a one-phase COMMIT hang as long as the caller lets them
	if rapid.IntRange(0, 3).Draw(t, "impatient") == 0 {
		u.patience = moments().Draw(t, "patience")
	}
	return u
}

func drawFault(t *rapid.T, p plan) {
	c := fake.Call{Proc: rapid.SampledFrom([]string{"app", "app", "app", "worker0", "worker1"}).Draw(t, "proc")}
	if rapid.Bool().Draw(t, "of the journal") {
		c.Actor, c.Op = trace.Journal, rapid.SampledFrom(journalOps).Draw(t, "op")
	} else {
		c.Actor, c.Op = rapid.SampledFrom(p.stores).Draw(t, "store"), rapid.SampledFrom(storeOps).Draw(t, "op")
	}
	c.N = rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2}).Draw(t, "nth") // 0: every one
	f := fake.Fault{Kind: rapid.SampledFrom(faults).Draw(t, "fault"), D: moments().Draw(t, "d")}
	if c.Op == trace.Decide && rapid.Bool().Draw(t, "soft") {
		f.Kind = fake.Soft
	}
	if f.Kind == fake.Refuse && c.Actor == trace.Journal {
		f.Kind = fake.LostBefore // a journal refuses by Conflict alone
	}
	p.script[c] = f
}

func drawPoint(t *rapid.T) string {
	return coordinator.StepEvent{
		Step:   coordinator.Step(rapid.IntRange(int(coordinator.S3), int(coordinator.S10)).Draw(t, "step")),
		Moment: rapid.SampledFrom([]coordinator.Moment{coordinator.Before, coordinator.After}).Draw(t, "moment"),
	}.Point()
}

// TestModel plays random histories. Whatever happens in them, every trace obeys
// the invariants, recovery leaves every unit whole, and what was reported is
// true. It plays -rapid.checks histories, see TestMain.
func TestModel(t *testing.T) {
	seen := &tally{}
	rapid.Check(t, func(rt *rapid.T) {
		p := plans().Draw(rt, "plan")
		var found, text string
		inBubble(t, func(t *testing.T) {
			t.Helper()
			s, err := playPlan(t, p)
			seen.count(s)
			if err != nil {
				found = "recovery: " + err.Error() + "\n"
			}
			for _, v := range s.violations() {
				found += v.String() + "\n"
			}
			text = trace.Text(s.world.Log.Events())
		})
		if found != "" {
			rt.Fatalf("%s%s", found, text)
		}
	})
	seen.demand(t)
}

// playPlan REQUIRES a synctest bubble.
func playPlan(t *testing.T, p plan) (*scene, error) {
	t.Helper()
	ctx := t.Context()
	s := newScene(ctx, p.stores, coordinator.Config{
		Markers: true, SplitDecision: p.split, CommitTimeout: 2 * time.Second, FinishTimeout: 300 * time.Millisecond,
	}, p.places)
	for i, server := range s.world.Stores {
		server.SetLatency(p.latency[i])
	}
	s.world.Journal.SetLatency(p.latency[len(p.stores)])
	s.world.Play(p.script)
	if p.stop != "" {
		s.on(p.stop, func(s *scene) { _ = hlc.System.Sleep(ctx, p.stopFor) })
	}

	var life sync.WaitGroup
	at := func(d time.Duration, f func()) {
		life.Go(func() {
			_ = hlc.System.Sleep(ctx, d)
			f()
		})
	}
	for i, u := range p.units {
		played := s.begin(i+1, u.parts)
		at(u.at, func() {
			ctx, cancel := context.WithTimeout(ctx, u.patience)
			defer cancel()
			s.commit(ctx, played)
		})
	}
	for _, d := range p.crashes {
		at(d, s.world.Journal.Crash)
	}
	for _, r := range p.restarts {
		at(r.at, s.world.Stores[r.store].Restart)
	}
	if r := p.resolves; r != nil {
		s.on(r.point, func(s *scene) {
			for i, u := range s.units {
				if s.world.Stores[r.store].Resolve(txnOf(i+1), r.to) {
					u.heuristic = true
				}
			}
		})
	}
	for i, d := range p.recovery {
		at(d, func() { _ = s.recovery(fmt.Sprintf("worker%d", i)) }) // it may fail as it likes
	}
	if p.kill > 0 {
		at(p.kill, s.app.Kill)
	}
	life.Wait()
	if p.lastCrash {
		s.world.Journal.Crash()
	}
	return s, s.settle()
}

// tally counts what the histories have hit: a model that never gets anywhere
// proves nothing.
type tally struct {
	mu                        sync.Mutex
	verdicts                  map[coordinator.Verdict]int
	rolledBack, rolledForward int // units that recovery ended, while programs ran or after
	refused                   int // requests that lost a compare-and-set
}

func (c *tally) count(s *scene) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verdicts == nil {
		c.verdicts = map[coordinator.Verdict]int{}
	}
	for _, u := range s.units {
		if u.out != nil {
			c.verdicts[u.out.Verdict]++
		}
	}
	for _, e := range s.world.Log.Events() {
		recovery := e.What == trace.Took && e.Proc != "app" && e.Proc != "" && e.Wrote
		switch {
		case recovery && e.Op == trace.Abort:
			c.rolledBack++
		case recovery && e.Op == trace.Finish:
			c.rolledForward++
		case e.What == trace.Replied && e.Op == trace.Decide && e.Err != nil && !branches.IsUnknown(e.Err):
			c.refused++
		}
	}
}

func (c *tally) demand(t *testing.T) {
	t.Helper()
	t.Logf("verdicts %v, rolled back by recovery %d, rolled forward %d, S7 refused %d", c.verdicts, c.rolledBack, c.rolledForward, c.refused)
	for v := coordinator.VerdictCommitted; v <= coordinator.VerdictHeuristic; v++ {
		if c.verdicts[v] == 0 {
			t.Errorf("no unit ended %s", v)
		}
	}
	if c.rolledBack == 0 || c.rolledForward == 0 || c.refused == 0 {
		t.Error("recovery and the program never met")
	}
}
