package pgserver_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/internal/pgserver"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
)

// envChild makes the test binary launch a server, print where, and hang.
const envChild = "RHIZODAT_PGSERVER_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(envChild) == "" {
		os.Exit(m.Run())
	}
	server, err := pgserver.Launch(context.Background(), "fsync=off")
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(filepath.Dir(server.Log()) + " " + server.Addr() + "\n")
	select {}
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

func TestServerDiesWithKilledProcess(t *testing.T) {
	if _, err := pgserver.Find(t.Context()); err != nil {
		pgtest.Skip(t, err.Error())
	}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), envChild+"=1")
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir, addr, _ := strings.Cut(strings.TrimSpace(line), " ")
	if !answers(t, addr) || !exists(dir) {
		t.Fatalf("server of child is not up at %s in %s", addr, dir)
	}
	if err := child.Process.Kill(); err != nil { // SIGKILL: nothing of the child runs any more
		t.Fatal(err)
	}
	_ = child.Wait() // "signal: killed"
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for answers(t, addr) || exists(dir) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("30s after its process was killed: server answers %v, directory exists %v", answers(t, addr), exists(dir))
		}
	}
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
	if answers(t, server.Addr()) {
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

func answers(t *testing.T, addr string) bool {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
