package sqljournal

import (
	"context"
	"errors"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Removable implements journal.Compactor.
func (j *Journal) Removable(ctx context.Context, before time.Time, limit int) ([]journal.Record, error) {
	var list []journal.Record
	var damaged []error
	err := j.with(ctx, func(conn Conn, q *statements) error {
		res, err := single(ctx, conn, Read, Ask(q.removable, before.UnixMilli(), int64(limit)))
		if err != nil {
			return err
		}
		for _, row := range res.Rows {
			rec, err := decode(row, false)
			if err != nil {
				damaged = append(damaged, err)
				continue
			}
			list = append(list, rec)
		}
		return nil
	})
	return list, journal.Wrap("list removable journal records", errors.Join(append([]error{err}, damaged...)...))
}

// Remove implements journal.Compactor. The horizon rises in the transaction
// that deletes, to the newest of what it deletes: a final record stays final
// (J3), so what was read before it still holds.
func (j *Journal) Remove(ctx context.Context, txns []branches.TxnID) (int, error) {
	removed, err := j.batches(ctx, txns, func(conn Conn, q *statements, list string) (int64, error) {
		res, err := single(ctx, conn, Read, Ask(q.final, list))
		if err != nil || len(res.Rows) == 0 {
			return 0, err
		}
		ids := make([]string, len(res.Rows))
		var horizon int64
		var highest hlc.Time
		for i, row := range res.Rows {
			ids[i] = asText(row[0])
			txn, err := branches.ParseTxnID(ids[i])
			if err != nil {
				return 0, err
			}
			if born := txn.Time(); !born.IsZero() {
				horizon = max(horizon, born.UnixMilli())
			}
			at, err := asTime(row[1])
			if err != nil {
				return 0, err
			}
			highest = max(highest, at)
		}
		results, err := conn.Run(ctx, Forced,
			Do(q.raiseHorizon, horizon, int64(highest)),
			Do(q.remove, q.List(ids)))
		if err != nil {
			return 0, err
		}
		return results[1].Affected, nil
	})
	return removed, journal.Wrap("remove journal records", err)
}

// Horizon implements journal.Compactor.
func (j *Journal) Horizon(ctx context.Context) (time.Time, error) {
	ms, err := j.number(ctx, func(q *statements) string { return q.horizon })
	if err != nil || ms == 0 {
		return time.Time{}, journal.Wrap("read compaction horizon", err)
	}
	return time.UnixMilli(ms), nil
}

// HighWater implements journal.Timekeeper.
func (j *Journal) HighWater(ctx context.Context) (hlc.Time, error) {
	t, err := j.number(ctx, func(q *statements) string { return q.highWater })
	return hlc.Time(t), journal.Wrap("read journal's highest time", err)
}

// Clock implements journal.Timekeeper.
func (j *Journal) Clock(ctx context.Context) (time.Time, error) {
	ms, err := j.number(ctx, func(q *statements) string { return q.clock })
	if err != nil {
		return time.Time{}, journal.Wrap("read journal's clock", err)
	}
	return time.UnixMilli(ms), nil
}

func (j *Journal) number(ctx context.Context, text func(*statements) string) (n int64, err error) {
	err = j.with(ctx, func(conn Conn, q *statements) error {
		res, err := single(ctx, conn, Read, Ask(text(q)))
		if err != nil {
			return err
		}
		row, err := oneRow(res)
		if err != nil {
			return err
		}
		n, err = asInt[int64](row[0])
		return err
	})
	return n, err
}
