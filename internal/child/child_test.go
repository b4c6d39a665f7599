package child_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/child"
	"github.com/rhizodat/rhizodat-go/internal/child/childtest"
)

func start(t *testing.T, script string, args ...string) *child.Process {
	t.Helper()
	p, err := child.Start("shell", exec.Command("sh", append([]string{"-c", script, "shell"}, args...)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestStopEndsTheInput(t *testing.T) {
	p := start(t, `cat; exit 7`)
	if !p.Running() {
		t.Fatal("it does not run")
	}
	if err := p.Stop(time.Minute); err != nil || p.Running() {
		t.Errorf("stopped: %v, running %t", err, p.Running())
	}
	if code, err := p.Wait(time.Minute); code != 7 || err != nil {
		t.Errorf("exit code %d, %v, want 7", code, err)
	}
	if err := errors.Join(p.Stop(time.Minute), p.Kill()); err != nil {
		t.Errorf("ended again: %v", err)
	}
}

// What does not end by itself is killed, and that is told.
func TestWaitInVain(t *testing.T) {
	p := start(t, `exec sleep 600`)
	if _, err := p.Wait(time.Millisecond); err == nil || p.Running() {
		t.Errorf("waited: %v, running %t", err, p.Running())
	}
}

// A grandchild that holds the standard error does not hold up Kill.
func TestGrandchild(t *testing.T) {
	p := start(t, `cat; true`)
	if err := p.Kill(); err != nil || p.Running() {
		t.Errorf("killed: %v, running %t", err, p.Running())
	}
}

func TestNeverStarted(t *testing.T) {
	var p *child.Process
	if err := errors.Join(p.Stop(time.Minute), p.Kill()); err != nil || p.Running() {
		t.Errorf("ended: %v, running %t", err, p.Running())
	}
	if _, err := child.Start("nothing", exec.Command("/no/such/program")); err == nil || !strings.Contains(err.Error(), "start nothing") {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestAwait(t *testing.T) {
	never := func() (bool, error) { return false, nil }
	t.Run("ready at the third look", func(t *testing.T) {
		looks := 0
		if err := start(t, `exec cat`).Await(t.Context(), time.Minute, func() (bool, error) { looks++; return looks == 3, nil }); err != nil {
			t.Error(err)
		}
	})
	t.Run("it ends, and its last words are told", func(t *testing.T) {
		err := start(t, `echo no licence >&2; exit 1`).Await(t.Context(), time.Minute, never)
		if err == nil || !strings.Contains(err.Error(), "it ended: no licence") {
			t.Error(err)
		}
	})
	t.Run("too late, and it is killed", func(t *testing.T) {
		p := start(t, `exec cat`)
		if err := p.Await(t.Context(), time.Millisecond, never); !errors.Is(err, context.DeadlineExceeded) || p.Running() {
			t.Errorf("%v, running %t", err, p.Running())
		}
	})
	t.Run("a look that fails", func(t *testing.T) {
		broken := errors.New("broken")
		if err := start(t, `exec cat`).Await(t.Context(), time.Minute, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

// Of what a server writes the end is kept.
func TestLog(t *testing.T) {
	p := start(t, `i=0; while [ $i -lt 2000 ]; do echo "line $i"; i=$((i+1)); done >&2`)
	if code, err := p.Wait(time.Minute); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	if log := p.Log(); !strings.HasSuffix(log, "line 1999") || len(log) > 4000 || len(log) < 3000 {
		t.Errorf("kept %d bytes, ending %q", len(log), log[max(0, len(log)-20):])
	}
}

// TestOwner is the process that is killed by TestEndsWithItsOwner. Its server is
// itself, so that it is gone by being killed; what is proved is the directory.
func TestOwner(*testing.T) {
	childtest.Owner(func(ctx context.Context) (path, addr string, err error) {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		dir, err := child.MakeDir("rhizodat-child-")
		if err != nil {
			return "", "", err
		}
		// After the end of its input it writes a little longer.
		writer := exec.Command("sh", "-c", `cat; for i in 1 2 3 4; do sleep 0.05; mkdir -p "$0/data/$i"; done`, dir.Path())
		_, err = child.Start("writer", writer)
		return dir.Path(), listener.Addr().String(), err
	})
}

func TestEndsWithItsOwner(t *testing.T) { childtest.EndsWithItsOwner(t, "TestOwner") }

// A server in the background is stopped by its pid file, and only that one.
func TestRemoveStops(t *testing.T) {
	dir, err := child.MakeDirOf("rhizodat-child-", "data/pid")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir.Path("data"), 0o700); err != nil {
		t.Fatal(err)
	}
	server := start(t, `read line`, dir.Path("data"))
	if err := os.WriteFile(dir.Path("data", "pid"), fmt.Appendf(nil, "%d\nmore\n", server.Pid()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dir.Remove(); err != nil {
		t.Error(err)
	}
	await.Until(t, "server is gone", func() bool { return !server.Running() })
	if _, err := os.Stat(dir.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory after Remove: %v", err)
	}
}

// A process that only has the number of the pid file is left alone.
func TestRemoveSparesAnother(t *testing.T) {
	dir, err := child.MakeDirOf("rhizodat-child-", "pid")
	if err != nil {
		t.Fatal(err)
	}
	another := start(t, `exec cat`)
	if err := os.WriteFile(dir.Path("pid"), fmt.Appendf(nil, "%d\n", another.Pid()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dir.Remove(); err != nil || !another.Running() {
		t.Errorf("%v; the other process runs: %t", err, another.Running())
	}
}
