package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// ErrNoCompaction means that the journal cannot remove records.
var ErrNoCompaction = errors.New("rhizodat: compact journal: this journal does not remove records")

// CompactOptions of Compact. The zero value is what the daemon does.
type CompactOptions struct {
	Retain   time.Duration // zero: the worker's
	Batch    int           // records and markers of one write; zero: 500
	Progress func(Compacted)
	// Archive, if it is set, is given the records before they are removed, without
	// their payloads: what a unit wrote is in the stores. They are removed only
	// after it has returned nil.
	Archive func(ctx context.Context, records []journal.Record) error
}

// Compacted is what Compact has done so far.
type Compacted struct {
	Records int `json:"records"` // removed from the journal
	Markers int `json:"markers"` // removed from the stores, of one-phase commits
	// Kept are final records past retain that could not be removed: a store
	// could not be listed, a branch is still prepared, or a person is waited for.
	Kept    int            `json:"kept"`
	Reasons map[string]int `json:"reasons,omitempty"` // why they were kept
}

const compactBatch = 500

// Compact removes final records that have not changed for retain, each only
// after every two-phase branch of it was seen gone in a complete listing of its
// store, then the markers that they leave, then the markers of one-phase commits
// past retain. What it removes raises the journal's horizon first: a prepared
// transaction from before the horizon is never again presumed aborted.
//
// It may run beside passes, commits and other compactions, and be cut short.
func (w *Worker) Compact(ctx context.Context, o CompactOptions) (Compacted, error) {
	compactor, ok := w.cfg.Journal.(journal.Compactor)
	if !ok {
		return Compacted{}, ErrNoCompaction
	}
	c := &compaction{
		w: w, journal: compactor, batch: orDefault(o.Batch, compactBatch), progress: o.Progress, archive: o.Archive,
		done: Compacted{Reasons: map[string]int{}},
	}
	clock, err := w.journalClock(ctx)
	if err != nil {
		return c.done, err
	}
	c.before = clock.Add(-orDefault(o.Retain, w.cfg.Retain))
	if c.stores, err = w.sound(ctx); err != nil {
		return c.done, err
	}
	if err := c.records(ctx); err != nil {
		return c.done, err
	}
	return c.done, c.markers(ctx)
}

// sound are the stores whose identity is certain. It changes nothing.
func (w *Worker) sound(ctx context.Context) (map[string]branches.Store, error) {
	id, err := w.registry.Identify(ctx)
	if err != nil {
		return nil, err
	}
	sound := map[string]branches.Store{}
	for name, store := range w.cfg.Stores {
		limit, cancel := context.WithTimeout(ctx, w.cfg.StoreTimeout)
		found, err := w.identify(limit, name, store)
		cancel()
		if err == nil && found.refusal(name, id) == nil && (found.known || found.keeper == nil) {
			sound[name] = newPaced(store, w.cfg.StoreTimeout)
		}
	}
	return sound, nil
}

// compaction is one run of Compact.
type compaction struct {
	w        *Worker
	journal  journal.Compactor
	stores   map[string]branches.Store // sound ones, by name
	before   time.Time
	batch    int
	progress func(Compacted)
	archive  func(context.Context, []journal.Record) error
	done     Compacted
}

// records removes batch by batch. Removable begins with the oldest each time,
// so what is kept stays at its head and the window has to grow by that.
func (c *compaction) records(ctx context.Context) error {
	for {
		list, err := c.journal.Removable(ctx, c.before, c.batch+c.done.Kept)
		if _, complete := damagedIn(err); !complete {
			return err
		}
		c.done.Kept, c.done.Reasons = 0, map[string]int{}
		listed := c.list(ctx) // after Removable: what is listed later was prepared later
		var remove []journal.Record
		for _, rec := range list {
			if reason := c.keep(ctx, rec, listed); reason != "" {
				c.done.Kept++
				c.done.Reasons[reason]++
				continue
			}
			remove = append(remove, rec)
		}
		if len(remove) == 0 {
			return nil
		}
		if err := c.keepCopy(ctx, remove); err != nil {
			return err
		}
		if err := c.remove(ctx, remove); err != nil {
			return err
		}
	}
}

// keepCopy archives records that are about to be removed.
func (c *compaction) keepCopy(ctx context.Context, list []journal.Record) error {
	if c.archive == nil {
		return nil
	}
	light := make([]journal.Record, len(list))
	for i, rec := range list {
		light[i] = rec
		light[i].Branches = slices.Clone(rec.Branches)
		for j := range light[i].Branches {
			light[i].Branches[j].Payload = nil
		}
	}
	return c.archive(ctx, light)
}

