// Command pg runs throw-away PostgreSQL servers for the scripts of this
// project; see package pgserver.
//
//	pg find                          says which server binaries it would use
//	pg run [name=value ...] -- CMD   runs CMD with RHIZODAT_TEST_PG set to a new server
//	pg serve [name=value ...]        prints the DSN of a new server and waits for SIGTERM
//
// Exit codes: that of CMD; 4 where no server is installed; else 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/rhizodat/rhizodat-go/internal/pgserver"
)

// exitLeftOut is the exit code of all scripts for a part that this machine lacks.
const exitLeftOut = 4

var errUsage = errors.New("usage: pg find | pg run [name=value ...] -- command [argument ...] | pg serve [name=value ...]")

func main() {
	// The command of "run" gets the terminal's interrupt too and is waited for.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := dispatch(ctx, os.Args[1:])
	stop()
	os.Exit(exitCode(err))
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	if errors.Is(err, pgserver.ErrNoServer) {
		fmt.Fprintln(os.Stderr, "left out: PostgreSQL server:", err)
		return exitLeftOut
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "find":
		return find(ctx)
	case "run":
		mark := slices.Index(rest, "--")
		if mark < 0 || mark == len(rest)-1 {
			return errUsage
		}
		return run(ctx, rest[:mark], rest[mark+1:])
	case "serve":
		return serve(ctx, rest)
	default:
		return errUsage
	}
}

func find(ctx context.Context) error {
	found, err := pgserver.Find(ctx)
	if err == nil {
		fmt.Println(found)
	}
	return err
}

func run(ctx context.Context, settings, command []string) (err error) {
	server, err := pgserver.Launch(ctx, settings...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	// Not killed at the end of ctx: an interrupt has reached it as well, and
	// what it cleans up still needs the server.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...) //nolint:gosec // to run a command is the purpose
	cmd.Env = append(os.Environ(), pgserver.EnvServer+"="+server.DSN("postgres"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

func serve(ctx context.Context, settings []string) error {
	server, err := pgserver.Launch(ctx, settings...)
	if err != nil {
		return err
	}
	fmt.Println(server.DSN("postgres"))
	<-ctx.Done()
	return server.Close()
}
