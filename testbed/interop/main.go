// Command interop shows that other engines and this library read and write the
// same Iceberg tables: PyIceberg and the Java reference implementation on the same
// catalog, and ClickHouse's icebergLocal.
//
// It prints what was seen and its figures, and ends with 1 if one is short. What a
// peer itself gets wrong is in allowance.go with the evidence, and is counted; what
// is no longer needed of it is short too. In the end tables are damaged on purpose:
// the same comparisons must report it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

func main() {
	var plan plan
	flag.BoolVar(&plan.short, "short", false, "one catalog, 20 tables, one race")
	flag.StringVar(&plan.folder, "peers", "", "the folder that get-peers.sh has filled")
	flag.StringVar(&plan.only, "catalog", "", "only this one of sqlite, postgres, rest")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	board := rig.NewBoard(os.Stdout)
	leftOut, err := run(ctx, plan, board)
	stop()
	os.Exit(board.End("interop", leftOut, err))
}

// plan is what the flags say.
type plan struct {
	short  bool
	folder string
	only   string
}

func run(ctx context.Context, plan plan, board *rig.Board) (leftOut []string, err error) {
	l, err := openLab(ctx, plan, board)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close(context.WithoutCancel(ctx))) }()
	places, err := l.places(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if err := l.show(ctx, p); err != nil {
			return nil, fmt.Errorf("catalog %s: %w", p.name, err)
		}
	}
	if err := l.contract(ctx); err != nil {
		return nil, fmt.Errorf("suite of all stores: %w", err)
	}
	l.report()
	return l.leftOut, nil
}
