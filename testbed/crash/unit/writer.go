package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/lease"
	"github.com/rhizodat/rhizodat-go/step"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
)

// leased puts what follows under the plan's lease, which must be free.
func leased(ctx context.Context, db *sql.DB, watch *observer) (context.Context, error) {
	if watch.plan.Lease == "" {
		return ctx, nil
	}
	l, err := lease.Acquire(ctx, db, watch.plan.Lease)
	if err != nil {
		return ctx, err
	}
	watch.reach(plan.PointGranted)
	return rhizodat.WithLease(ctx, l), nil
}

// said is what a unit's end tells the parent.
func said(ctx context.Context, outcome rhizodat.Outcome, err error, watch *observer) plan.Outcome {
	said := plan.Outcome{Verdict: outcome.Verdict.String(), Conflict: watch.conflict}
	if err != nil {
		said.Error = err.Error()
	}
	if l, ok := lease.FromContext(ctx); ok {
		said.Fence = int64(l.Fence())
	}
	_, said.Fenced = errors.AsType[*lease.Fenced](err)
	_, said.Superseded = errors.AsType[*step.Superseded](err)
	return said
}

// once runs the step, of which the value says who has recorded it.
func once(ctx context.Context, db *sql.DB, watch *observer) error {
	ctx, handle := rhizodat.Track(ctx)
	key := step.Key{Execution: watch.plan.Step, Label: "effect"}
	var value string
	var err error
	if watch.plan.Asks != "" {
		value, err = step.Do(ctx, db, key, func(ctx context.Context) (string, error) { return ask(ctx, watch) })
	} else {
		value, err = step.DoTx(ctx, db, key, func(ctx context.Context, tx *sql.Tx) (string, error) {
			txn := handle.Outcome().DatTxn.String()
			watch.parent.tell(plan.WordTxn + " " + txn)
			watch.reach(plan.PointClaimed)
			for _, statement := range watch.plan.Work {
				if err := work(ctx, tx, statement, txn); err != nil {
					return "", err
				}
			}
			watch.reach(plan.PointEffect)
			return txn, nil
		})
	}
	watch.reach(plan.PointRecorded)
	said := said(ctx, handle.Outcome(), err, watch)
	said.Value = value
	watch.parent.tell(said.Line())
	return nil
}

// ask is an effect on somebody who is no store.
func ask(ctx context.Context, watch *observer) (string, error) {
	watch.reach(plan.PointClaimed)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, watch.plan.Asks, nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &step.Transport{}}
	answer, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	receipt, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	watch.reach(plan.PointEffect)
	return fmt.Sprintf("%s by %d", receipt, os.Getpid()), nil
}
