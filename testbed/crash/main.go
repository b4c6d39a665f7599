// Command crash kills a unit of work, its servers and its connections at every
// step of the commit protocol, lets recovery run as another process, and asks what
// became of it: all or none in every store, nothing left prepared, only DONE or
// ABORTED in the journal, and every outcome that was reported true.
//
//	crash -long    every point, shape and mode
//	crash -short   every step in every mode; what "make check" runs
//	crash -run matrix,clickhouse,drevo,iceberg,cut,scenario,lease,step,archive,race,leak,prove   only these parts
//
// The last word is with -run prove: the same checks with one safety guard of the
// protocol taken out each must find a violation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// part of the run.
type part struct {
	name string
	run  func(context.Context, *house) error
}

var parts = []part{
	{"matrix", matrix},
	{"clickhouse", clickhouse},
	{"drevo", drevo},
	{"iceberg", iceberg},
	{"cut", cuts},
	{"scenario", scenarios},
	{"lease", leases},
	{"step", steps},
	{"archive", archives},
	{"race", races},
	{"leak", leaks},
	{"prove", proofs},
}

func main() {
	short := flag.Bool("short", false, "every step in every mode, once")
	long := flag.Bool("long", false, "every point, shape and mode (the default)")
	prove := flag.Bool("prove", false, "the same as -run prove")
	leak := flag.Bool("leak", false, "the same as -run leak")
	only := flag.String("run", "", "parts to run, with commas between them")
	flag.Parse()
	names := strings.Split(*only, ",")
	switch {
	case *prove:
		names = []string{"prove"}
	case *leak:
		names = []string{"leak"}
	case *only == "":
		names = nil
	}
	if *short && *long || flag.NArg() > 0 || !known(names) {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	board := rig.NewBoard(os.Stdout)
	leftOut, err := run(ctx, *short, names, board)
	stop()
	os.Exit(board.End("crash", leftOut, err))
}

func known(names []string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return false
		}
	}
	return true
}

// run tells how many parts of it were left out because this machine lacks a server.
func run(ctx context.Context, short bool, names []string, board *rig.Board) (leftOut []string, err error) {
	h, err := newHouse(ctx, short, board)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close(context.WithoutCancel(ctx))) }()
	for _, p := range parts {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		began := time.Now()
		fmt.Printf("\n== %s\n", p.name)
		if err := p.run(ctx, h); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Printf("== %s took %s\n", p.name, time.Since(began).Round(time.Second))
	}
	return h.leftOut, nil
}
