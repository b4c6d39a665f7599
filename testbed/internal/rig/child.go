package rig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Child is a process that says on its standard output what it is about to do or
// has just learned, and goes on only when its parent has taken note: what it
// told is known even if it is killed at once.
type Child struct {
	// Lines are what the child says. Each is answered by Go. Closed at its end.
	Lines <-chan string

	cmd    *exec.Cmd
	input  io.WriteCloser
	errors bytes.Buffer
	ended  chan struct{}
	status error
}

// Start runs a program as a child. It ends with ctx at the latest.
func Start(ctx context.Context, program string, args []string, env ...string) (*Child, error) {
	c := &Child{cmd: exec.CommandContext(ctx, program, args...), ended: make(chan struct{})} //nolint:gosec // programs of ours
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stderr = &c.errors
	input, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	output, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	lines := make(chan string)
	c.input, c.Lines = input, lines
	go func() {
		defer close(c.ended)
		scanner := bufio.NewScanner(output)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		close(lines)
		c.status = errors.Join(scanner.Err(), c.cmd.Wait())
	}()
	return c, nil
}

// Go lets the child go on after a line. A child that was killed meanwhile does
// not take it, which is no error of the parent's.
func (c *Child) Go() { _, _ = io.WriteString(c.input, "\n") }

// Pid is the number of the child's process.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Kill ends the child by SIGKILL. Lines must still be read to their end.
func (c *Child) Kill() error { return c.signal(syscall.SIGKILL) }

// Terminate asks the child to end in order.
func (c *Child) Terminate() error { return c.signal(syscall.SIGTERM) }

// Freeze stops all of the child where it is, until Thaw.
func (c *Child) Freeze() error { return c.signal(syscall.SIGSTOP) }

// Thaw lets a frozen child go on.
func (c *Child) Thaw() error { return c.signal(syscall.SIGCONT) }

// Ended is closed when the child has ended and its lines were read.
func (c *Child) Ended() <-chan struct{} { return c.ended }

func (c *Child) signal(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal child: %w", err)
	}
	return nil
}

// Wait returns when the child has ended, with what it said on its standard
// error if it did not end well. Lines must have been read to their end.
func (c *Child) Wait() error {
	<-c.ended
	if c.status == nil {
		return nil
	}
	return fmt.Errorf("child: %w\n%s", c.status, c.errors.String())
}
