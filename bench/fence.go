package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/bench/floor"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
)

// fences gathers how long a graph was closed to other writers.
type fences struct {
	mu       sync.Mutex
	prepared map[branches.TxnID]time.Time
	sample   []float64 // milliseconds
}

func (f *fences) Step(_ context.Context, e rhizodat.StepEvent) {
	if e.Moment != coordinator.After || e.Err != nil {
		return
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case e.Step == coordinator.S5 && e.Store == "":
		f.prepared[e.Txn] = now
	case e.Step == coordinator.S8 && strings.HasPrefix(e.Store, "graph"):
		f.sample = append(f.sample, milliseconds(now.Sub(f.prepared[e.Txn])))
		delete(f.prepared, e.Txn)
	}
}

func (*fences) Outcome(context.Context, rhizodat.OutcomeEvent) {}

// take is the median since it was last taken.
func (f *fences) take() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	sample := f.sample
	f.sample = nil
	return quartilesOf(sample).median
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// theirFences are the medians since they were last taken, in milliseconds.
func (d *duel) theirFences() (up, journal, release float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	median := func(of func(floor.Fence) time.Duration) float64 {
		var sample []float64
		for _, f := range d.fences {
			sample = append(sample, milliseconds(of(f)))
		}
		return quartilesOf(sample).median
	}
	up = median(func(f floor.Fence) time.Duration { return f.Up })
	journal = median(func(f floor.Fence) time.Duration { return f.Journal })
	release = median(func(f floor.Fence) time.Duration { return f.Release })
	d.fences = nil
	return up, journal, release
}

// fence prints how long the fence is up as multiples of one forced write of the
// journal and one commitPrepared, which forces drevo's own log: nobody has it up for
// less than these two, one behind the other. The floor's is the control. Beside it
// stands the multiple of that write and a round trip to drevo that forces nothing.
func (d *duel) fence(rounds int) {
	const n = 40
	var ours, theirs, bare []float64
	for i := range rounds {
		run := []func(){func() { clients(1, n, d.give) }, func() { clients(1, n, d.theirGive) }}
		run[i%2]()
		run[1-i%2]()
		answer := milliseconds(clients(1, n, func(int, int) error { return d.theirs.Answer(d.ctx) })) / n
		up := d.observer.take()
		theirUp, journal, release := d.theirFences()
		ours = append(ours, up/(journal+release))
		theirs = append(theirs, theirUp/(journal+release))
		bare = append(bare, up/(journal+answer))
	}
	multiple, again, ofBare := quartilesOf(ours), quartilesOf(theirs), quartilesOf(bare)
	fmt.Printf("the fence is up for %s of a forced journal write and a commitPrepared   control floor %s   (%s of that write and a round trip that forces nothing)\n",
		multiple, again, ofBare)
	figure("time_drevo_fence_multiple", fmt.Sprintf("%.3f", multiple.median), "<=1", multiple.median <= 1)
	figure("time_drevo_fence_multiple_of_bare_round_trip", fmt.Sprintf("%.3f", ofBare.median), ">=0", true)
}

// forced closes both and prints what a commit takes of the journal: while the fence is up it may
// force no more than the one write.
func (d *duel) forced() {
	const n = 100
	count := func(give func(c, i int) error) (statements, syncs float64) {
		return d.rig.cost(d.ctx, []string{"coord"}, n, func() (func(int) error, func()) {
			d.open()
			return func(i int) error { return give(1, i) }, d.close
		})
	}
	d.close()
	statements, syncs := count(d.give)
	theirStatements, theirSyncs := count(d.theirGive)
	fmt.Printf("per commit, of the journal: ours %.1f statements, %.2f forced writes; floor %.1f statements, %.2f forced writes\n",
		statements, syncs, theirStatements, theirSyncs)
	figure("drevo_journal_forced_writes_above_floor", fmt.Sprintf("%.2f", syncs-theirSyncs), "<=0.5", syncs-theirSyncs <= .5)
}
