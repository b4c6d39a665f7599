package sqljournal

import (
	"context"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/internal/places"
)

// RowLocks are the clauses that lock the rows of a SELECT; empty where one
// writer at a time makes them needless.
type RowLocks struct {
	// Share keeps the key of a row, its fence, from changing until the
	// transaction ends, and lets other changes pass: renewals.
	Share string
	// Hold keeps the row from changing.
	Hold string
	// Seize and Touch lock the rows that nobody has locked, and leave the others
	// out: Seize for a change of the key, which waits for no commit that shares
	// it, Touch for any other.
	Seize, Touch string
}

// Leases implements journal.Conditional.
func (j *Journal) Leases(context.Context) (journal.Leases, error) { return leases{j: j}, nil }

// Steps implements journal.Conditional.
func (j *Journal) Steps(context.Context) (journal.Steps, error) { return steps{j: j}, nil }

// prove probes the conditional writes before the first of them. A journal that
// commits and keeps neither leases nor steps is never asked. probing is the
// probe itself.
func (j *Journal) prove(ctx context.Context, probing bool) error {
	if probing {
		return nil
	}
	select {
	case j.proving <- struct{}{}:
		defer func() { <-j.proving }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if j.proved {
		return nil
	}
	if err := journal.Probe(ctx, leases{j, true}, steps{j, true}); err != nil {
		return err
	}
	j.proved = true
	return nil
}

// attempt is the one conditional write of leases and steps: one forced statement
// whose affected-row count is the answer. A statement with RETURNING gives its
// row where it won.
func attempt(ctx context.Context, conn Conn, s Stmt) ([]any, journal.Answer, error) {
	res, err := single(ctx, conn, Forced, s)
	if err != nil {
		return nil, journal.AnswerUnknown, err
	}
	won, err := hit(res)
	if err != nil || !won || !s.Rows {
		return nil, journal.AnswerOf(won, err), err
	}
	row, err := oneRow(res)
	return row, journal.AnswerOf(true, err), err
}

// attempt attempts a statement without RETURNING over a place of its own.
func (j *Journal) attempt(ctx context.Context, probing bool, stmt func(*statements) Stmt) (answer journal.Answer, err error) {
	if err := j.prove(ctx, probing); err != nil {
		return journal.AnswerUnknown, err
	}
	err = j.with(ctx, func(conn Conn, q *statements) (err error) {
		_, answer, err = attempt(ctx, conn, stmt(q))
		return err
	})
	return answer, err
}

// keep is with, over the place that is kept for renewals alone: neither a commit
// nor a sweep may make a lease lapse.
func (j *Journal) keep(ctx context.Context, f func(conn Conn, q *statements) error) error {
	conn, err := j.pool.Reserved(ctx, places.Renewals)
	if err != nil {
		return err
	}
	defer conn.Release()
	q, err := j.ready(ctx, conn)
	if err != nil {
		return err
	}
	return f(conn, q)
}

// renew runs a renewal of n rows, and where some were left out asks why: each
// row of why is a key, and whether what was to be renewed still stands there.
func (j *Journal) renew(ctx context.Context, probing bool, n int, index func(row []any) (int, error), renew, why func(*statements) Stmt) ([]journal.Answer, error) {
	answers := make([]journal.Answer, n)
	if n == 0 {
		return answers, nil
	}
	err := j.prove(ctx, probing)
	if err != nil {
		return answers, err
	}
	err = j.keep(ctx, func(conn Conn, q *statements) error {
		res, err := single(ctx, conn, Forced, renew(q))
		if err != nil {
			return err
		}
		if len(res.Rows) > n {
			return fmt.Errorf("%d rows were renewed of %d", len(res.Rows), n)
		}
		for _, row := range res.Rows {
			i, err := index(row)
			if err != nil {
				return err
			}
			answers[i] = journal.AnswerWon
		}
		if len(res.Rows) == n {
			return nil
		}
		// Which of those left out still stand: they were locked for a moment.
		if res, err = single(ctx, conn, Read, why(q)); err != nil {
			return nil //nolint:nilerr // the renewals are acknowledged all the same
		}
		stands := make([]bool, n)
		for _, row := range res.Rows {
			i, err := index(row)
			if err != nil {
				return err
			}
			stands[i] = true
		}
		for i := range answers {
			if answers[i] == journal.AnswerUnknown && !stands[i] {
				answers[i] = journal.AnswerLost
			}
		}
		return nil
	})
	if err != nil {
		return make([]journal.Answer, n), err
	}
	return answers, nil
}

// asked checks the index of a row that the database answered for.
func asked(i int) (int, error) {
	if i < 0 {
		return 0, errors.New("the database answered for a row that was not asked for")
	}
	return i, nil
}
