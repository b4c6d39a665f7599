package drevoserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/drevoserver"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

const envChild = "RHIZODAT_TEST_DREVOSERVER_CHILD"

func launch(t *testing.T, args ...string) *drevoserver.Server {
	t.Helper()
	s, err := drevoserver.Launch(t.Context(), args...)
	if errors.Is(err, drevoserver.ErrNoServer) {
		pgtest.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dial tells whether somebody listens.
func dial(addr string) bool {
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", addr)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// A server comes back at its old addresses after every end, and its directory
// goes with it.
func TestRestart(t *testing.T) {
	s := launch(t)
	bolt, web := s.Bolt(), s.HTTP()
	for _, end := range []func() error{s.Kill, s.Stop} {
		if !dial(bolt) || !dial(web) {
			t.Fatal("it runs and does not listen")
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if s.Running() || dial(bolt) {
			t.Error("running after its end")
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Bolt() != bolt || s.HTTP() != web {
			t.Errorf("addresses %s and %s, were %s and %s", s.Bolt(), s.HTTP(), bolt, web)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory after Close: %v", err)
	}
}

// A server that cannot start says why.
func TestRefusedStart(t *testing.T) {
	s := launch(t)
	defer s.Close()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Data()+"/native.wal", []byte("{\"Upsert\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := s.Start(t.Context())
	if err == nil {
		t.Fatal("it starts on a damaged log")
	}
	if code, waitErr := s.Wait(); code != 1 || waitErr != nil || len(s.Log()) == 0 {
		t.Errorf("exit code %d, %v, log %q, start: %v", code, waitErr, s.Log(), err)
	}
}

// TestChild is the process that is killed by TestEndsWithItsOwner.
func TestChild(t *testing.T) {
	if os.Getenv(envChild) == "" {
		return
	}
	s, err := drevoserver.Launch(context.Background())
	fmt.Println("child:", s.Dir(), s.Bolt(), err)
	select {}
}

// However the owner ends, its server does not stay, nor its directory.
func TestEndsWithItsOwner(t *testing.T) {
	s := launch(t) // skips where there is none
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	child.Env = append(os.Environ(), envChild+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var dir, addr string
	if _, err := fmt.Fscanf(out, "child: %s %s", &dir, &addr); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	until(t, "server is gone", func() bool { return !dial(addr) })
	until(t, "directory is gone", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !f(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not so after 30 s: %s", what)
		}
	}
}
