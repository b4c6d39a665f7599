// Command bench measures the driver side by side with what it competes with:
// pgx/v5/stdlib, clickhouse-go or iceberg-go for one store, a hand-written
// two-phase commit without recovery (bench/floor) for two, and the plain
// statements that a lease or a step stands for. Everything runs interleaved in one
// process on throw-away servers that force every write; what is printed are medians
// of paired ratios with their quartiles, beside a control pair, since a shared
// machine's bare times say little.
//
//	go run ./bench -rounds 9
//	go run ./bench -only drevo
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
	"sync"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/chserver"
	"github.com/rhizodat/rhizodat-go/internal/drevoserver"
)

// exitLeftOut is the exit code of all scripts for a part that this machine lacks.
const exitLeftOut = 4

func main() { os.Exit(measure()) }

func measure() int {
	rounds := flag.Int("rounds", 9, "interleaved rounds of each measurement")
	only := flag.String("only", "", "one part: single, double, recovery, clickhouse, drevo, iceberg or concurrent")
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

	var started *rig
	banks := sync.OnceValue(func() *rig {
		started = must1(newRig(ctx))
		install(ctx, started.dsn())
		return started
	})
	defer func() {
		if started != nil {
			started.close()
		}
	}()
	parts := []struct {
		name string
		run  func() error
	}{
		{"single", func() error { single(ctx, banks(), *rounds); return nil }},
		{"double", func() error { double(ctx, banks(), *rounds); return nil }},
		{"recovery", func() error { inDoubt(ctx, banks(), *records); return nil }},
		{"clickhouse", func() error { return analytic(ctx, *rounds) }},
		{"drevo", func() error { return graphs(ctx, banks(), *rounds) }},
		{"iceberg", func() error { return tables(ctx, *rounds) }},
		{"concurrent", func() error { return concurrent(ctx, banks(), *rounds) }},
	}
	known, missing := false, false
	for _, p := range parts {
		if *only != "" && *only != p.name {
			continue
		}
		known = true
		fmt.Printf("\n== %s ==\n", p.name)
		switch err := p.run(); {
		case errors.Is(err, chserver.ErrNoServer), errors.Is(err, drevoserver.ErrNoServer):
			fmt.Println("left out:", err)
			missing = true
		default:
			must(err)
		}
	}
	if !known {
		must(fmt.Errorf("there is no part %q", *only))
	}
	if missing {
		return exitLeftOut
	}
	return 0
}

// install makes the tables of ours in every store of a DSN and in its journal.
func install(ctx context.Context, dsn string) {
	connector := must1(rhizodat.NewConnector(must1(rhizodat.ParseDSN(dsn))))
	must(connector.Install(ctx))
	must(connector.Close())
}
