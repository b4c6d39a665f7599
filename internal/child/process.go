package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is one life of a server's process, running or ended. It is safe for
// concurrent use; a nil Process has never been started.
type Process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	log   tail
	done  chan struct{} // closed when the process has ended
}

// Start starts a program that ends with its standard input. name says in errors
// what it is, as in "drevo server". The command's standard error is kept for
// [Process.Log]; its standard output is the caller's.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: name, cmd: cmd, done: make(chan struct{})}
	// Of its own session: an interrupt of the terminal is for the tests.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = &p.log
	cmd.WaitDelay = time.Second // what a grandchild still writes to it is not waited for
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("rhizodat: start %s: %w", name, err)
	}
	p.stdin = stdin
	go func() {
		_ = cmd.Wait() // how it ended is for those who ended it
		close(p.done)
	}()
	return p, nil
}

// Await waits until look finds the server ready. It ends with the error of look,
// with the process, or after within, when it kills the process.
func (p *Process) Await(ctx context.Context, within time.Duration, look func() (ready bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		ready, err := look()
		if err != nil {
			return fmt.Errorf("rhizodat: start %s: %w", p.name, err)
		}
		if ready {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("rhizodat: start %s: it ended: %s", p.name, p.Log())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("rhizodat: start %s: %w: %s", p.name, ctx.Err(), p.Log()), p.Kill())
		case <-tick.C:
		}
	}
}

// Running tells whether the process is there.
func (p *Process) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Pid is the id of the process; after its end it may be another's.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log is the end of what the process has written to its standard error.
func (p *Process) Log() string { return p.log.text() }

// Stop ends the process's standard input and waits for its end. One that does
// not end within that time is killed, which is an error.
func (p *Process) Stop(within time.Duration) error {
	if !p.Running() {
		return nil
	}
	if err := p.stdin.Close(); err != nil {
		return fmt.Errorf("rhizodat: stop %s: %w", p.name, err)
	}
	_, err := p.Wait(within)
	return err
}

// Kill ends the process by SIGKILL, as a crash of it does, and returns when it is gone.
func (p *Process) Kill() error {
	if !p.Running() {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("rhizodat: kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// Wait waits for a process that ends by itself and returns its exit code. One
// that does not end within that time is killed, which is an error.
func (p *Process) Wait(within time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(within):
		return 0, errors.Join(fmt.Errorf("rhizodat: wait for %s: it does not end", p.name), p.Kill())
	}
}
