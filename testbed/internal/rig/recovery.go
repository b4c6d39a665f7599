package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// The exit codes of "rhizorecover once".
const (
	ExitClean  = 0
	ExitLeft   = 3
	ExitPerson = 4
)

// Recovery is rhizorecover with one DSN: always another process than the one
// whose work it finishes.
type Recovery struct {
	Program string
	DSN     string
	Env     []string
}

// Run runs one subcommand. A code that says what a pass left is no error.
func (r Recovery) Run(ctx context.Context, args ...string) (code int, output string, err error) {
	cmd := exec.CommandContext(ctx, r.Program, args...) //nolint:gosec // a program of ours
	cmd.Env = append(append(os.Environ(), "RHIZODAT_DSN="+r.DSN), r.Env...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && (exit.ExitCode() == ExitLeft || exit.ExitCode() == ExitPerson) {
		return exit.ExitCode(), text.String(), nil
	}
	if err != nil {
		return -1, text.String(), fmt.Errorf("rhizorecover %v: %w\n%s", args, err, text.String())
	}
	return ExitClean, text.String(), nil
}

// UntilClean runs passes until one leaves nothing, or bound has passed. It
// returns what the last one answered.
func (r Recovery) UntilClean(ctx context.Context, bound time.Duration) (code int, output string, err error) {
	for end := time.Now().Add(bound); ; {
		code, output, err = r.Run(ctx, "once")
		if err != nil || code == ExitClean || time.Now().After(end) {
			return code, output, err
		}
		if err := Pause(ctx, 50*time.Millisecond); err != nil {
			return code, output, err
		}
	}
}
