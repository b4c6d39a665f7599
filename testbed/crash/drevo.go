package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/testbed/crash/graph"
)

// drevo is the survey of drevo.
func drevo(ctx context.Context, h *house) error {
	servers, err := h.launchGraphs(ctx, 4)
	if errors.Is(err, graph.ErrNoServer) {
		h.leaveOut("drevo: " + err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	v := newSurvey(h, "drevo", "drevo")
	all := jobsOf(shapeGraph, shapeGraphAlone, coordinator.S5, h.short)
	queue := feed(all.any)
	first, second := kindOfGraph(servers[0]), kindOfGraph(servers[1])
	crashing, alone := second, first
	crashing.crashing, alone.alone = true, true
	err = together(
		inTurn(v.lane(ctx, first, queue), v.lane(ctx, alone, feed(all.alone))),
		inTurn(v.lane(ctx, crashing, feed(all.crashing)), v.lane(ctx, second, queue)),
		v.play(ctx, kindOfGraph(servers[2]), branchScenes(h.short)),
		func() error { return h.writers(ctx, kindOfGraph(servers[3])) },
	)
	v.end(40, 15)
	return err
}

// What the writers do.
const (
	writersAtOnce = 16
	unitsOfEach   = 3
)

// writers lets many commit to one graph, by Run: they refuse each other, by the
// fence and by conflicts, and all of them finish. In lockstep one of them would win
// each time, and a commit take half as many attempts as there are writers.
func (h *house) writers(ctx context.Context, kind kindOfLane) error {
	l, err := h.lane(ctx, kind)
	if err != nil {
		return err
	}
	connector, err := openConnector(l, nil) //nolint:contextcheck // it connects to nothing
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	policy := rhizodat.Policy{Attempts: 200, Deadline: raceBound, Base: 20 * time.Millisecond, Max: 500 * time.Millisecond}
	var attempts atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range writersAtOnce {
		wg.Go(func() {
			for range unitsOfEach {
				out, _ := rhizodat.Run(ctx, db, policy, func(ctx context.Context, tx *sql.Tx) error { // the outcome tells how it ended
					attempts.Add(1)
					return writeBoth(ctx, tx)
				})
				mu.Lock()
				l.reported[out.DatTxn.String()] = out.Verdict.String()
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := db.Close(); err != nil {
		return err
	}
	s := &sight{}
	if err := errors.Join(l.heal(ctx, cell{}, s), l.inspect(ctx, cell{}, s)); err != nil {
		return err
	}
	committed := 0
	for _, verdict := range l.reported {
		if verdict == rhizodat.VerdictCommitted.String() {
			committed++
		}
	}
	fmt.Printf("%d writers against the fence: %d commits, %d attempts\n", writersAtOnce, committed, attempts.Load())
	h.board.Exactly("drevo_writers_committed", committed, writersAtOnce*unitsOfEach)
	h.board.AtLeast("drevo_writers_attempts_below_lockstep", committed*(writersAtOnce+1)/2-int(attempts.Load()), 0)
	h.violations("drevo_writers", s.violations)
	return nil
}

func writeBoth(ctx context.Context, tx *sql.Tx) error {
	txn := rhizodat.Tracked(ctx).Outcome().DatTxn.String()
	for store, statement := range map[string]string{
		"a": `INSERT INTO public.ledger VALUES ($1, 2, 1)`, "g": `CREATE (:Ledger {txn: $1, stores: 2})`,
	} {
		if _, err := tx.ExecContext(rhizodat.WithStore(ctx, store), statement, txn); err != nil {
			return err
		}
	}
	return nil
}
