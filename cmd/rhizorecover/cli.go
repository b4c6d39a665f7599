package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"

	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// The exit codes. They are format: scripts depend on them.
const (
	exitOK     = recovery.ExitClean
	exitError  = 1
	exitUsage  = 2
	exitLeft   = recovery.ExitWorkLeft
	exitPerson = recovery.ExitPerson
)

const description = `Sets up, recovers and examines a rhizodat deployment.

The DSN is the programs' own. It is taken from --dsn-file, else from --dsn, else
from the environment variable RHIZODAT_DSN. With --dsn, everybody on this host
can read it, passwords included, in the list of processes (ps).

Exit codes:
  0  done; of once and resolve: nothing is left
  1  error: nothing can be said (the journal is down, not installed, ...)
  2  wrong usage, or a DSN that cannot be read
  3  work is left, and recovery goes on with it
  4  a person is needed: stuck, heuristic or unexplained transactions, a store
     that is not the one the journal knows; of doctor: an error was found`

// console is the process around a run, so that tests can be one.
type console struct {
	args     []string
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	width    int // of lines of text; 0 is 76
}

// cli is the grammar of the command line.
type cli struct {
	DSNFile string           `name:"dsn-file" type:"path" placeholder:"FILE" help:"File that holds the DSN; keep it readable by one user."`
	DSN     string           `name:"dsn" placeholder:"DSN" help:"The DSN. Everybody on this host can see it with ps: prefer --dsn-file or RHIZODAT_DSN."`
	Log     string           `name:"log" enum:"text,json" default:"text" help:"Form of the log on standard error: text or json."`
	Verbose bool             `short:"v" help:"Log more."`
	Version kong.VersionFlag `help:"Print the version and end."`

	Init       initCmd       `cmd:"" help:"Make or upgrade the journal's and the stores' tables, and register the stores."`
	Run        runCmd        `cmd:"" help:"Recover until it is stopped (daemon)."`
	Once       onceCmd       `cmd:"" help:"Make one pass of recovery."`
	Status     statusCmd     `cmd:"" help:"Count records, and list what the stores hold prepared."`
	List       listCmd       `cmd:"" help:"List the journal's records."`
	Show       showCmd       `cmd:"" help:"Tell the story of one transaction: what happened, what will happen, and why."`
	Compact    compactCmd    `cmd:"" help:"Remove final records and markers past retain."`
	Archive    archiveCmd    `cmd:"" help:"Look into an archive of removed records (compact --archive)."`
	Leases     leasesCmd     `cmd:"" help:"List the leases: who holds what, under which fence."`
	Steps      stepsCmd      `cmd:"" help:"List once-only steps: claimed, lapsed, recorded."`
	Resolve    resolveCmd    `cmd:"" help:"Keep a person's decision about a branch that recovery cannot end."`
	Adopt      adoptCmd      `cmd:"" help:"Say that a store or journal which is not as the other knows it is meant."`
	Doctor     doctorCmd     `cmd:"" help:"Examine the set-up of the journal and of every store."`
	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
}

// exit is what a command ends with when that is neither success nor an error.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// usageError is a mistake of the caller.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// session is what every command works with.
type session struct {
	console
	//nolint:containedctx // kong binds one value for every command
	ctx context.Context
	cli *cli
	app *kong.Application
}

// run is the whole program.
func run(ctx context.Context, c console) int {
	out := &sink{w: c.out}
	c.out = out
	code := runCommand(ctx, c)
	if out.err != nil && code != exitError {
		sayln(c.err, "rhizorecover: write output:", out.err)
		return exitError
	}
	return code
}

func runCommand(ctx context.Context, c console) int {
	grammar := &cli{}
	ended, endCode := false, 0
	parser, err := kong.New(grammar,
		kong.Name("rhizorecover"), kong.Description(description),
		kong.Writers(c.out, c.err), kong.Vars{"version": version()},
		kong.Exit(func(code int) { ended, endCode = true, code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 80}),
	)
	if err != nil {
		sayln(c.err, "rhizorecover:", err)
		return exitError
	}
	command, err := parser.Parse(c.args)
	if ended { // --help, --version
		return endCode
	}
	if err != nil {
		say(c.err, "rhizorecover: %v\nrhizorecover: see rhizorecover --help\n", err)
		return exitUsage
	}
	err = command.Run(&session{console: c, ctx: ctx, cli: grammar, app: parser.Model})
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	if err == nil {
		return exitOK
	}
	sayln(c.err, "rhizorecover:", err)
	if _, usage := errors.AsType[*usageError](err); usage {
		return exitUsage
	}
	return exitError
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "rhizorecover (version unknown)"
	}
	revision := ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = " " + s.Value
		}
	}
	return "rhizorecover " + info.Main.Version + revision + " " + info.GoVersion
}

// now is the wall clock of what a person reads.
func now() time.Time { return time.Now() }
