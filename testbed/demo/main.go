// Command demo shows what rhizodat promises: examples/transfer moves money
// between two databases, is killed with SIGKILL again and again, and rhizorecover,
// run as another process, leaves every transfer whole. Then the money is counted.
//
// It prints a table and its figures, and ends with 1 if one is short. With
// -guard-off one safety guard of the commit protocol is taken out: the same run
// must then find a violation. Bare kills show the absence of the guard "order"; the
// others have scenarios of their own in testbed/crash.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rhizodat/rhizodat-go/internal/pgserver"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// exitLeftOut is the exit code of all scripts for a part that this machine lacks.
const exitLeftOut = 4

func main() {
	var plan plan
	flag.IntVar(&plan.kills, "kills", 20, "how often the program is killed, at least")
	flag.IntVar(&plan.workers, "workers", 8, "transfers at a time")
	flag.StringVar(&plan.guardOff, "guard-off", "", "a guard of internal/guard to take out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	board := rig.NewBoard(os.Stdout)
	err := show(ctx, plan, board)
	stop()
	switch {
	case errors.Is(err, pgserver.ErrNoServer):
		fmt.Fprintln(os.Stderr, "left out: PostgreSQL server:", err)
		os.Exit(exitLeftOut)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	os.Exit(board.ExitCode())
}

// plan is what the flags say.
type plan struct {
	kills    int
	workers  int
	guardOff string
}

func show(ctx context.Context, plan plan, board *rig.Board) (err error) {
	server, err := rig.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close(context.WithoutCancel(ctx))) }()
	shop, err := rig.NewShop()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.Close()) }()

	b, err := open(ctx, plan, server, shop)
	if err != nil {
		return err
	}
	defer b.close(context.WithoutCancel(ctx))
	before, err := b.money(ctx)
	if err != nil {
		return err
	}
	for b.wants() {
		if err := b.round(ctx); err != nil {
			return err
		}
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	result, err := b.count(ctx)
	if err != nil {
		return err
	}
	result.before = before
	result.print()
	result.figures(board, plan)
	return nil
}
