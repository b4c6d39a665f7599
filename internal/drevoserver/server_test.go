package drevoserver_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/child/childtest"
	"github.com/rhizodat/rhizodat-go/internal/drevoserver"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

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

// A server comes back at its old addresses after every end, and its directory
// goes with it.
func TestRestart(t *testing.T) {
	s := launch(t)
	bolt, web := s.Bolt(), s.HTTP()
	for _, end := range []func() error{s.Kill, s.Stop} {
		if !childtest.Answers(t, bolt) || !childtest.Answers(t, web) {
			t.Fatal("it runs and does not listen")
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if s.Running() || childtest.Answers(t, bolt) {
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

// TestOwner is the process that is killed by TestEndsWithItsOwner.
func TestOwner(*testing.T) {
	childtest.Owner(func(ctx context.Context) (dir, addr string, err error) {
		s, err := drevoserver.Launch(ctx)
		if err != nil {
			return "", "", err
		}
		return s.Dir(), s.Bolt(), nil
	})
}

// However the owner ends, its server does not stay, nor its directory.
func TestEndsWithItsOwner(t *testing.T) {
	s := launch(t) // skips where there is none
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	childtest.EndsWithItsOwner(t, "TestOwner")
}
