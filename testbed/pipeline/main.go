// Command pipeline shows what a lease promises: three processes of
// examples/pipeline copy 20 files into PostgreSQL and ClickHouse, each file under
// a lease. Holders are stopped with SIGSTOP until their leases are another's, and
// go on; they are killed; they are cut off from the journal. In the end each line
// has to be in both stores exactly once, under the fence that its decision carried,
// and in no file may a fence have committed after a higher one was granted.
//
// Then the same is run with the check of the fence taken out, which must be noticed.
// It prints figures, and ends with 1 if one is short, with 4 if this machine lacks
// a store's engine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

func main() {
	rounds := flag.Int("rounds", 3, "how often holders are stopped, killed and cut off, each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	board := rig.NewBoard(os.Stdout)
	err := show(ctx, *rounds, board)
	stop()
	os.Exit(board.End("pipeline", nil, err))
}

func show(ctx context.Context, rounds int, board *rig.Board) (err error) {
	s := &stack{}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	fmt.Println("== three processes, one pipeline")
	r, err := s.run(ctx, "", rounds)
	if err != nil {
		return err
	}
	r.print()
	r.figures(board, rounds)

	fmt.Println("== the same without the check of the fence")
	if r, err = s.run(ctx, guard.Fence, 0); err != nil {
		return err
	}
	r.print()
	board.AtLeast("proof_pipeline_fence_late_decisions", r.late, 1)
	board.AtLeast("proof_pipeline_fence_fallen", r.fallen, 1)
	board.AtLeast("proof_pipeline_fence_rows_wrong", len(r.rows.All()), 1)
	return nil
}

// stack is what both runs share.
type stack struct {
	shop *rig.Shop
	pg   *rig.Server
	ch   *rig.ClickHouse
}

func (s *stack) open(ctx context.Context) (err error) {
	if s.shop, err = rig.NewShop(); err != nil {
		return err
	}
	if s.pg, err = rig.Open(ctx); err != nil {
		return err
	}
	s.ch, err = rig.OpenClickHouse(ctx)
	return err
}

func (s *stack) close(ctx context.Context) error {
	var errs []error
	if s.ch != nil {
		errs = append(errs, s.ch.Close(ctx))
	}
	if s.pg != nil {
		errs = append(errs, s.pg.Close(ctx))
	}
	if s.shop != nil {
		errs = append(errs, s.shop.Close())
	}
	return errors.Join(errs...)
}

// run runs the pipeline once.
func (s *stack) run(ctx context.Context, off guard.Name, rounds int) (r result, err error) {
	t := &trial{off: off, reported: map[string]string{}, struck: map[string]int{}}
	defer func() { err = errors.Join(err, t.close(context.WithoutCancel(ctx))) }()
	if err := t.open(ctx, s); err != nil {
		return r, err
	}
	if err := t.strike(ctx, rounds); err != nil {
		return r, err
	}
	if err := t.settle(ctx); err != nil {
		return r, err
	}
	return t.audit(ctx)
}
