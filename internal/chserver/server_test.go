package chserver_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/child/childtest"
	"github.com/rhizodat/rhizodat-go/internal/chserver"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

func launch(t *testing.T) *chserver.Server {
	t.Helper()
	s, err := chserver.Launch(t.Context(), "")
	if errors.Is(err, chserver.ErrNoServer) {
		pgtest.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t *testing.T, addr, query string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/", strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", query, response.StatusCode, text, err)
	}
	return strings.TrimSpace(string(text))
}

// What was acknowledged is there after a crash, at the old address.
func TestRestart(t *testing.T) {
	s := launch(t)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("directory after Close: %v", err)
		}
	}()
	ask(t, s.HTTP(), "CREATE DATABASE d")
	ask(t, s.HTTP(), "CREATE TABLE d.t (k UInt64) ENGINE = MergeTree ORDER BY k")
	ask(t, s.HTTP(), "INSERT INTO d.t SELECT number FROM numbers(10)")
	native, web := s.Native(), s.HTTP()
	for _, end := range []func() error{s.Kill, s.Stop} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if s.Running() {
			t.Error("running after its end")
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Native() != native || s.HTTP() != web {
			t.Errorf("addresses %s and %s, were %s and %s", s.Native(), s.HTTP(), native, web)
		}
		if got := ask(t, web, "SELECT count() FROM d.t"); got != "10" {
			t.Errorf("%s rows, want 10", got)
		}
	}
}

// TestOwner is the process that is killed by TestEndsWithItsOwner.
func TestOwner(*testing.T) {
	childtest.Owner(func(ctx context.Context) (dir, addr string, err error) {
		s, err := chserver.Launch(ctx, "")
		if err != nil {
			return "", "", err
		}
		return s.Dir(), s.Native(), nil
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
