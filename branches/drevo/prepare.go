package drevo

import (
	"context"
	"errors"
	"fmt"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

const prepare = "CALL drevo.tx.prepare($gid)"

// Prepare is S5. Its row proves it: drevo has it on its disk before it answers.
// After it the session is free for the next unit.
func (b *Branch) Prepare(ctx context.Context, gid branches.GID) error {
	if b.vote == branches.VoteReadOnly {
		return b.alive(ctx)
	}
	if b.doom != nil {
		return b.doom
	}
	b.leave()
	if err := b.prepare(ctx, gid); err != nil {
		_ = b.undo() // nothing is open any more: it gives the connection back
		return err
	}
	// The graph is fenced now: the decision does not wait for this. Nobody else gets
	// the connection before it is done, and Close of the store waits for it.
	b.session.store.detaching.Go(func() {
		b.detach(ctx)
		_ = b.undo()
	})
	return nil
}

func (b *Branch) prepare(ctx context.Context, gid branches.GID) error {
	var row *neo4j.Record
	result, err := b.tx.Run(ctx, prepare, map[string]any{"gid": gid.String()})
	if err == nil {
		row, err = result.Single(ctx)
	}
	switch {
	case err == nil && len(row.Values) == 1 && row.Values[0] == gid.String():
		b.session.store.full.Store(false)
		return nil
	case err == nil:
		return branches.Unknown(b.session.store.fail("prepare branch", fmt.Errorf("the server names another transaction: %v", row.Values)))
	}
	return b.prepareError(ctx, err)
}

// detach sends the COMMIT that takes the connection out of the transaction. It
// changes nothing in the store: the prepared transaction is the server's now.
//
// INVARIANT D2: nothing runs between prepare and this COMMIT. A statement there
// fails, the driver resets the connection and lends it to the next unit, and drevo,
// whose mark of the prepared transaction outlives the reset, acknowledges that
// unit's COMMIT without doing it. A connection on which this COMMIT failed is for
// the same reason never used again.
func (b *Branch) detach(ctx context.Context) {
	ctx, cancel := tidying(ctx)
	defer cancel()
	if guard.Off(guard.Between) {
		_, _ = b.tx.Run(ctx, "RETURN 1", nil)
		return
	}
	if b.tx.Commit(ctx) != nil {
		// The branch is prepared all the same. Where no new connections can be made
		// there are none at all, and whoever wants one is told so.
		_ = b.session.store.renew(b.graph) //nolint:contextcheck // Close has a bound of its own
	}
}

// prepareError says what an error of prepare proves. An answer with a code of the
// client's or of a conflict is one: drevo has rolled the transaction back. No answer
// is none, and neither is a failure of its log.
func (b *Branch) prepareError(ctx context.Context, err error) error {
	s := b.session.store
	s.notice(err)
	failed := s.fail("prepare branch", withContext(ctx, err))
	switch {
	case unsent(err):
		b.session.lost = true
		return failed
	case bolt.IsWALFailure(err) && guard.Off(guard.Log):
		return failed
	case bolt.Says(err, textAlreadyPrepared):
		// Nobody else makes our gids: an earlier delivery of this very request did it.
		return branches.Unknown(failed)
	case bolt.IsLost(err):
		b.session.lost = bolt.Code(err) == ""
		return branches.Unknown(failed)
	}
	return failed
}

// textAlreadyPrepared has no code of its own.
const textAlreadyPrepared = "a transaction is already prepared as"

// unsent: the driver itself refused, so that the server has heard nothing.
func unsent(err error) bool {
	_, ok := errors.AsType[*neo4j.UsageError](err)
	return ok
}

// alive proves that the transaction of a branch that wrote nothing is still there.
func (b *Branch) alive(ctx context.Context) error {
	if b.doom != nil {
		return b.doom
	}
	_, err := b.ask(ctx, "RETURN 1", nil)
	return b.session.store.fail("ping branch", err)
}
