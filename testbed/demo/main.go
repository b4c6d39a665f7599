// Command demo shows what rhizodat promises: a program whose every transaction
// writes to several stores is killed with SIGKILL again and again, and
// rhizorecover, run as another process, leaves every transaction whole. Then
// everything is counted: the money, and per dat_txn the rows in each store.
//
// It prints a table and its figures, and ends with 1 if one is short, with 4 if
// this machine lacks a store's engine. With -guard-off one safety guard of the
// commit protocol is taken out: the same run must then find a violation. Bare
// kills show the absence of the guard "order"; the others have scenarios of their
// own in testbed/crash. That wrong rows in a store beside PostgreSQL are noticed is
// proved in every run: in the end some are made.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/rhizodat/rhizodat-go/testbed/crash/graph"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

func main() {
	var plan plan
	flag.IntVar(&plan.kills, "kills", 20, "how often the first program is killed, at least; the others are half as often")
	flag.IntVar(&plan.workers, "workers", 8, "transactions at a time")
	flag.StringVar(&plan.guardOff, "guard-off", "", "a guard of internal/guard to take out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	board := rig.NewBoard(os.Stdout)
	leftOut, err := show(ctx, plan, board)
	stop()
	os.Exit(board.End("demo", leftOut, err))
}

// plan is what the flags say.
type plan struct {
	kills    int
	workers  int
	guardOff string
}

// show shows all pieces. It returns the engines that were missing.
func show(ctx context.Context, plan plan, board *rig.Board) (leftOut []string, err error) {
	s, err := openStack(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	shown := pieces()
	if plan.guardOff != "" {
		shown = shown[:1] // one that is caught is enough
	}
	for _, p := range shown {
		fmt.Printf("== %s\n", p.title)
		lacking, err := p.show(ctx, plan, board, s)
		leftOut = append(leftOut, lacking...)
		if err != nil {
			return leftOut, err
		}
	}
	slices.Sort(leftOut)
	leftOut = slices.Compact(leftOut)
	for i := range leftOut {
		leftOut[i] += ": no engine on this machine"
	}
	return leftOut, nil
}

// show kills and recovers a program until enough was hit, and counts.
func (p piece) show(ctx context.Context, plan plan, board *rig.Board, s *stack) (leftOut []string, err error) {
	plan.kills = max(1, plan.kills/p.share)
	t, err := open(ctx, p, plan, s)
	switch {
	case errors.Is(err, graph.ErrNoServer): // no journal
		return []string{"drevo"}, nil
	case errors.Is(err, errAlone):
		for _, k := range p.companions {
			leftOut = append(leftOut, k.engine)
		}
		return leftOut, nil
	case err != nil:
		return nil, err
	}
	defer t.close(context.WithoutCancel(ctx))
	before, err := t.total(ctx)
	if err != nil {
		return t.leftOut, err
	}
	for t.wants() {
		if err := t.round(ctx); err != nil {
			return t.leftOut, err
		}
	}
	if err := t.settle(ctx); err != nil {
		return t.leftOut, err
	}
	result, err := t.count(ctx)
	if err != nil {
		return t.leftOut, err
	}
	result.before = before
	result.print()
	result.figures(board, p, plan)
	return t.leftOut, nil
}
