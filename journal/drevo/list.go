package drevo

import (
	"context"
	"errors"
	"slices"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

const (
	// pageSize bounds what a listing holds in memory.
	pageSize = 500
	// batchSize bounds the ids of one transaction.
	batchSize = 1000
)

// Finish implements journal.Journal.
func (j *Journal) Finish(ctx context.Context, txns []branches.TxnID) (int, error) {
	changed, err := j.batches(ctx, txns, func(tx *bolt.Tx, batch []branches.TxnID) (total int, err error) {
		titles, done := j.words.titles(batch), map[string]any{"state": string(journal.StateDone)}
		for _, from := range journal.Sources(journal.StateDone) {
			params := map[string]any{"from": string(from), "done": done, "now": j.nowMS(), "titles": titles}
			for _, text := range []string{j.words.finish, j.words.finishLate} {
				if total == len(batch) {
					return total, nil
				}
				n, err := count(tx.Run(ctx, text, params))
				if err != nil {
					return 0, err
				}
				total += n
			}
		}
		return total, nil
	})
	return changed, journal.Wrap("finish journal records", err)
}

// batches calls f for some of txns at a time, each in a transaction of its own,
// and adds up what it changed.
func (j *Journal) batches(ctx context.Context, txns []branches.TxnID, f func(*bolt.Tx, []branches.TxnID) (int, error)) (int, error) {
	if len(txns) == 0 {
		return 0, nil
	}
	txns = slices.Clone(txns)
	slices.SortFunc(txns, func(a, b branches.TxnID) int { return slices.Compare(a[:], b[:]) })
	txns = slices.Compact(txns)
	total := 0
	err := j.with(ctx, func() error {
		for batch := range slices.Chunk(txns, batchSize) {
			n := 0
			err := j.write(ctx, func(tx *bolt.Tx) (err error) {
				if n, err = f(tx, batch); err == nil && n == 0 {
					err = errUnchanged
				}
				return err
			})
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
	return total, err
}

// titles are the records' of txns, as a parameter.
func (w *words) titles(txns []branches.TxnID) []any {
	list := make([]any, len(txns))
	for i, txn := range txns {
		list[i] = w.title(txn)
	}
	return list
}

// Scan implements journal.Journal. A record that cannot be read does not hide
// the others: it is reported as *journal.Damaged when all were listed.
func (j *Journal) Scan(ctx context.Context, filter journal.Filter, f func(journal.Record) error) error {
	if len(filter.States) == 0 {
		return nil
	}
	var damaged []error
	err := j.with(ctx, func() error {
		left, after := filter.Limit, ""
		if !filter.After.IsZero() {
			after = filter.After.String()
		}
		for {
			page := pageSize
			if filter.Limit > 0 {
				page = min(page, left)
			}
			rows, err := j.scan(ctx, filter, after, page)
			if err != nil {
				return err
			}
			bad, err := each(rows, f)
			if err != nil {
				return err
			}
			damaged = append(damaged, bad...)
			if left -= len(rows); len(rows) < page || filter.Limit > 0 && left <= 0 {
				return nil
			}
			after = asText(rows[len(rows)-1][0])
		}
	})
	return journal.Wrap("list journal records", errors.Join(append([]error{err}, damaged...)...))
}

// scan reads one page. Only what was asked for is asked: a record whose property
// is no number is below and above nothing, and would not be reported.
// dat_txn is a UUIDv7: its order is the order of birth.
func (j *Journal) scan(ctx context.Context, filter journal.Filter, after string, page int) ([][]any, error) {
	text := j.words.scan
	params := map[string]any{"states": texts(filter.States...), "limit": int64(page)}
	also := func(condition, name string, value any) {
		text += ` AND j.` + condition + ` $` + name
		params[name] = value
	}
	if !filter.UpdatedBefore.IsZero() {
		also(`updated_ms <`, `before`, filter.UpdatedBefore.UnixMilli())
	}
	if filter.TxTimeAbove > 0 {
		also(`dat_tx_time >`, `above`, int64(filter.TxTimeAbove))
	}
	if after != "" {
		also(`dat_txn >`, `after`, after)
	}
	return j.graph.Read(ctx, text+j.words.scanned, params)
}

// each calls f for the records of a listing that can be read, and returns what is
// wrong with the others.
func each(rows [][]any, f func(journal.Record) error) (damaged []error, err error) {
	for _, row := range rows {
		rec, err := decode(row)
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		if err := f(rec.Record); err != nil {
			return damaged, err
		}
	}
	return damaged, nil
}
