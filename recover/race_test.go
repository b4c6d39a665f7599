package recovery_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// 8 committers run against a recovery loop of 10 ms for raceFor, or longer on a
// slow machine: until there is something to judge.
const (
	raceFor  = 3 * time.Second
	raceLast = 90 * time.Second
)

// tally counts what committers and worker saw.
type tally struct {
	mu        sync.Mutex
	outcomes  map[int64]outcome // by row
	conflicts atomic.Int64
	sweeps    atomic.Int64
	seen      atomic.Int64 // gids in listings
	back      atomic.Int64
	alarms    atomic.Int64
}

// outcome is what one committer was told.
type outcome struct {
	txn       branches.TxnID
	committed bool
	known     bool
}

// Step and Outcome count the conflicts of coordinators.
func (y *tally) Step(context.Context, rhizodat.StepEvent) {}

func (y *tally) Outcome(_ context.Context, e rhizodat.OutcomeEvent) {
	if e.Conflict {
		y.conflicts.Add(1)
	}
}

// Pass counts what the worker did.
func (y *tally) Pass(_ context.Context, r recovery.Report, err error) {
	if err != nil {
		return
	}
	y.sweeps.Add(1)
	y.back.Add(int64(r.RolledBack))
	y.alarms.Add(int64(r.Stuck + r.Heuristic + r.Unexplained + r.Restored))
	for _, s := range r.Stores {
		y.seen.Add(int64(s.Listed))
		if s.Standing != recovery.StandingOK {
			y.alarms.Add(1)
		}
	}
}

// race runs the committers and the loop, and checks that every outcome that a
// committer was told is true.
func race(t *testing.T, staleAfter time.Duration, enough func(*tally) bool) *tally {
	t.Helper()
	d := two(t, pgtest.Server(t))
	y := &tally{outcomes: map[int64]outcome{}}
	words := []string{"journal=" + d.journal}
	for _, name := range slices.Sorted(maps.Keys(d.stores)) {
		words = append(words, name+"="+d.stores[name])
	}
	cfg, err := rhizodat.ParseDSN(strings.Join(words, " "))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Observer, cfg.Logger = y, slog.New(slog.DiscardHandler)
	connector, err := rhizodat.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)

	ctx, stop := context.WithTimeout(t.Context(), raceLast)
	defer stop()
	began := time.Now()
	w := d.worker(t, func(c *recovery.Config) {
		c.StaleAfter, c.Interval, c.Observer, c.Logger = staleAfter, 10*time.Millisecond, y, slog.New(slog.DiscardHandler)
	})
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Run(ctx) })
	var rows atomic.Int64
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				y.commit(context.WithoutCancel(ctx), t, db, rows.Add(1))
				if time.Since(began) > raceFor && enough(y) {
					stop()
				}
			}
		})
	}
	wg.Wait()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	for range 5 { // what was left when the loop stopped
		if d.pass(t).ExitCode() == 0 {
			break
		}
	}
	y.check(t, d)
	return y
}

func (y *tally) commit(ctx context.Context, t *testing.T, db *sql.DB, row int64) {
	t.Helper()
	ctx, handle := rhizodat.Track(ctx)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Errorf("begin: %v", err)
		return
	}
	for _, store := range []string{"a", "b"} {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("store:%s INSERT INTO item VALUES (%d)", store, row)); err != nil {
			t.Errorf("insert: %v", err)
			_ = tx.Rollback()
			return
		}
	}
	err = tx.Commit()
	var inDoubt *rhizodat.InDoubt
	said := outcome{txn: handle.Outcome().DatTxn, committed: rhizodat.IsCommitted(err), known: !errors.As(err, &inDoubt)}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.outcomes[row] = said
}

func (y *tally) check(t *testing.T, d *deployment) {
	t.Helper()
	in := map[string]map[string]bool{"a": {}, "b": {}}
	for store, rows := range in {
		for row := range strings.FieldsSeq(items(t, d, store)) {
			rows[row] = true
		}
	}
	false1 := 0
	for row, said := range y.outcomes {
		key := fmt.Sprint(row)
		if in["a"][key] != in["b"][key] {
			t.Errorf("unit %s is half there", said.txn)
		}
		if said.known && said.committed != in["a"][key] {
			false1++
			t.Errorf("unit %s was reported committed=%v and is %v", said.txn, said.committed, in["a"][key])
		}
	}
	left := len(d.cluster.Prepared(t, d.stores["a"])) + len(d.cluster.Prepared(t, d.stores["b"]))
	name := strings.ToLower(t.Name()[len("TestRace"):])
	figure(t, "race_"+name+"_units", len(y.outcomes), ">0", len(y.outcomes) > 0)
	figure(t, "race_"+name+"_false_outcomes", false1, "=0", false1 == 0)
	figure(t, "race_"+name+"_prepared_left", left, "=0", left == 0)
	figure(t, "race_"+name+"_false_alarms", y.alarms.Load(), "=0", y.alarms.Load() == 0)
}

// Without any patience recovery and coordinators meet all the time: the
// compare-and-set decides, and nobody is told anything false.
func TestRaceImpatient(t *testing.T) {
	y := race(t, -1, func(y *tally) bool { return y.conflicts.Load() > 0 && y.back.Load() > 0 })
	figure(t, "race_impatient_conflicts", y.conflicts.Load(), ">0", y.conflicts.Load() > 0)
	figure(t, "race_impatient_rolled_back", y.back.Load(), ">0", y.back.Load() > 0)
}

// With the default a live coordinator is never met.
func TestRaceDefault(t *testing.T) {
	y := race(t, recovery.DefaultStaleAfter, func(y *tally) bool { return y.sweeps.Load() > 100 && y.seen.Load() > 0 })
	figure(t, "race_default_sweeps", y.sweeps.Load(), ">100", y.sweeps.Load() > 100)
	figure(t, "race_default_prepared_seen", y.seen.Load(), ">0", y.seen.Load() > 0)
	figure(t, "race_default_conflicts", y.conflicts.Load(), "=0", y.conflicts.Load() == 0)
	figure(t, "race_default_rolled_back", y.back.Load(), "=0", y.back.Load() == 0)
}
