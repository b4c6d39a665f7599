package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"text/tabwriter"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

const (
	leakUnits      = 10_000
	leakUnitsShort = 1_000
	leakWorkers    = 8
	// mostBackends are a store's sessions: the pool's, and those on which
	// branches are finished. The journal's are journal_conns and one.
	mostBackends        = leakWorkers + 4
	mostJournalBackends = 16 + 1
)

// leakRun is many units with errors at every step, and what they leave behind.
type leakRun struct {
	lane  *lane
	db    *sql.DB
	units sync.Map // dat_txn -> *faulty

	mu       sync.Mutex
	failed   error // of the test itself
	verdicts map[string]map[string]int
	over     int // backends above what is allowed, at any look
}

func (r *leakRun) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = errors.Join(r.failed, err)
}

// leaks runs units with an error at every step and looks for what they leave.
func leaks(ctx context.Context, h *house) error {
	l, err := h.lane(ctx, kindOfLane{})
	if err != nil {
		return err
	}
	if _, err := l.Stores["a"].Exec(ctx, `CREATE TABLE parent (id int PRIMARY KEY);
		CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)`); err != nil {
		return err
	}
	r := &leakRun{lane: l, verdicts: map[string]map[string]int{}}
	before := runtime.NumGoroutine()
	connector, err := openConnector(l, r) //nolint:contextcheck // it connects to nothing
	if err != nil {
		return err
	}
	r.db = sql.OpenDB(connector)
	r.db.SetMaxOpenConns(leakWorkers)
	r.db.SetMaxIdleConns(leakWorkers)
	units := leakUnits
	if h.short {
		units = leakUnitsShort
	}
	r.run(ctx, units)
	inUse := r.db.Stats().InUse
	if err := errors.Join(r.failed, r.db.Close()); err != nil {
		return err
	}
	r.print()
	// What is left is of ended backends and goroutines on their way out.
	goroutines := rig.Await(ctx, "end of goroutines", func() (bool, error) { return runtime.NumGoroutine() <= before, nil })
	sessions := l.quiet(ctx)
	h.board.AtLeast("leak_units", units, units)
	h.board.Exactly("leak_connections_in_use", inUse, 0)
	h.board.Exactly("leak_backends_over_bound", r.over, 0)
	h.board.Exactly("leak_backends_after_close", count(sessions), 0)
	h.board.Exactly("leak_goroutines", count(goroutines), 0)
	return r.remains(ctx, h)
}

func count(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

// run runs the units, every fault as often as the others.
func (r *leakRun) run(ctx context.Context, units int) {
	faults := allFaults()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range leakWorkers {
		wg.Go(func() {
			for n := int(next.Add(1)); n <= units && ctx.Err() == nil; n = int(next.Add(1)) {
				f := faults[n%len(faults)]
				out := r.unit(ctx, f)
				r.mu.Lock()
				if r.verdicts[f.name] == nil {
					r.verdicts[f.name] = map[string]int{}
				}
				r.verdicts[f.name][out.Verdict.String()]++
				if !out.DatTxn.IsZero() && !f.reads {
					r.lane.reported[out.DatTxn.String()] = out.Verdict.String()
				}
				r.mu.Unlock()
				if n%(units/10) == 0 {
					r.look(ctx)
				}
			}
		})
	}
	wg.Wait()
	r.look(ctx)
}

// settled waits for the end of a unit that database/sql rolls back in a
// goroutine of its own.
func (r *leakRun) settled(ctx context.Context, handle *rhizodat.Handle) rhizodat.Outcome {
	r.note(rig.Await(context.WithoutCancel(ctx), "end of unit", func() (bool, error) {
		return handle.Outcome().Verdict != rhizodat.VerdictNone, nil
	}))
	return handle.Outcome()
}

// look counts backends while the units run.
func (r *leakRun) look(ctx context.Context) {
	over := 0
	for db, most := range map[*rig.Database]int{
		r.lane.Stores["a"]: mostBackends, r.lane.Stores["b"]: mostBackends, r.lane.Journal: mostJournalBackends,
	} {
		n, err := db.Sessions(ctx)
		r.note(err)
		over = max(over, n-most)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = max(r.over, over)
}

// remains compares what is left with what was told, and then compacts.
func (r *leakRun) remains(ctx context.Context, h *house) error {
	l := r.lane
	s := &sight{}
	if err := l.heal(ctx, cell{}, s); err != nil {
		return err
	}
	if err := l.inspect(ctx, cell{}, s); err != nil {
		return err
	}
	states, err := l.States(ctx)
	if err != nil {
		return err
	}
	fates, err := l.Fates(ctx)
	if err != nil {
		return err
	}
	rows := 0 // of the journal, that are not as expected
	for txn, fate := range fates {
		if fate.Of == 2 && states[txn] != "DONE" || fate.Of == 1 && states[txn] != "" {
			rows++
		}
	}
	markers := 0
	for _, name := range []string{"a", "b"} {
		n, err := l.Stores[name].Int(ctx, `SELECT count(*) FROM (SELECT DISTINCT dat_txn FROM ledger) l
			FULL JOIN (SELECT dat_txn FROM dat_applied WHERE dat_tx_time > 0) m USING (dat_txn)
			WHERE l.dat_txn IS NULL OR m.dat_txn IS NULL`)
		if err != nil {
			return err
		}
		markers += n
	}
	gids, err := l.Prepared(ctx)
	if err != nil {
		return err
	}
	h.board.Exactly("leak_prepared", len(gids), 0)
	h.board.Exactly("leak_journal_rows_unexpected", rows, 0)
	h.board.Exactly("leak_markers_unexpected", markers, 0)
	h.violations("leak", s.violations)
	return r.compact(ctx, h, len(states))
}

// compact removes records and markers; none may be left.
func (r *leakRun) compact(ctx context.Context, h *house, records int) error {
	l := r.lane
	if _, _, err := l.recovery.Run(ctx, "compact", "--quiet", "--retain=1ms"); err != nil {
		return err
	}
	left, err := l.States(ctx)
	if err != nil {
		return err
	}
	markers := 0
	for _, name := range l.Names() {
		n, err := l.Stores[name].Int(ctx, `SELECT count(*) FROM dat_applied`)
		if err != nil {
			return err
		}
		markers += n
	}
	h.board.AtLeast("leak_records_before_compaction", records, 1)
	h.board.Exactly("leak_records_after_compaction", len(left), 0)
	h.board.Exactly("leak_markers_after_compaction", markers, 0)
	return nil
}

func (r *leakRun) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range allFaults() {
		_, _ = fmt.Fprintf(w, "%s\t%v\n", f.name, r.verdicts[f.name]) // to memory
	}
	_ = w.Flush() // a broken pipe ends the program by itself
}
