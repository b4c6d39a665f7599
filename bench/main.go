// Command bench measures the driver side by side with what it competes with:
// pgx/v5/stdlib or clickhouse-go for one store, and a hand-written two-phase commit
// without recovery (bench/floor) for two. Everything runs interleaved in one process on
// throw-away servers that force every write; what is printed are medians of
// paired ratios with their quartiles, beside a control pair, since a shared
// machine's bare times say little.
//
//	go run ./bench -rounds 9
//
// Each line `figure NAME VALUE GOAL ok|short` is for scripts to read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/chserver"
)

// exitLeftOut is the exit code of all scripts for a part that this machine lacks.
const exitLeftOut = 4

func main() { os.Exit(measure()) }

func measure() int {
	rounds := flag.Int("rounds", 9, "interleaved rounds of each measurement")
	only := flag.String("only", "", "one part: single, double, recovery or clickhouse")
	records := flag.Int("records", 1000, "transactions in doubt for the recovery part")
	profile := flag.String("cpuprofile", "", "write a CPU profile of this process to a file")
	flag.Parse()
	ctx := context.Background()
	if *profile != "" {
		file, err := os.Create(*profile)
		must(err)
		must(pprof.StartCPUProfile(file))
		defer pprof.StopCPUProfile()
	}

	r, err := newRig(ctx)
	must(err)
	defer r.close()
	cfg, err := rhizodat.ParseDSN(r.dsn())
	must(err)
	connector, err := rhizodat.NewConnector(cfg)
	must(err)
	must(connector.Install(ctx))
	must(connector.Close())

	var leftOut []error
	part := func(name string, run func()) {
		if *only == "" || *only == name {
			fmt.Printf("\n== %s ==\n", name)
			run()
		}
	}
	part("single", func() { single(ctx, r, *rounds) })
	part("double", func() { double(ctx, r, *rounds) })
	part("recovery", func() { inDoubt(ctx, r, *records) })
	part("clickhouse", func() {
		if err := analytic(ctx, *rounds); errors.Is(err, chserver.ErrNoServer) {
			leftOut = append(leftOut, err)
		} else {
			must(err)
		}
	})
	for _, err := range leftOut {
		fmt.Println("left out:", err)
	}
	if len(leftOut) > 0 {
		return exitLeftOut
	}
	return 0
}
