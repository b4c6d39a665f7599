package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/journal"
)

// job is the work on one transaction.
type job struct {
	rec     journal.Record
	decided bool // it acts on a decision that was only read
	run     func(ctx context.Context, rec journal.Record) error
}

// journalFailures in a row end the work of a pass.
const journalFailures = 3

// work runs the jobs, some at once. A job that has begun is finished even when
// ctx ends, within its own bound; an error is the journal's.
func (p *pass) work(ctx context.Context) error {
	if slices.ContainsFunc(p.jobs, func(j *job) bool { return j.decided }) {
		// INVARIANT R3. Seen otherwise: COMMITTED was visible and not yet on the
		// disk, a branch was committed on it, the journal's server crashed and
		// came back with PREPARED, and the other branch was aborted.
		if err := p.w.cfg.Journal.Harden(ctx); err != nil {
			return err
		}
		if err := p.confirm(ctx); err != nil {
			return err
		}
	}
	var failures atomic.Int32
	return fan(p.w.cfg.Parallel, len(p.jobs), func(i int) error {
		j := p.jobs[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		limit := p.w.cfg.StoreTimeout * time.Duration(2+len(j.rec.Branches))
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		err := j.run(detached, j.rec)
		if err == nil {
			failures.Store(0)
			return nil
		}
		p.leave(j.rec, KindPending, err.Error())
		if failures.Add(1) < journalFailures {
			return nil
		}
		return fmt.Errorf("rhizodat: recover records: %w", err)
	})
}

// confirm reads the decisions that are to be acted on again, behind the forced
// write: a crash of the journal's server between the listing and that write may
// have taken one back, and the write then vouches for nothing. It also sees what
// a person has decided of a branch since.
func (p *pass) confirm(ctx context.Context) error {
	stand := map[branches.TxnID]journal.Record{}
	err := p.w.cfg.Journal.Scan(ctx, journal.Filter{States: []journal.State{journal.StateCommitted}}, func(rec journal.Record) error {
		stand[rec.Txn] = rec
		return nil
	})
	if err != nil {
		return &journalError{err}
	}
	p.jobs = slices.DeleteFunc(p.jobs, func(j *job) bool {
		if !j.decided || j.rec.State != journal.StateCommitted {
			return false
		}
		rec, ok := stand[j.rec.Txn]
		j.rec = rec
		return !ok
	})
	return nil
}

// store finds what may be touched; nil stands for everything else.
func (p *pass) store(name string) branches.Store {
	if s := p.stores[name]; s != nil && s.ok() {
		return s.store
	}
	return nil
}

// rollBack plans the end of prepared transactions whose unit is aborted, or is
// to be presumed so.
func (p *pass) rollBack(rec journal.Record, gids []found) {
	only := rec
	only.Branches = nil
	holds := map[string]branches.Store{}
	for _, g := range gids {
		only.Branches = append(only.Branches, journal.Branch{Store: g.GID.Store(), GID: g.GID, TwoPhase: true})
		holds[g.GID.Store()] = g.s.store
	}
	p.jobs = append(p.jobs, &job{rec: only, run: func(ctx context.Context, rec journal.Record) error {
		return p.takeBack(ctx, rec, func(name string) branches.Store { return holds[name] })
	}})
}

// abort ends a stale record that nobody has decided.
func (p *pass) abort(ctx context.Context, rec journal.Record) error {
	rec, free, err := p.w.load(ctx, rec)
	if err != nil {
		return err
	}
	defer free()
	return p.takeBack(ctx, rec, p.store)
}

func (p *pass) takeBack(ctx context.Context, rec journal.Record, stores coordinator.Stores) error {
	progress, err := p.w.cfg.Coordinator.RollBack(ctx, rec, stores)
	if err != nil {
		return err
	}
	if progress.State != journal.StateAborted {
		p.count(&p.report.Raced)
		p.changed(rec.Txn, progress.State)
		return nil
	}
	p.count(&p.report.RolledBack)
	p.changed(rec.Txn, progress.State)
	rec.State = progress.State
	if len(progress.Heuristics) > 0 {
		p.w.flag(rec.Txn, p.leave(rec, KindHeuristic, progress.Heuristics[0].Error()))
	}
	if len(progress.Pending) > 0 {
		p.leave(rec, KindPending, p.reasons(progress.Pending))
	}
	return nil
}

// rollForward finishes a decided record.
func (p *pass) rollForward(ctx context.Context, rec journal.Record) error {
	claimed, err := p.w.claim(ctx, rec, p.clock)
	if err != nil {
		return err
	}
	if !claimed {
		p.leave(rec, KindClaimed, "changed by another worker a moment ago")
		return nil
	}
	progress, err := p.forward(ctx, rec)
	if err != nil {
		// The journal was lost for a moment. Where it is back, others need not wait
		// until the claim lapses: a pass that runs once is over.
		if hasPayload(rec) {
			_ = p.w.unclaim(ctx, rec.Txn) // the error at hand says more
		}
		return err
	}
	if progress.State == journal.StateDone {
		p.count(&p.report.RolledForward)
		p.changed(rec.Txn, journal.StateDone)
		return nil
	}
	p.postpone(rec.Txn, progress)
	if hasPayload(rec) {
		if err := p.w.unclaim(ctx, rec.Txn); err != nil {
			return err
		}
	}
	switch {
	case len(progress.Heuristics) > 0:
		p.leave(rec, KindHeuristic, progress.Heuristics[0].Error())
	case len(progress.Pending) > 0:
		p.leave(rec, KindPending, p.reasons(progress.Pending))
	default:
		p.leave(rec, KindHeuristic, "")
	}
	return nil
}

// forward finishes the branches of a record that this worker may finish.
func (p *pass) forward(ctx context.Context, rec journal.Record) (coordinator.Progress, error) {
	whole, free, err := p.w.load(ctx, rec)
	if err != nil {
		return coordinator.Progress{}, err
	}
	defer free()
	return p.w.forward(ctx, whole, p.store)
}

// postpone says when a record that could not be finished is tried again.
func (p *pass) postpone(txn branches.TxnID, progress coordinator.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.w.seen[txn]
	s.waiting = sortedKeys(progress.Pending)
	s.next = p.w.wall.Now().Add(backoff(p.w.cfg.Interval, s.tries))
	s.tries++
}

// restore plans the end of prepared transactions whose record is DONE.
func (p *pass) restore(rec journal.Record, gids []found) {
	only := rec
	only.Branches = nil
	for _, g := range gids {
		i := slices.IndexFunc(rec.Branches, func(b journal.Branch) bool { return b.GID == g.GID })
		only.Branches = append(only.Branches, rec.Branches[i])
	}
	p.jobs = append(p.jobs, &job{rec: only, decided: true, run: func(ctx context.Context, rec journal.Record) error {
		progress, err := p.w.cfg.Coordinator.RollForward(ctx, rec, p.store)
		if err == nil && len(progress.Pending) > 0 {
			p.leave(rec, KindPending, p.reasons(progress.Pending))
		}
		return err
	}})
}

// forward is RollForward, and DONE also where nothing is left but branches that
// a person gave up and whose store does not answer: should it ever come back
// with them, the sweep takes them back (outcome skipped).
func (w *Worker) forward(ctx context.Context, rec journal.Record, stores coordinator.Stores) (coordinator.Progress, error) {
	progress, err := w.cfg.Coordinator.RollForward(ctx, rec, stores)
	if err != nil || progress.State != journal.StateCommitted || len(waiting(rec, progress)) > 0 {
		return progress, err
	}
	if _, err := w.cfg.Journal.Finish(ctx, []branches.TxnID{rec.Txn}); err != nil {
		return progress, &journalError{err}
	}
	progress.State = journal.StateDone
	return progress, nil
}

// waiting lists the stores whose branch keeps a decided record from being DONE.
func waiting(rec journal.Record, progress coordinator.Progress) []string {
	var names []string
	for _, b := range rec.Branches {
		if b.Outcome == journal.OutcomeHeuristic || !b.Outcome.Settled() && progress.Pending[b.Store] != nil {
			names = append(names, b.Store)
		}
	}
	for _, h := range progress.Heuristics {
		if !slices.Contains(names, h.Store) {
			names = append(names, h.Store)
		}
	}
	return names
}

// annotate reads a record, lets change alter its outcomes or note, and writes
// it back; again as long as others change it in between.
func (w *Worker) annotate(ctx context.Context, txn branches.TxnID, change func(*journal.Record) bool) error {
	session, err := w.cfg.Journal.Session(ctx)
	if err != nil {
		return err
	}
	defer session.Release()
	for {
		rec, err := session.Read(ctx, txn)
		if err != nil {
			return err
		}
		if !change(&rec) {
			return nil
		}
		var conflict *journal.Conflict
		if err := w.cfg.Journal.Annotate(ctx, rec); !errors.As(err, &conflict) {
			return err
		}
	}
}

// changed takes in that a record has left the state it was read in.
func (p *pass) changed(txn branches.TxnID, to journal.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rec, there := p.live[txn]
	if !there {
		return
	}
	if rec.State = to; to.Final() {
		delete(p.live, txn)
		return
	}
	p.live[txn] = rec
}

func (p *pass) count(n *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n++
}

// reasons says what each store answered.
func (p *pass) reasons(pending map[string]error) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		text := pending[name].Error()
		if s := p.stores[name]; s != nil && !s.ok() {
			text = string(s.Standing) + ": " + s.Problem
		}
		texts = append(texts, name+": "+text)
	}
	return strings.Join(texts, "; ")
}

// fan calls f for 0 to n-1, at most width at once, waits for all, and returns
// the first error. After an error no further call is begun.
func fan(width, n int, f func(int) error) error {
	var next atomic.Int64
	var once sync.Once
	var first error
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range min(width, n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && !failed.Load(); i = next.Add(1) - 1 {
				if err := f(int(i)); err != nil {
					once.Do(func() { first = err })
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return first
}
