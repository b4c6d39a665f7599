package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	rhizodat "github.com/rhizodat/rhizodat-go"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

const (
	committers   = 8
	raceInterval = 10 * time.Millisecond
	raceAtLeast  = 5 * time.Second
	raceBound    = 90 * time.Second
	sweepsWanted = 100
)

// raceCount is what was seen in a race. It observes both sides.
type raceCount struct {
	units, conflicts, passes, listed, rolledBack atomic.Int64
}

func (c *raceCount) Step(context.Context, rhizodat.StepEvent) {}

func (c *raceCount) Outcome(_ context.Context, e rhizodat.OutcomeEvent) {
	c.units.Add(1)
	if e.Conflict {
		c.conflicts.Add(1)
	}
}

func (c *raceCount) Pass(_ context.Context, r recovery.Report, err error) {
	if err != nil {
		return
	}
	c.passes.Add(1)
	c.rolledBack.Add(int64(r.RolledBack))
	for _, s := range r.Stores {
		c.listed.Add(int64(s.Listed))
	}
}

// races lets committers run against a recovery loop of 10 ms: one that takes
// every record for stale at once, which must do no harm, and one with the
// defaults, which must not even be noticed.
func races(ctx context.Context, h *house) error {
	eager, found, err := h.race(ctx, -1, func(c *raceCount) bool {
		return c.conflicts.Load() > 0 && c.rolledBack.Load() > 0
	})
	if err != nil {
		return err
	}
	h.board.AtLeast("race_eager_conflicts", int(eager.conflicts.Load()), 1)
	h.board.AtLeast("race_eager_rolled_back", int(eager.rolledBack.Load()), 1)
	h.violations("race_eager", found)

	calm, found, err := h.race(ctx, 0, func(c *raceCount) bool {
		return c.passes.Load() > sweepsWanted && c.listed.Load() > 0
	})
	if err != nil {
		return err
	}
	h.board.AtLeast("race_default_sweeps", int(calm.passes.Load()), sweepsWanted+1)
	h.board.AtLeast("race_default_prepared_seen", int(calm.listed.Load()), 1)
	h.board.Exactly("race_default_conflicts", int(calm.conflicts.Load()), 0)
	h.violations("race_default", found)
	return nil
}

// race runs until enough was seen, and then asks whether all is true.
func (h *house) race(ctx context.Context, stale time.Duration, enough func(*raceCount) bool) (*raceCount, []string, error) {
	l, err := h.lane(ctx, kindOfLane{})
	if err != nil {
		return nil, nil, err
	}
	count := &raceCount{}
	connector, err := openConnector(l, count) //nolint:contextcheck // it connects to nothing
	if err != nil {
		return nil, nil, err
	}
	db := sql.OpenDB(connector)
	// As in another process: nothing is shared.
	worker, err := openConnector(l, nil) //nolint:contextcheck // it connects to nothing
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	settings, err := worker.Recovery()
	if err != nil {
		return nil, nil, errors.Join(err, db.Close(), worker.Close())
	}
	settings.StaleAfter, settings.Interval, settings.CompactEvery = stale, raceInterval, -1
	settings.Observer, settings.Logger = count, slog.New(slog.DiscardHandler)

	limit, cancel := context.WithTimeout(ctx, raceBound)
	defer cancel()
	running, err := recovery.Start(limit, settings)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close(), worker.Close())
	}
	began := time.Now()
	commitWhile(limit, l, db, func() bool { return time.Since(began) < raceAtLeast || !enough(count) })
	running.Stop()
	if err := errors.Join(db.Close(), worker.Close()); err != nil {
		return nil, nil, err
	}
	fmt.Printf("stale_after %s: %d units, %d conflicts; %d sweeps saw %d prepared, rolled back %d\n",
		settings.StaleAfter, count.units.Load(), count.conflicts.Load(), count.passes.Load(), count.listed.Load(), count.rolledBack.Load())
	s := &sight{}
	if err := l.heal(ctx, cell{}, s); err != nil {
		return nil, nil, err
	}
	err = l.inspect(ctx, cell{}, s)
	return count, s.violations, err
}

func openConnector(l *lane, observer rhizodat.Observer) (*rhizodat.Connector, error) {
	cfg, err := rhizodat.ParseDSN(l.DSN(optionsOfUnit))
	if err != nil {
		return nil, err
	}
	cfg.Observer, cfg.Logger = observer, slog.New(slog.DiscardHandler)
	return rhizodat.NewConnector(cfg)
}

// commitWhile lets the committers commit units, and notes what they were told.
func commitWhile(ctx context.Context, l *lane, db *sql.DB, more func() bool) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range committers {
		wg.Go(func() {
			for ctx.Err() == nil && more() {
				tracked, handle := rhizodat.Track(ctx)
				_ = commitOne(tracked, db) // the handle tells how it ended
				if out := handle.Outcome(); out.Verdict != rhizodat.VerdictNone {
					mu.Lock()
					l.reported[out.DatTxn.String()] = out.Verdict.String()
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

func commitOne(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, store := range []string{"a", "b"} {
		_, err := tx.ExecContext(rhizodat.WithStore(ctx, store), `INSERT INTO public.ledger VALUES ($1, 2, 1)`,
			rhizodat.Tracked(ctx).Outcome().DatTxn.String())
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}
