package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rhizodat/rhizodat-go/testbed/crash/events"
	"github.com/rhizodat/rhizodat-go/testbed/crash/graph"
	"github.com/rhizodat/rhizodat-go/testbed/crash/lake"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// house is what all parts share: two servers and the programs.
type house struct {
	short bool
	board *rig.Board
	shop  *rig.Shop
	// stores holds all stores, and the journals that never crash.
	stores *rig.Server
	// journals may crash. What it was not forced to flush it keeps back for so
	// long that a crash loses it.
	journals *rig.Server

	mu      sync.Mutex
	engines []*events.Engine
	graphs  []*graph.Server
	lakes   []*lake.Store
	leftOut []string // what this machine lacks

	programs programs
}

// programs are built once, and once more with guards that can be taken out.
type programs struct{ unit, recover, recoverPayload string }

func newHouse(ctx context.Context, short bool, board *rig.Board) (*house, error) {
	h := &house{short: short, board: board}
	err := h.furnish(ctx)
	if err != nil {
		return nil, errors.Join(err, h.close(context.WithoutCancel(ctx)))
	}
	return h, nil
}

func (h *house) furnish(ctx context.Context) (err error) {
	if h.shop, err = rig.NewShop(); err != nil {
		return err
	}
	if h.programs, err = h.build(ctx, false); err != nil {
		return err
	}
	// No machine crashes here, only processes: what they have written is kept.
	settings := []string{
		"fsync=off", "full_page_writes=off", "autovacuum=off", "checkpoint_timeout=1h",
		"max_connections=800", // the proofs run while what was left out is still being closed
	}
	if h.stores, err = rig.Launch(ctx, settings...); err != nil {
		return err
	}
	// The background writer would flush the log before the pages that it writes.
	h.journals, err = rig.Launch(ctx, append(settings, "wal_writer_delay=10s", "bgwriter_lru_maxpages=0")...)
	return err
}

func (h *house) build(ctx context.Context, guards bool) (p programs, err error) {
	for _, program := range []struct {
		pkg  string
		path *string
	}{
		{"testbed/crash/unit", &p.unit},
		{"cmd/rhizorecover", &p.recover},
		{"testbed/crash/recoverer", &p.recoverPayload},
	} {
		if *program.path, err = h.shop.Build(ctx, program.pkg, guards); err != nil {
			return p, err
		}
	}
	return p, nil
}

// launchEngines starts ClickHouse servers, which end with the house.
func (h *house) launchEngines(ctx context.Context, n int) ([]*events.Engine, error) {
	engines := make([]*events.Engine, n)
	start := make([]func() error, n)
	for i := range engines {
		start[i] = func() (err error) {
			engines[i], err = events.Launch(ctx, diskRoomy)
			return err
		}
	}
	err := together(start...)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range engines {
		if e != nil {
			h.engines = append(h.engines, e)
		}
	}
	return engines, err
}

// launchGraphs starts drevo servers, which end with the house.
func (h *house) launchGraphs(ctx context.Context, n int) ([]*graph.Server, error) {
	var servers []*graph.Server
	for range n {
		s, err := graph.Launch(ctx)
		if err != nil {
			return nil, err
		}
		servers = append(servers, s)
		h.mu.Lock()
		h.graphs = append(h.graphs, s)
		h.mu.Unlock()
	}
	return servers, nil
}

// leaveOut notes what this machine lacks.
func (h *house) leaveOut(what string) {
	if !slices.Contains(h.leftOut, what) {
		h.leftOut = append(h.leftOut, what)
	}
}

func (h *house) close(ctx context.Context) error {
	var errs []error
	for _, e := range h.engines {
		errs = append(errs, e.Close())
	}
	for _, s := range h.lakes {
		errs = append(errs, s.Close())
	}
	for _, s := range h.graphs {
		errs = append(errs, s.Close(ctx))
	}
	if h.stores != nil {
		errs = append(errs, h.stores.Close(ctx))
	}
	if h.journals != nil {
		errs = append(errs, h.journals.Close(ctx))
	}
	if h.shop != nil {
		errs = append(errs, h.shop.Close())
	}
	return errors.Join(errs...)
}

// violations prints what a part has found and makes its figure.
func (h *house) violations(part string, found []string) {
	for _, v := range found {
		fmt.Println("violation:", v)
	}
	h.board.Exactly(part+"_violations", len(found), 0)
}
