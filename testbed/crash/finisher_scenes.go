package main

import (
	"context"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/byteproxy"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// finisherScenes are about several finishers of one branch, of which each has
// looked before the others acted.
func finisherScenes(kind kindOfLane, rounds int) []scene {
	all := []scene{
		{name: "killed between insert and marker", play: killedBeforeMarker, untouched: true},
		{name: "three finishers at once", play: atOnce(beforeInsert), rounds: rounds, untouched: true},
		{
			name: "stopped past its claim, having counted none", guard: guard.Inside, untouched: true,
			play: stopped(havingCounted, nil, finishMeanwhile),
		},
		{
			name: "the same, and the application deletes the rows", guard: guard.MarkerInside,
			proves: "a worker is stopped past its claim, having counted none; others finish, and the application deletes the rows",
			play:   stopped(havingCounted, nil, finishAndDelete),
		},
		{name: "its insert comes late", play: stopped(beforeInsert, nil, finishMeanwhile), untouched: true},
		{name: "its marker comes late", play: stopped(beforeMarker, nil, finishMeanwhile), untouched: true},
		{name: "its DELETE comes late", play: stopped(beforeDelete, torn, finishMeanwhile)},
		{
			name: "its DELETE comes before another's marker", guard: guard.Parts, play: deleteBeforeMarker,
			proves: "a worker's DELETE comes when another has repaired the same torn insert, and not yet written its marker",
		},
		{name: "torn, and inserted again", play: torn, guard: guard.Token},
		{name: "another's insert has only begun", play: onlyBegun, guard: guard.Twice, untouched: true},
		{name: "rows lost before the first marker", play: lostBeforeMarker, guard: guard.Whole},
	}
	for i := range all {
		all[i].kind = kind
		if kind.events.Window > 0 {
			all[i].name += " (window)"
		}
	}
	return all
}

// killedBeforeMarker kills the coordinator when its rows are in and its marker
// is on the way.
func killedBeforeMarker(ctx context.Context, l *lane, s *sight) error {
	net, err := byteproxy.Listen(ctx, l.far.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = net.Close() }() // its listener is all that could fail
	rule := beforeMarker(net)
	return l.act(ctx, cell{
		plan: plan.Plan{Work: l.work()}, ways: l.through(net),
		beside: func(ctx context.Context, l *lane, child *rig.Child, s *sight) error {
			if err := met(ctx, rule, child); err != nil || !rule.Met() {
				return err
			}
			rows, err := l.events.Has(ctx, s.txn)
			if err != nil {
				return err
			}
			s.hit = rows == l.events.Rows()
			return kill(ctx, l, child, s)
		},
	}, s)
}

// lostBeforeMarker: the coordinator's insert was acknowledged, and half of the
// rows are lost when its marker comes.
func lostBeforeMarker(ctx context.Context, l *lane, s *sight) error {
	net, err := byteproxy.Listen(ctx, l.far.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = net.Close() }() // its listener is all that could fail
	rule := beforeMarker(net)
	return l.act(ctx, cell{
		plan: plan.Plan{Work: l.work()}, ways: l.through(net),
		beside: func(ctx context.Context, l *lane, child *rig.Child, s *sight) error {
			defer rule.Release()
			if err := met(ctx, rule, child); err != nil || !rule.Met() {
				return err
			}
			return l.tear(ctx, s)
		},
	}, s)
}

// atOnce lets the coordinator and two workers send their requests at the same
// time, having looked at the same.
func atOnce(at hold) func(context.Context, *lane, *sight) error {
	return func(ctx context.Context, l *lane, s *sight) error { return l.atOnce(ctx, s, at) }
}

func (l *lane) atOnce(ctx context.Context, s *sight, at hold) error {
	net, err := byteproxy.Listen(ctx, l.far.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = net.Close() }() // its listener is all that could fail
	rule := at(net)
	return l.act(ctx, cell{
		plan: plan.Plan{Work: l.work()}, ways: l.through(net),
		beside: func(ctx context.Context, l *lane, child *rig.Child, s *sight) error {
			defer rule.Release()
			if err := met(ctx, rule, child); err != nil || !rule.Met() {
				return err
			}
			if err := rig.Pause(ctx, staleAfter+clockDrift); err != nil {
				return err
			}
			var workers []*worker
			for range 2 {
				w, err := l.worker(ctx, at)
				if err != nil {
					return err
				}
				workers = append(workers, w)
				if err := l.lapse(ctx); err != nil {
					return err
				}
			}
			rule.Release()
			for _, w := range workers {
				w.rule.Release()
			}
			s.hit = true
			for _, w := range workers {
				s.hit = w.end() && s.hit
			}
			return nil
		},
	}, s)
}

// torn leaves half of a unit's rows, under the tokens of a whole insert: a worker
// inserts them and is killed before its marker, and the other half is lost.
func torn(ctx context.Context, l *lane, s *sight) error {
	if err := l.decided(ctx, s); err != nil {
		return err
	}
	w, err := l.worker(ctx, beforeMarker)
	if err != nil {
		return err
	}
	if err := w.Kill(); err != nil {
		return err
	}
	_ = w.Wait() // killed
	_ = w.net.Close()
	if err := l.quiet(ctx); err != nil {
		return err
	}
	if err := l.tear(ctx, s); err != nil {
		return err
	}
	return l.lapse(ctx)
}

// tear takes half of the unit's rows away. Those of other units, in the same
// partitions, stay.
func (l *lane) tear(ctx context.Context, s *sight) error {
	if err := l.events.Tear(ctx, s.txn); err != nil {
		return err
	}
	rows, err := l.events.Has(ctx, s.txn)
	s.hit = rows > 0 && rows < l.events.Rows()
	return err
}

// stopped is a worker that is stopped at a request, past its claim, and goes on
// when others have finished. before brings about what it finds; nil: nothing of
// the unit is there.
func stopped(at hold, before, meanwhile func(context.Context, *lane, *sight) error) func(context.Context, *lane, *sight) error {
	if before == nil {
		before = func(ctx context.Context, l *lane, s *sight) error { return l.decided(ctx, s) }
	}
	return func(ctx context.Context, l *lane, s *sight) error {
		if err := before(ctx, l, s); err != nil {
			return err
		}
		w, err := l.worker(ctx, at)
		if err != nil {
			return err
		}
		if err := w.Freeze(); err != nil {
			return err
		}
		if err := l.lapse(ctx); err != nil {
			return err
		}
		if err := meanwhile(ctx, l, s); err != nil {
			return err
		}
		w.rule.Release()
		if err := w.Thaw(); err != nil {
			return err
		}
		s.hit = w.end()
		return l.quiet(ctx)
	}
}

func finishMeanwhile(ctx context.Context, l *lane, _ *sight) error {
	_, _, err := l.recovery.UntilClean(ctx, l.bound)
	return err
}

func finishAndDelete(ctx context.Context, l *lane, s *sight) error {
	if err := finishMeanwhile(ctx, l, s); err != nil {
		return err
	}
	return l.events.Delete(ctx, s.txn, "1")
}

// deleteBeforeMarker: one worker has counted a torn insert and is stopped before
// its DELETE; another has repaired it and is stopped before its marker; then the
// DELETE comes, and then the marker.
func deleteBeforeMarker(ctx context.Context, l *lane, s *sight) error {
	if err := torn(ctx, l, s); err != nil {
		return err
	}
	late, err := l.worker(ctx, beforeDelete)
	if err != nil {
		return err
	}
	if err := l.lapse(ctx); err != nil {
		return err
	}
	other, err := l.worker(ctx, beforeMarker)
	if err != nil {
		return err
	}
	// Its next look comes after the other's marker.
	counts := havingCounted(late.net)
	late.rule.Release()
	if err := met(ctx, counts, late.Child); err != nil {
		return err
	}
	if err := l.lapse(ctx); err != nil {
		return err
	}
	s.hit = other.end() && s.hit
	counts.Release()
	s.hit = late.end() && s.hit
	return nil
}

// onlyBegun: when a worker has found the server quiet, another's insert begins,
// and shows its rows one by one.
func onlyBegun(ctx context.Context, l *lane, s *sight) error {
	if err := l.decided(ctx, s); err != nil {
		return err
	}
	w, err := l.worker(ctx, foundQuiet)
	if err != nil {
		return err
	}
	times, err := l.Journal.Pairs(ctx, `SELECT dat_txn::text, dat_tx_time::text FROM dat_journal WHERE dat_txn = $1::uuid`, s.txn)
	if err != nil {
		return err
	}
	txn, err := branches.ParseTxnID(s.txn)
	if err != nil {
		return err
	}
	insert := make(chan error, 1)
	go func() {
		_, err := l.events.AskAs(ctx, branches.NewGID(txn, string(thirdEvents)).String()+":0", fmt.Sprintf(
			`INSERT INTO %s (k, stores, dat_txn, dat_tx_time) SELECT number + 1 + 0 * sleepEachRow(0.03), 3, '%s', %s FROM numbers(%d)
			SETTINGS async_insert=0, max_block_size=1, min_insert_block_size_rows=1, min_insert_block_size_bytes=1, max_insert_threads=1, max_threads=1`,
			l.events.Table(), s.txn, times[s.txn], l.events.Rows()))
		insert <- err
	}()
	if err := rig.Await(ctx, "first rows of an insert", func() (bool, error) {
		rows, err := l.events.Has(ctx, s.txn)
		return rows >= 3, err
	}); err != nil {
		return err
	}
	s.hit = w.end()
	if err := <-insert; err != nil {
		s.hit = false // it took so long that the worker has ended it
	}
	return l.quiet(ctx)
}
