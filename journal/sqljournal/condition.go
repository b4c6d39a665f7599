package sqljournal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/journal"
)

// decideUnder is S7 on conditions beside the record's state.
//
// Under a lease it locks, in its own statement, the lease's row that still
// carries the fence. A look without the lock is write skew: another holder was
// granted the next fence and told so, and then the earlier one committed (seen).
// With it an acquirer finds the row locked, or S7 waits for the acquirer and
// finds another fence. Renewals pass: they change no key.
//
// With a step it also locks the claim, and a second statement of the same
// transaction records the value where S7 has applied. Both apply or neither
// does: a claim that S7 has locked cannot change in between, and without S7 the
// record is not COMMITTED.
func (q *statements) decideUnder(d journal.Decision, nowMS int64) []Stmt {
	args := []any{d.Txn.String(), nowMS, int64(d.TxTime)}
	param := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	var locks []string
	condition := `dat_txn = CAST($1 AS {uuid})` + expecting(expected(d)...)
	if d.Lease != "" && !guard.Off(guard.Fence) {
		share := `{share}`
		if guard.Off(guard.FenceLock) {
			share = ``
		}
		locks = append(locks, `granted AS MATERIALIZED (SELECT 1 AS one FROM {lease}
			WHERE name = CAST(`+param(d.Lease)+` AS text) AND fence = CAST(`+param(int64(d.Fence))+` AS bigint)`+share+`)`)
		condition += ` AND EXISTS (SELECT 1 FROM granted)`
	}
	if d.Step != nil {
		k := d.Step.Key
		locks = append(locks, `claimed AS MATERIALIZED (SELECT 1 AS one FROM {step}
			WHERE execution = CAST(`+param(k.Execution)+` AS text) AND label = CAST(`+param(k.Label)+` AS text)
			AND input = CAST(`+param(k.Input)+` AS text) AND token = CAST(`+param(d.Step.Token)+` AS text)
			AND value IS NULL{hold})`)
		condition += ` AND EXISTS (SELECT 1 FROM claimed)`
	}
	with := ``
	if len(locks) > 0 {
		with = `WITH ` + strings.Join(locks, `, `) + ` `
	}
	// S6 may have been written: to write its time again changes nothing.
	decide := Do(q.text(with)+q.change(journal.StateCommitted,
		`, dat_tx_time = {greatest}(coalesce(dat_tx_time, 0), CAST($3 AS bigint))`, condition), args...)
	if d.Step == nil {
		return []Stmt{decide}
	}
	return []Stmt{decide, q.recordStep(*d.Step, q.step.recordDecided, d.Txn.String())}
}

// decided is S7 on the record's state alone.
func (q *statements) decided(d journal.Decision, nowMS int64) Stmt {
	if d.WithPrepare {
		return Do(q.prepareAndDecide, d.Txn.String(), nowMS, int64(d.TxTime))
	}
	return Do(q.decide, d.Txn.String(), nowMS)
}

// expected are the states that S7 writes, with S6 where it goes before it.
func expected(d journal.Decision) []journal.State {
	if d.WithPrepare {
		return []journal.State{journal.StatePrepared, journal.StateCommitted}
	}
	return []journal.State{journal.StateCommitted}
}

// decideUnder runs it.
func (s *session) decideUnder(ctx context.Context, q *statements, d journal.Decision) error {
	results, err := s.conn.Run(ctx, Forced, q.decideUnder(d, s.j.nowMS())...)
	if err != nil {
		return err
	}
	won := 0
	for _, res := range results {
		ok, err := hit(res)
		if err != nil {
			return err
		}
		if ok {
			won++
		}
	}
	switch won {
	case len(results):
		return nil
	case 0:
		return s.refused(ctx, q, d)
	}
	return errors.New("the record was decided and its step not recorded: is a trigger or a policy on the table?")
}

// refused finds out which condition of S7 did not hold. That it lost is known
// without it.
func (s *session) refused(ctx context.Context, q *statements, d journal.Decision) error {
	conflict := &journal.Conflict{Txn: d.Txn, To: journal.StateCommitted}
	found, err := stateOf(ctx, s.conn, q, d.Txn)
	if err != nil {
		return conflict
	}
	conflict.Found = found
	open := func(to journal.State) bool { return slices.Contains(journal.Sources(to), found) }
	if !slices.ContainsFunc(expected(d), open) {
		return conflict
	}
	if d.Lease != "" {
		stands, err := getLease(ctx, s.conn, q, d.Lease)
		if errors.Is(err, journal.ErrNotFound) || err == nil && stands.Fence != d.Fence {
			return &journal.Fenced{Lease: d.Lease, Fence: d.Fence, Current: stands.Fence}
		}
	}
	if d.Step != nil {
		stands, err := getStep(ctx, s.conn, q, d.Step.Key)
		if errors.Is(err, journal.ErrNotFound) || err == nil && (stands.Recorded || stands.Token != d.Step.Token) {
			return &journal.Superseded{Key: d.Step.Key}
		}
	}
	return conflict
}
