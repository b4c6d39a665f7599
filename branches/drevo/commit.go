package drevo

import (
	"context"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
)

// Commit ends the branch in one phase. One that wrote nothing ends with ROLLBACK:
// drevo would refuse its COMMIT for every write beside it, and under the fence.
func (b *Branch) Commit(ctx context.Context) error {
	b.leave()
	defer func() { _ = b.undo() }() // what is not committed is rolled back
	s := b.session.store
	switch {
	case b.doom != nil:
		return b.doom
	case !b.Wrote():
		return nil
	case ctx.Err() != nil:
		return s.fail("commit branch", context.Cause(ctx)) // nothing was sent
	}
	err := b.tx.Commit(ctx)
	if err == nil {
		s.full.Store(false)
		return nil
	}
	s.notice(err)
	failed := withContext(ctx, err)
	if b.marked {
		failed = s.fail("commit branch", failed)
	}
	if unsent(err) || !bolt.IsLost(err) {
		return failed
	}
	b.session.lost = bolt.Code(err) == ""
	return branches.Unknown(failed)
}
