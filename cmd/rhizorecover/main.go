// Command rhizorecover sets up the tables of a rhizodat deployment, finishes
// what its programs left in doubt, and answers questions about it. It takes the
// same DSN as the programs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, console{
		args: os.Args[1:], in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv,
	})
	stop()
	os.Exit(code)
}
