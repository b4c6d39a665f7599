package drevo

import (
	"context"
	"slices"

	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/internal/places"
)

// Leases implements journal.Conditional.
func (j *Journal) Leases(ctx context.Context) (journal.Leases, error) {
	return leases{j}, journal.Wrap("open leases", j.prove(ctx))
}

// Steps implements journal.Conditional.
func (j *Journal) Steps(ctx context.Context) (journal.Steps, error) {
	return steps{j}, journal.Wrap("open steps", j.prove(ctx))
}

// prove probes the conditional writes, once. A journal that commits and keeps
// neither leases nor steps is never asked.
func (j *Journal) prove(ctx context.Context) error {
	select {
	case j.proving <- struct{}{}:
		defer func() { <-j.proving }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if j.proved {
		return nil
	}
	if err := journal.Probe(ctx, leases{j}, steps{j}); err != nil {
		return err
	}
	j.proved = true
	return nil
}

// attempt is the one conditional write of leases and steps: f reads what stands,
// and reports whether it has changed it. Expiry is judged by the server's clock as
// f has read it: whoever changes the node before COMMIT makes the COMMIT fail.
func (j *Journal) attempt(ctx context.Context, f func(tx *bolt.Tx) (won bool, err error)) (journal.Answer, error) {
	won := false
	err := j.with(ctx, func() error { return j.tryWrite(ctx, &won, f) })
	return journal.AnswerOf(won, err), err
}

func (j *Journal) tryWrite(ctx context.Context, won *bool, f func(tx *bolt.Tx) (bool, error)) error {
	return j.write(ctx, func(tx *bolt.Tx) (err error) {
		if *won, err = f(tx); err == nil && !*won {
			err = errUnchanged
		}
		return err
	})
}

// renewal is what Renew works out for one grant or claim.
type renewal struct {
	title   string
	untilMS int64 // the new expiry
}

// renew sets the expiries of those that stand. find reads the nodes in question
// and returns which of n still stand. All are one transaction, over the place that
// is kept for renewals alone: neither a commit nor a sweep may make a lease lapse.
func (j *Journal) renew(ctx context.Context, n int, find func(tx *bolt.Tx) (map[int]renewal, error), set string) ([]journal.Answer, error) {
	answers := make([]journal.Answer, n)
	if n == 0 {
		return answers, nil
	}
	release, err := j.places.Reserved(ctx, places.Renewals)
	if err != nil {
		return answers, err
	}
	defer release()
	if err := j.ready(ctx); err != nil {
		return answers, err
	}
	var standing map[int]renewal
	err = j.write(ctx, func(tx *bolt.Tx) (err error) {
		if standing, err = find(tx); err != nil {
			return err
		}
		if len(standing) == 0 {
			return errUnchanged
		}
		for until, titles := range byExpiry(standing) {
			changed, err := count(tx.Run(ctx, set, map[string]any{"titles": titles, "until": until}))
			if err != nil {
				return err
			}
			if changed != len(titles) {
				return errCount
			}
		}
		return nil
	})
	if err != nil {
		return answers, err
	}
	for i := range answers {
		_, won := standing[i]
		answers[i] = journal.AnswerOf(won, nil)
	}
	return answers, nil
}

// byExpiry puts together what one statement can set, each title once: inside a
// transaction every statement looks at all nodes of the graph.
func byExpiry(standing map[int]renewal) map[int64][]any {
	groups := map[int64][]any{}
	for _, r := range standing {
		if !slices.Contains(groups[r.untilMS], any(r.title)) {
			groups[r.untilMS] = append(groups[r.untilMS], r.title)
		}
	}
	return groups
}

// checkConditions are those of S7 beside the record's state, in the transaction
// of S7 itself. A grant that comes in between makes its COMMIT fail.
func (j *Journal) checkConditions(ctx context.Context, tx *bolt.Tx, d journal.Decision) error {
	if d.Lease != "" && !guard.Off(guard.Fence) {
		stands, found, err := j.findLease(ctx, tx, d.Lease)
		if err != nil {
			return err
		}
		if !found || stands.Fence != d.Fence {
			return &journal.Fenced{Lease: d.Lease, Fence: d.Fence, Current: stands.Fence}
		}
	}
	if d.Step == nil {
		return nil
	}
	won, err := j.recordStep(ctx, tx, *d.Step)
	if err == nil && !won {
		err = &journal.Superseded{Key: d.Step.Key}
	}
	return err
}
