package branchtest_test

import (
	"context"
	"database/sql/driver"
	"io"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/branchtest"
)

// answer is what a stub says to everything. It implements every optional
// ability, so that no item is left out.
type answer struct {
	vote  branches.Vote
	fate  branches.Fate
	rows  int
	taken bool
}

// The stubs: an adapter of empty functions, and three that are written to please.
var stubs = map[string]answer{
	"nil":              {},
	"votes and nil":    {vote: branches.VotePrepare},
	"applied":          {vote: branches.VotePrepare, fate: branches.FateApplied, rows: 1, taken: true},
	"never":            {vote: branches.VotePrepare, fate: branches.FateNever},
	"absent":           {vote: branches.VotePrepare, fate: branches.FateAbsent, rows: 1},
	"read-only":        {vote: branches.VoteReadOnly, fate: branches.FateAbsent},
	"read-only, taken": {vote: branches.VoteReadOnly, fate: branches.FateAbsent, taken: true},
	"read-only, rows":  {vote: branches.VoteReadOnly, fate: branches.FateApplied, rows: 1},
}

// TestItemsFailOnStubs proves the suite: no item may pass on a store that does
// nothing.
func TestItemsFailOnStubs(t *testing.T) {
	for name, a := range stubs {
		t.Run(name, func(t *testing.T) {
			for _, item := range branchtest.Items {
				missing, err := item.Check(t.Context(), a.harness())
				if missing != "" {
					t.Errorf("%s: left out (%s)", item.Name, missing)
				} else if err == nil {
					t.Errorf("%s: passes", item.Name)
				}
			}
		})
	}
}

func TestItemNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, item := range branchtest.Items {
		if seen[item.Name] {
			t.Errorf("two items are named %q", item.Name)
		}
		seen[item.Name] = true
	}
}

func (a answer) harness() branchtest.Harness {
	return branchtest.Harness{
		Open:  func(context.Context) (branches.Store, error) { return a, nil },
		Vote:  branches.VotePrepare,
		Write: func(key string) string { return key },
		Read:  "read", Bad: "bad", Constrained: true, Unpreparable: "temp", Lock: "lock", Table: "t", Column: "k",
		Count:   func(context.Context, string) (int, error) { return a.rows, nil },
		TryLock: func(context.Context) (bool, error) { return a.taken, nil },
		Sever:   func(context.Context, branches.Session) error { return nil },
		Restart: func(context.Context) error { return nil },
	}
}

func (a answer) Connect(context.Context) (branches.Session, error)              { return stubSession{a}, nil }
func (a answer) Finish(context.Context, branches.Ref) error                     { return nil }
func (a answer) Abort(context.Context, branches.Ref) error                      { return nil }
func (a answer) Applied(context.Context, branches.TxnID) (branches.Fate, error) { return a.fate, nil }

func (a answer) Settle(context.Context, branches.TxnID) (branches.Fate, error) { return a.fate, nil }
func (a answer) Close() error                                                  { return nil }
func (a answer) Classify(error) branches.Kind                                  { return branches.Permanent }

func (a answer) Prepared(context.Context) ([]branches.Prepared, error) { return nil, nil }
func (a answer) Probe(context.Context) error                           { return nil }
func (a answer) Place(context.Context) (branches.Place, error)         { return "", nil }
func (a answer) Meta(context.Context) (branches.Meta, error)           { return branches.Meta{}, nil }

func (a answer) Bind(context.Context, branches.Meta, branches.Meta) (bool, error) { return true, nil }
func (a answer) RaiseSweeps(context.Context, int64) error                         { return nil }
func (a answer) Install(context.Context) error                                    { return nil }
func (a answer) InstallSQL() string                                               { return "" }
func (a answer) Examine(context.Context) ([]branches.Finding, error)              { return nil, nil }
func (a answer) RemoveMarkers(context.Context, []branches.TxnID) error            { return nil }
func (a answer) RemoveMarkersBefore(context.Context, time.Time, []branches.TxnID, int) (int, error) {
	return 0, nil
}

type stubSession struct{ a answer }

func (s stubSession) Exec(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.ResultNoRows, nil
}

func (s stubSession) Query(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return stubRows{}, nil
}
func (s stubSession) Prepare(context.Context, string) (driver.Stmt, error) { return nil, nil }
func (s stubSession) Begin(context.Context, branches.BeginOptions) (branches.Branch, error) {
	return stubBranch(s), nil
}
func (s stubSession) Usable() bool               { return true }
func (s stubSession) Close() error               { return nil }
func (s stubSession) Ping(context.Context) error { return nil }
func (s stubSession) CopyFrom(context.Context, string, []string, func() ([]any, error)) (int64, error) {
	return 0, nil
}

type stubBranch struct{ a answer }

func (b stubBranch) Stage(context.Context, branches.Unit) (branches.Staged, error) {
	return branches.Staged{Vote: b.a.vote}, nil
}
func (b stubBranch) Prepare(context.Context, branches.GID) error { return nil }
func (b stubBranch) Finish(context.Context, branches.Ref) error  { return nil }
func (b stubBranch) Commit(context.Context) error                { return nil }
func (b stubBranch) Rollback(context.Context) error              { return nil }
func (b stubBranch) Doomed() error                               { return nil }
func (b stubBranch) Wrote() bool                                 { return false }
func (b stubBranch) Savepoint(context.Context, string) error     { return nil }
func (b stubBranch) RollbackTo(context.Context, string) error    { return nil }
func (b stubBranch) Release(context.Context, string) error       { return nil }

type stubRows struct{}

func (stubRows) Columns() []string         { return nil }
func (stubRows) Next([]driver.Value) error { return io.EOF }
func (stubRows) Close() error              { return nil }
