package rhizodat_test

import (
	"context"
	"database/sql"
	"os"
	osexec "os/exec"
	"testing"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/coordinator"
)

const (
	envPooledDSN   = "RHIZODAT_TEST_POOLED_DSN"
	envPooledPoint = "RHIZODAT_TEST_POOLED_POINT"
)

// dieAt commits a unit in another process, which dies at that point.
func dieAt(t *testing.T, dsn, point string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := osexec.CommandContext(t.Context(), self, "-test.run=^TestPooledChild$")
	child.Env = append(os.Environ(), envPooledDSN+"="+dsn, envPooledPoint+"="+point)
	output, err := child.CombinedOutput()
	if err == nil || child.ProcessState.ExitCode() != diedAt {
		t.Fatalf("the child did not die at %s: %v\n%s", point, err, output)
	}
}

const diedAt = 33

// grave ends the process at a point of the protocol.
type grave struct{ point string }

func (g grave) Step(_ context.Context, e rhizodat.StepEvent) {
	if e.Point() == g.point {
		os.Exit(diedAt)
	}
}

func (grave) Outcome(context.Context, rhizodat.OutcomeEvent) {}

// SplitDecision makes S6 and S7 two requests.
func (grave) SplitDecision() bool { return true }

var _ coordinator.Splitter = grave{}

// TestPooledChild is the process that dies.
func TestPooledChild(t *testing.T) {
	dsn := os.Getenv(envPooledDSN)
	if dsn == "" {
		return
	}
	db := sql.OpenDB(connector(t, dsn, grave{os.Getenv(envPooledPoint)}))
	tx := begin(t, t.Context(), db)
	exec(t, tx, "store:a "+insert, 1, "one")
	exec(t, tx, "store:b "+insert, 1, "one")
	t.Errorf("it lives on: %v", tx.Commit())
}