// list lists the prepared transactions of every store; a store that is missing
// in the answer could not be listed.
func (c *compaction) list(ctx context.Context) map[string]map[branches.GID]bool {
	listed := map[string]map[branches.GID]bool{}
	for name := range c.stores {
		lister, ok := c.w.cfg.Stores[name].(branches.Lister)
		if !ok {
			continue
		}
		limit, cancel := context.WithTimeout(ctx, c.w.cfg.StoreTimeout)
		gids, err := lister.Prepared(limit)
		cancel()
		if err != nil {
			continue
		}
		listed[name] = map[branches.GID]bool{}
		for _, g := range gids {
			listed[name][g.GID] = true
		}
	}
	return listed
}

// keep says why a record must stay; empty: it may go.
func (c *compaction) keep(ctx context.Context, rec journal.Record, listed map[string]map[branches.GID]bool) string {
	if heuristic(rec) {
		return "a heuristic branch waits for a person"
	}
	for _, b := range rec.Branches {
		if !b.TwoPhase {
			continue
		}
		gids, complete := listed[b.Store]
		switch {
		case !complete:
			return "store " + b.Store + " could not be listed"
		case gids[b.GID]:
			return "a branch is still prepared in store " + b.Store
		}
	}
	if rec.State == journal.StateAborted && !c.cleared(ctx, rec) {
		return "staged data of an aborted branch could not be removed"
	}
	return ""
}

// cleared takes back staged data of an aborted unit once more: its store may
// have been down when the unit was aborted, and nobody comes back to a final
// record after this.
func (c *compaction) cleared(ctx context.Context, rec journal.Record) bool {
	whole, free, err := c.w.load(ctx, rec)
	if err != nil {
		return false
	}
	defer free()
	for _, b := range whole.Branches {
		if b.TwoPhase || b.Outcome.Settled() {
			continue
		}
		store := c.stores[b.Store]
		if store == nil || store.Abort(ctx, whole.Ref(b)) != nil {
			return false
		}
	}
	return true
}

// remove deletes the records, and then their markers. A crash in between leaves
// markers, which go with those of the one-phase commits.
func (c *compaction) remove(ctx context.Context, list []journal.Record) error {
	txns := make([]branches.TxnID, len(list))
	byStore := map[string][]branches.TxnID{}
	for i, rec := range list {
		txns[i] = rec.Txn
		for _, b := range rec.Branches {
			byStore[b.Store] = append(byStore[b.Store], rec.Txn)
		}
	}
	n, err := c.journal.Remove(ctx, txns)
	if err != nil {
		return err
	}
	c.done.Records += n
	c.tell()
	for _, name := range slices.Sorted(maps.Keys(byStore)) {
		if err := c.cleaner(name, func(cleaner branches.Cleaner) error {
			return cleaner.RemoveMarkers(ctx, byStore[name])
		}); err != nil {
			return err
		}
	}
	return nil
}

// markers removes those of one-phase commits past retain. The marker of a unit
// that still has a record is a proof that somebody may need.
func (c *compaction) markers(ctx context.Context) error {
	var keep []branches.TxnID
	err := c.w.cfg.Journal.Scan(ctx, journal.Filter{States: journal.States}, func(rec journal.Record) error {
		if rec.Txn.Time().Before(c.before) {
			keep = append(keep, rec.Txn)
		}
		return nil
	})
	if damaged, complete := damagedIn(err); !complete || len(damaged) > 0 {
		return err // a record that cannot be read may need any marker
	}
	for _, name := range slices.Sorted(maps.Keys(c.stores)) {
		if err := c.cleaner(name, func(cleaner branches.Cleaner) error {
			for {
				n, err := cleaner.RemoveMarkersBefore(ctx, c.before, keep, c.batch)
				c.done.Markers += n
				c.tell()
				if err != nil || n < c.batch {
					return err
				}
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// cleaner calls f where the store is sound and has markers that can be removed.
func (c *compaction) cleaner(name string, f func(branches.Cleaner) error) error {
	if c.stores[name] == nil {
		return nil
	}
	cleaner, ok := c.w.cfg.Stores[name].(branches.Cleaner)
	if !ok {
		return nil
	}
	if err := f(cleaner); err != nil {
		return fmt.Errorf("rhizodat: remove markers of store %s: %w", name, err)
	}
	return nil
}

func (c *compaction) tell() {
	if c.progress != nil {
		c.progress(c.done)
	}
}
