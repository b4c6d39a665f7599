package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// process is a line of the process table.
type process struct {
	pid, parent int
	zombie      bool
}

// processes reads the process table: from /proc where there is one, because
// small container images have no ps.
func processes(ctx context.Context) ([]process, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err == nil && len(stats) > 0 {
		return fromProc(stats), nil
	}
	out, err := exec.CommandContext(ctx, "ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		return nil, fmt.Errorf("rhizodat: list processes: %w", err)
	}
	var table []process
	for line := range bytes.Lines(out) {
		table = appendProcess(table, bytes.Fields(line), 0, 1, 2)
	}
	return table, nil
}

func fromProc(stats []string) []process {
	var table []process
	for _, path := range stats {
		text, err := os.ReadFile(path) //nolint:gosec // a path of /proc
		if err != nil {
			continue // ended since it was listed
		}
		// "pid (name) state ppid ...": the name may hold blanks and brackets.
		name := bytes.LastIndexByte(text, ')')
		pid := bytes.IndexByte(text, ' ')
		if name < 0 || pid < 0 {
			continue
		}
		fields := append([][]byte{text[:pid]}, bytes.Fields(text[name+1:])...)
		table = appendProcess(table, fields, 0, 2, 1)
	}
	return table
}

func appendProcess(table []process, fields [][]byte, pid, parent, state int) []process {
	if len(fields) < 3 {
		return table
	}
	id, idErr := strconv.Atoi(string(fields[pid]))
	parentID, parentErr := strconv.Atoi(string(fields[parent]))
	if errors.Join(idErr, parentErr) != nil {
		return table
	}
	return append(table, process{pid: id, parent: parentID, zombie: fields[state][0] == 'Z'})
}

// killFamily sends SIGKILL to parent and its children and waits until the
// kernel has let go of all of them: a server that is started while a backend
// of its predecessor still holds the shared memory refuses to start.
func killFamily(ctx context.Context, parent int) error {
	// Stopped, it can neither fork nor notice the death of a child.
	if err := syscall.Kill(parent, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("rhizodat: stop process: %w", err)
	}
	table, err := processes(ctx)
	if err != nil {
		return errors.Join(err, syscall.Kill(parent, syscall.SIGCONT))
	}
	family := []int{parent}
	for _, p := range table {
		if p.parent == parent {
			family = append(family, p.pid)
		}
	}
	for _, pid := range family {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("rhizodat: kill process: %w", err)
		}
	}
	return awaitEnd(ctx, family)
}

func awaitEnd(ctx context.Context, pids []int) error {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		table, err := processes(ctx)
		if err != nil {
			return err
		}
		if !anyAlive(table, pids) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("rhizodat: await end of killed processes: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

func anyAlive(table []process, pids []int) bool {
	for _, p := range table {
		for _, pid := range pids {
			if p.pid == pid && !p.zombie {
				return true
			}
		}
	}
	return false
}
