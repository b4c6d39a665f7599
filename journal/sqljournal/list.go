package sqljournal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/journal"
)

const (
	// pageSize bounds what a listing holds in memory.
	pageSize = 500
	// batchSize bounds the ids of one statement.
	batchSize = 1000
)

// Finish implements journal.Journal.
func (j *Journal) Finish(ctx context.Context, txns []branches.TxnID) (int, error) {
	changed, err := j.batches(ctx, txns, func(conn Conn, q *statements, list string) (int64, error) {
		res, err := single(ctx, conn, Unforced, Do(q.finish, list, j.nowMS()))
		return res.Affected, err
	})
	return changed, journal.Wrap("finish journal records", err)
}

// batches calls f with encoded lists of ids, sorted: two workers that finish
// the same records meet in one order and do not deadlock.
func (j *Journal) batches(ctx context.Context, txns []branches.TxnID, f func(Conn, *statements, string) (int64, error)) (int, error) {
	if len(txns) == 0 {
		return 0, nil
	}
	ids := make([]string, len(txns))
	for i, txn := range txns {
		ids[i] = txn.String()
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	total := 0
	err := j.with(ctx, func(conn Conn, q *statements) error {
		for batch := range slices.Chunk(ids, batchSize) {
			n, err := f(conn, q, q.List(batch))
			if err != nil {
				return err
			}
			total += int(n)
		}
		return nil
	})
	return total, err
}

// Scan implements journal.Journal. A record that cannot be read does not hide
// the others: it is reported as *journal.Damaged when all were listed.
func (j *Journal) Scan(ctx context.Context, filter journal.Filter, f func(journal.Record) error) error {
	if len(filter.States) == 0 {
		return nil
	}
	var damaged []error
	err := j.with(ctx, func(conn Conn, q *statements) error {
		left, after := filter.Limit, filter.After
		for {
			page := pageSize
			if filter.Limit > 0 {
				page = min(page, left)
			}
			res, err := single(ctx, conn, Read, q.scan(filter, after, page))
			if err != nil {
				return err
			}
			for _, row := range res.Rows {
				rec, err := decode(row, false)
				var bad *journal.Damaged
				if errors.As(err, &bad) {
					damaged = append(damaged, err)
				} else if err == nil {
					err = f(rec)
				}
				if err != nil && bad == nil {
					return err
				}
			}
			if left -= len(res.Rows); len(res.Rows) < page || filter.Limit > 0 && left <= 0 {
				return nil
			}
			last := asText(res.Rows[len(res.Rows)-1][0])
			if after, err = branches.ParseTxnID(last); err != nil {
				return err
			}
		}
	})
	return journal.Wrap("list journal records", errors.Join(append([]error{err}, damaged...)...))
}

// scan writes only the conditions that were asked for, so that each text has a
// plan by the index that serves it. dat_txn is a UUIDv7: its order is the order
// of birth.
func (q *statements) scan(filter journal.Filter, after branches.TxnID, page int) Stmt {
	s := Stmt{Rows: true}
	param := func(v any) string {
		s.Args = append(s.Args, v)
		return fmt.Sprintf("$%d", len(s.Args))
	}
	var where strings.Builder
	where.WriteString(`state ` + inStates(filter.States...))
	if !filter.UpdatedBefore.IsZero() {
		where.WriteString(` AND updated_ms < CAST(` + param(filter.UpdatedBefore.UnixMilli()) + ` AS bigint)`)
	}
	if filter.TxTimeAbove > 0 {
		where.WriteString(` AND dat_tx_time > CAST(` + param(int64(filter.TxTimeAbove)) + ` AS bigint)`)
	}
	if !after.IsZero() {
		where.WriteString(` AND dat_txn > CAST(` + param(after.String()) + ` AS {uuid})`)
	}
	limit := param(int64(page))
	s.Text = q.text(`SELECT {columns} {light} FROM {journal} WHERE ` + where.String() +
		` ORDER BY dat_txn LIMIT CAST(` + limit + ` AS bigint)`)
	return s
}

// Harden implements journal.Journal.
func (j *Journal) Harden(ctx context.Context) error {
	return journal.Wrap("harden journal", j.with(ctx, func(conn Conn, q *statements) error { return j.harden(ctx, conn, q) }))
}

// harden changes a row and nothing in it. A forced transaction that wrote
// nothing would be acknowledged without a flush (PostgreSQL, xact.c).
func (j *Journal) harden(ctx context.Context, conn Conn, q *statements) error {
	if guard.Off(guard.Forced) {
		return nil
	}
	res, err := single(ctx, conn, Forced, Do(q.harden))
	if err != nil {
		return err
	}
	if ok, err := hit(res); err != nil || !ok {
		return errors.Join(err, branches.ErrNotInstalled)
	}
	return nil
}
