package pgserver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/internal/child/childtest"
	"github.com/rhizodat/rhizodat-go/internal/pgserver"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// TestOwner is the process that is killed by TestEndsWithItsOwner.
func TestOwner(*testing.T) {
	childtest.Owner(func(ctx context.Context) (dir, addr string, err error) {
		s, err := pgserver.Launch(ctx, "fsync=off")
		if err != nil {
			return "", "", err
		}
		return filepath.Dir(s.Log()), s.Addr(), nil
	})
}

func launch(t *testing.T, settings ...string) *pgserver.Server {
	t.Helper()
	server, err := pgserver.Launch(t.Context(), settings...)
	if errors.Is(err, pgserver.ErrNoServer) {
		pgtest.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// However the owner ends, its server does not stay, nor its directory.
func TestEndsWithItsOwner(t *testing.T) {
	if _, err := pgserver.Find(t.Context()); err != nil {
		pgtest.Skip(t, err.Error())
	}
	childtest.EndsWithItsOwner(t, "TestOwner")
}

func TestCloseLeavesNothing(t *testing.T) {
	server, err := pgserver.Launch(t.Context())
	if errors.Is(err, pgserver.ErrNoServer) {
		pgtest.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if childtest.Answers(t, server.Addr()) {
		t.Error("closed server answers")
	}
	if exists(filepath.Dir(server.Log())) {
		t.Error("closed server left its directory")
	}
}

func TestServerAsksForItsPassword(t *testing.T) {
	server := launch(t)
	wrong := strings.Replace(server.DSN("postgres"), server.Password(), "wrong", 1)
	if conn, err := pgx.Connect(t.Context(), wrong); err == nil {
		t.Error("a wrong password was accepted", conn.Close(t.Context()))
	}
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLaunchRefusesBadSettings(t *testing.T) {
	launch(t) // skips without a server
	for _, setting := range []string{"fsync", "max_connections=many", "no_such_setting=1"} {
		server, err := pgserver.Launch(t.Context(), setting)
		if err == nil {
			t.Errorf("setting %q was accepted", setting)
			t.Error(server.Close())
		}
	}
}

func TestFindSaysWhatIsMissing(t *testing.T) {
	t.Setenv(pgserver.EnvBinDir, t.TempDir())
	if found, err := pgserver.Find(t.Context()); !errors.Is(err, pgserver.ErrNoServer) {
		t.Errorf("Find in an empty directory: %v, %v", found, err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
