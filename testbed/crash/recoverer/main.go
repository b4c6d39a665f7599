// Command recoverer is "rhizorecover init" and "rhizorecover once" for a DSN,
// in RHIZODAT_DSN, that names a store which only the crash tests know. Its exit
// codes are those of rhizorecover.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	rhizodat "github.com/rhizodat/rhizodat-go"
	recovery "github.com/rhizodat/rhizodat-go/recover"
	_ "github.com/rhizodat/rhizodat-go/testbed/crash/payload" // makes its store known
)

func main() {
	report, err := run(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "recoverer:", err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(report) // for people: the exit code is the answer
	os.Exit(report.ExitCode())
}

func run(ctx context.Context, args []string) (report recovery.Report, err error) {
	if len(args) != 1 || args[0] != "init" && args[0] != "once" {
		return report, errors.New("usage: recoverer init | once")
	}
	cfg, err := rhizodat.ParseDSN(os.Getenv("RHIZODAT_DSN"))
	if err != nil {
		return report, err
	}
	connector, err := rhizodat.NewConnector(cfg) //nolint:contextcheck // it connects to nothing
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, connector.Close()) }()
	if args[0] == "init" {
		return report, connector.Install(ctx)
	}
	settings, err := connector.Recovery()
	if err != nil {
		return report, err
	}
	worker, err := recovery.New(settings)
	if err != nil {
		return report, err
	}
	return worker.Once(ctx)
}
