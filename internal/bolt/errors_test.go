package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go/branches"
)

// TestErrors holds the texts and codes of drevo to what they prove.
func TestErrors(t *testing.T) {
	answer := func(code, text string) error {
		return fmt.Errorf("wrapped: %w", &neo4j.Neo4jError{Code: code, Msg: text})
	}
	for _, c := range []struct {
		name string
		err  error
		kind branches.Kind
		lost bool
	}{
		{"conflict", answer(CodeOutdated, "transaction conflict: the graph changed since the transaction began; retry"), branches.Transient, false},
		{"fence", answer(CodeFenced, "writes are paused while prepared transaction(s) g1 await resolution; retry"), branches.Transient, false},
		{"fence of an old drevo", answer(codeStoppedClient, "writes are paused"), branches.Transient, false},
		{"constraint", answer(CodeConstraint, "constraint on `Kind` violated: x"), branches.Constraint, false},
		{"title", answer(CodeExecution, "storage error: duplicate title: a"), branches.Constraint, true},
		{"full", answer(CodeExecution, "write-ahead log write failed: io error: No space left on device (os error 28)"), branches.StoreFull, true},
		{"quota", answer(CodeExecution, "write-ahead log write failed: io error: (os error 122)"), branches.StoreFull, true},
		{"broken", answer(CodeExecution, "write-ahead log write failed: io error: durable WAL is broken: a prior group commit failed to persist"), branches.Permanent, true},
		{"syntax", answer("Neo.ClientError.Statement.SyntaxError", "x"), branches.Permanent, false},
		{"no such graph", answer(CodeNoGraph, "database `x` does not exist"), branches.Permanent, false},
		{"no answer", &neo4j.ConnectivityError{Inner: io.EOF}, branches.Transient, true},
		{"out of time", fmt.Errorf("%w: x", context.DeadlineExceeded), branches.Transient, true},
		{"anything", errors.New("x"), branches.Permanent, true},
		{"none", nil, branches.Permanent, false},
	} {
		if kind, lost := Classify(c.err), IsLost(c.err); kind != c.kind || lost != c.lost {
			t.Errorf("%s: %v, lost %t; want %v, lost %t", c.name, kind, lost, c.kind, c.lost)
		}
	}
	if err := answer(CodeOutdated, "t"); !IsOutdated(err) || IsFenced(err) || IsWALFailure(err) {
		t.Error("Outdated is not told from the others")
	}
	if err := answer(codeStopped, "t"); !IsFenced(err) || IsOutdated(err) {
		t.Error("the fence is not told from the others")
	}
	if !IsWALFailure(answer(CodeExecution, "storage error: io error: durable WAL is broken")) || IsWALFailure(io.EOF) {
		t.Error("a broken log is not told from the others")
	}
}
