package clickhouse

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Branch is what one unit has written, until its end.
type Branch struct {
	session  *Session
	txn      branches.TxnID
	readOnly bool
	buffer   buffer
	marks    map[string]savedMark
	doom     error

	staged  bool
	unit    branches.Unit
	payload *payload // sealed by Stage
}

// savedMark is a savepoint: the rows, and whether the branch was doomed already.
type savedMark struct {
	mark mark
	doom error
}

var (
	_ branches.Branch      = (*Branch)(nil)
	_ branches.Savepointer = (*Branch)(nil)
	_ branches.Capacity    = (*Branch)(nil)
)

var (
	errBranchOpen = errors.New("a branch is open on this session")
	errNoContext  = errors.New("rhizodat: run prepared statement: call it with a context")
	errNoMark     = errors.New("no such savepoint")
	errNoTime     = errors.New("the unit has no dat_tx_time")
)

// Doomed returns why the branch cannot commit. A refused statement is no reason:
// it has left nothing behind.
func (b *Branch) Doomed() error {
	if b.doom != nil {
		return b.session.store.fail("use branch", b.doom)
	}
	return nil
}

// dooms keeps the first error that left the rows incomplete.
func (b *Branch) dooms(err error) error {
	if b.doom == nil {
		b.doom = err
	}
	return err
}

// Savepoint remembers how much there is.
func (b *Branch) Savepoint(_ context.Context, name string) error {
	m, err := b.buffer.mark()
	if err != nil {
		return b.dooms(err)
	}
	if b.marks == nil {
		b.marks = map[string]savedMark{}
	}
	b.marks[name] = savedMark{m, b.doom}
	return nil
}

// RollbackTo drops what came after the savepoint, and the doom with it.
func (b *Branch) RollbackTo(_ context.Context, name string) error {
	saved, ok := b.marks[name]
	if !ok {
		return b.session.store.fail("roll back to savepoint", errNoMark)
	}
	b.doom = saved.doom
	if err := b.buffer.back(saved.mark); err != nil {
		return b.dooms(err)
	}
	return nil
}

// Release forgets a savepoint.
func (b *Branch) Release(_ context.Context, name string) error {
	if _, ok := b.marks[name]; !ok {
		return b.session.store.fail("release savepoint", errNoMark)
	}
	delete(b.marks, name)
	return nil
}

// Prepare does nothing: what a branch has kept depends on no session.
func (b *Branch) Prepare(context.Context, branches.GID) error { return b.Doomed() }

// Rollback drops what the branch has kept.
func (b *Branch) Rollback(context.Context) error {
	b.leave()
	return nil
}

// Finish is S9. The rows have not been tried before, so the first statement is
// the insert; its own condition guards it all the same.
func (b *Branch) Finish(ctx context.Context, ref branches.Ref) error {
	b.leave()
	return b.session.store.finish(ctx, ref, true)
}

// leave gives the session back and the rows up.
func (b *Branch) leave() {
	if b.session.branch == b {
		b.session.branch = nil
	}
	b.buffer.lists, b.marks = nil, nil
}

// Free is that of the tables the branch has written to.
func (b *Branch) Free(ctx context.Context) (int64, bool, error) {
	tables := b.buffer.tables()
	policies := make([]string, len(tables))
	for i, t := range tables {
		policies[i] = t.policy
	}
	return b.session.store.free(ctx, policies)
}
