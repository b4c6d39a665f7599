// Package branchtest holds a store to the contract of package branches.
//
// A store passes with one call in a test of its own package, against its real
// server:
//
//	branchtest.Exercise(t, branchtest.Harness{ ... })
//
// The contract is data: [Items] lists it. An item that a store or its harness
// cannot play (no savepoints, no server to restart) is left out with the
// reason, never silently. Every item has been proved: each fails against stores
// that answer nil, or yes, to everything (stub_test.go).
package branchtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Harness is what a store brings to the suite. What is marked optional may be
// left zero; its items are then left out.
type Harness struct {
	// Open makes a new instance of the store over the same place, sharing
	// nothing in memory with the others: it stands in for another process. Its
	// tables are installed.
	Open func(ctx context.Context) (branches.Store, error)
	// Vote is how a branch that wrote votes: VotePrepare or VoteApply.
	Vote branches.Vote
	// Write is a statement that writes one row with this key.
	Write func(key string) string
	// Read is a statement that returns rows and writes nothing.
	Read string
	// Count tells how many committed rows with this key others see.
	Count func(ctx context.Context, key string) (int, error)

	// Bad is a statement that the store refuses for its text (optional).
	Bad string
	// Constrained: a second row with the same key is refused.
	Constrained bool
	// Fenced: a prepared branch refuses every other write of its place until it is
	// finished.
	Fenced bool
	// NoUndo: the store cannot take a part of a branch back. A failed statement
	// dooms it for good, and so does a rollback to a savepoint after which it has
	// written.
	NoUndo bool
	// Unpreparable is a statement after which Prepare is refused (optional).
	Unpreparable string
	// Lock is a statement that writes nothing and takes a lock; TryLock reports
	// whether it is taken (optional).
	Lock    string
	TryLock func(ctx context.Context) (taken bool, err error)
	// Table and Column are where Write puts its key, for CopyFrom (optional).
	Table, Column string
	// Sever ends a session's connection behind its back (optional).
	Sever func(ctx context.Context, session branches.Session) error
	// Restart stops the server and starts it again (optional).
	Restart func(ctx context.Context) error
}

// Item is one clause of the contract.
type Item struct {
	Name string
	Run  func(*Run)
}

// patience bounds one item.
const patience = time.Minute

// Exercise runs every item, and prints and returns what it left out.
func Exercise(t *testing.T, h Harness) (left []string) {
	t.Helper()
	ran := 0
	for _, item := range Items {
		t.Run(item.Name, func(t *testing.T) {
			missing, err := item.Check(t.Context(), h)
			switch {
			case missing != "":
				left = append(left, item.Name+": "+missing)
			case err != nil:
				t.Error(err)
			}
			ran++
		})
	}
	ran -= len(left)
	t.Logf("branchtest: ran %d, left out %d (%s)", ran, len(left), strings.Join(left, "; "))
	return left
}

// Check plays the item. missing says why it was left out; err is what the store
// got wrong.
func (i Item) Check(ctx context.Context, h Harness) (missing string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	run := &Run{Harness: h, Ctx: ctx}
	run.play(i.Run)
	return run.missing, run.err()
}
