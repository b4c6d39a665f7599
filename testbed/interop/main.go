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
	"strings"
	"syscall"

	"github.com/rhizodat/rhizodat-go/internal/pgserver"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// exitLeftOut is the exit code of all scripts for a part that this machine lacks.
const exitLeftOut = 4

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
	switch {
	case errors.Is(err, pgserver.ErrNoServer):
		fmt.Println("left out: PostgreSQL server:", err)
		os.Exit(exitLeftOut)
	case err != nil:
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	case board.ExitCode() == 0 && len(leftOut) > 0:
		fmt.Println("left out:", strings.Join(leftOut, "; "))
		os.Exit(exitLeftOut)
	}
	os.Exit(board.ExitCode())
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
