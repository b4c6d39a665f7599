package bolt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// Tx is a transaction of Write.
type Tx struct {
	tx     neo4j.ExplicitTransaction
	failed error // a statement's; the server has rolled back
}

// Run runs a statement and returns its rows.
func (t *Tx) Run(ctx context.Context, cypher string, params map[string]any) ([][]any, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	result, err := t.tx.Run(ctx, cypher, params)
	if err != nil {
		t.failed = err
		return nil, err
	}
	rows, err := collect(ctx, result)
	t.failed = err
	return rows, err
}

// Write runs f in one transaction and commits it when f returns nil; an error of
// f rolls it back and is returned as it is. Where drevo refuses the transaction
// for another writer's sake (Outdated, the fence), or the connection fails before
// COMMIT is sent, nothing was written, and f runs again on what stands then, so f
// must have no effect outside of it. It gives up after some seconds, or when ctx
// ends.
//
// An error that branches.IsUnknown is an answer to COMMIT that proves nothing.
// After any other, nothing was written.
func (g *Graph) Write(ctx context.Context, f func(tx *Tx) error) error {
	return g.again(ctx, func() error {
		session := g.Session(ctx)
		return end(ctx, session, write(ctx, session, f))
	})
}

func write(ctx context.Context, session neo4j.SessionWithContext, f func(tx *Tx) error) error {
	tx, err := session.BeginTransaction(ctx)
	if err != nil {
		return err
	}
	t := &Tx{tx: tx}
	if err = f(t); err == nil {
		err = t.failed
	}
	if err != nil {
		ctx, cancel := tidying(ctx)
		defer cancel()
		_ = tx.Close(ctx) // a connection that cannot roll back is closed, which does the same
		return err
	}
	if err = tx.Commit(ctx); IsLost(err) {
		return branches.Unknown(err)
	}
	return err
}

// Bounds of again. A transaction takes a few milliseconds: writers that failed
// together spread over the wait, and with full jitter do not meet again.
const (
	refusedTries = 100
	lostTries    = 3
	firstWait    = 2 * time.Millisecond
	lastWait     = 100 * time.Millisecond
)

// again repeats f while it is certain that it had no effect and that the next
// try may fare better.
func (g *Graph) again(ctx context.Context, f func() error) error {
	refused, lost := 0, 0
	for bound := firstWait; ; bound = min(2*bound, lastWait) {
		err := f()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil: // the driver's errors hide it
			return errors.Join(ctx.Err(), err)
		case branches.IsUnknown(err):
			return err
		case (IsOutdated(err) || IsFenced(err)) && !guard.Off(guard.Outdated):
			refused++
		case isConnectivity(err):
			lost++
		default:
			return err
		}
		if refused == refusedTries || lost == lostTries {
			return err
		}
		wait := rand.N(bound) //nolint:gosec // G404: jitter, not a secret
		if sleepErr := g.wall.Sleep(ctx, wait); sleepErr != nil {
			return errors.Join(sleepErr, err)
		}
	}
}

func isConnectivity(err error) bool {
	_, ok := errors.AsType[*neo4j.ConnectivityError](err)
	return ok
}

// Only is the one row of a result that has one.
func Only(rows [][]any, err error) ([]any, error) {
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("%d rows where there is one", len(rows))
	}
	return rows[0], nil
}
