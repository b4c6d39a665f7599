// Package childtest proves of a room that launches servers that they end with
// the process that launched them.
package childtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/await"
)

// envOwner is set in the process that is killed.
const envOwner = "RHIZODAT_TEST_OWNER"

// Owner is the body of the test that [EndsWithItsOwner] runs in a process of its
// own: it launches a server, tells its directory and its address, and hangs.
// Elsewhere it does nothing.
func Owner(launch func(ctx context.Context) (dir, addr string, err error)) {
	if os.Getenv(envOwner) == "" {
		return
	}
	dir, addr, err := launch(context.Background())
	fmt.Println("child:", dir, addr, err)
	select {}
}

// EndsWithItsOwner kills a process that has launched a server, by SIGKILL, and
// waits until the server and its directory are gone. test names the test that
// calls [Owner].
func EndsWithItsOwner(t *testing.T, test string) {
	t.Helper()
	owner := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$") //nolint:gosec // this program
	owner.Env = append(os.Environ(), envOwner+"=1")
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	var dir, addr, launched string
	if _, err := fmt.Fscanf(out, "child: %s %s %s", &dir, &addr, &launched); err != nil || launched != "<nil>" {
		t.Fatalf("owner told %q %q %q, %v", dir, addr, launched, err)
	}
	if !Answers(t, addr) {
		t.Errorf("nobody listens at %s while the owner lives", addr)
	}
	if err := owner.Process.Kill(); err != nil { // nothing of the owner runs any more
		t.Fatal(err)
	}
	_ = owner.Wait() // "signal: killed"
	await.Until(t, "server is gone", func() bool { return !Answers(t, addr) })
	await.Until(t, "directory is gone", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}

// Answers tells whether somebody listens at an address.
func Answers(t *testing.T, addr string) bool {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
