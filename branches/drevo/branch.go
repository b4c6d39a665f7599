package drevo

import (
	"context"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
)

// Branch is one transaction, from BEGIN to its end.
type Branch struct {
	session *Session
	graph   *bolt.Graph // whose pool lent the connection
	neo     neo4j.SessionWithContext
	tx      neo4j.ExplicitTransaction
	undo    func() error

	readOnly bool
	writes   int            // statements that may have written
	marks    map[string]int // writes, as each savepoint found it
	doom     error          // why the transaction cannot commit
	marked   bool           // a marker is written; without one the errors are the driver's own
	vote     branches.Vote
}

var (
	_ branches.Branch      = (*Branch)(nil)
	_ branches.Writer      = (*Branch)(nil)
	_ branches.Savepointer = (*Branch)(nil)
)

// Wrote reports whether a statement may have written: drevo tells no counters, so
// Stage then votes VotePrepare whatever it did.
func (b *Branch) Wrote() bool { return b.writes > 0 }

// Doomed returns why the branch cannot commit, or nil. After a failed statement
// that is for good: drevo has rolled the transaction back.
func (b *Branch) Doomed() error { return b.doom }

// run runs a statement and takes all of its rows: drevo refuses the next one
// while rows of this one are under way.
func (b *Branch) run(ctx context.Context, text statement, query string, params map[string]any) (*rows, error) {
	if b.doom != nil {
		return nil, b.doom
	}
	if text.writes {
		b.writes++
	}
	return b.ask(ctx, query, params)
}

func (b *Branch) ask(ctx context.Context, query string, params map[string]any) (*rows, error) {
	result, err := b.tx.Run(ctx, query, params)
	var found *rows
	if err == nil {
		found, err = collect(ctx, result)
	}
	if err != nil {
		err = withContext(ctx, err)
		b.failed(err)
		return nil, err
	}
	return found, nil
}

// failed notes the error that ended the transaction.
func (b *Branch) failed(err error) {
	b.session.store.notice(err)
	if bolt.Code(err) == "" {
		b.session.lost = true
	}
	if b.doom == nil {
		b.doom = &branches.Error{
			Store: b.session.store.name, Doing: "use branch", Err: err, Asks: classify(err),
			Cause: "a statement has failed, and with it the transaction",
		}
	}
}

// Savepoint notes what the branch has written so far.
func (b *Branch) Savepoint(_ context.Context, name string) error {
	if b.marks == nil {
		b.marks = map[string]int{}
	}
	b.marks[name] = b.writes
	return nil
}

// RollbackTo dooms a branch that has written since the savepoint: drevo cannot
// take a part of a transaction back. One that has only read goes on.
func (b *Branch) RollbackTo(_ context.Context, name string) error {
	if b.doom == nil && b.writes > b.marks[name] {
		b.doom = &branches.Error{
			Store: b.session.store.name, Doing: "roll back to savepoint",
			Cause: "drevo has no savepoints, and the transaction has written there since",
			Way:   "roll the whole transaction back, or write to this store outside of the savepoint",
			Asks:  branches.Permanent,
		}
	}
	return nil
}

// Release forgets a savepoint.
func (b *Branch) Release(_ context.Context, name string) error {
	delete(b.marks, name)
	return nil
}

// Rollback rolls the transaction back. Where that fails its connection is
// closed, which does the same.
func (b *Branch) Rollback(context.Context) error {
	b.leave()
	_ = b.undo()
	return nil
}

// leave gives the session back: it belongs to no branch.
func (b *Branch) leave() {
	if b.session.branch == b {
		b.session.branch = nil
	}
}
