package drevo

import (
	"context"
	"errors"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Removable implements journal.Compactor.
func (j *Journal) Removable(ctx context.Context, before time.Time, limit int) ([]journal.Record, error) {
	var list []journal.Record
	var damaged []error
	err := j.with(ctx, func() error {
		rows, err := j.graph.Read(ctx, j.words.removable, map[string]any{
			"states": texts(finals()...), "before": before.UnixMilli(), "limit": int64(limit),
		})
		if err != nil {
			return err
		}
		damaged, err = each(rows, func(rec journal.Record) error {
			list = append(list, rec)
			return nil
		})
		return err
	})
	return list, journal.Wrap("list removable journal records", errors.Join(append([]error{err}, damaged...)...))
}

// Remove implements journal.Compactor. The horizon rises in the transaction that
// deletes.
func (j *Journal) Remove(ctx context.Context, txns []branches.TxnID) (int, error) {
	removed, err := j.batches(ctx, txns, func(tx *bolt.Tx, batch []branches.TxnID) (int, error) {
		rows, err := tx.Run(ctx, j.words.removing, map[string]any{"states": texts(finals()...), "titles": j.words.titles(batch)})
		if err != nil || len(rows) == 0 {
			return 0, err
		}
		gone, err := j.removal(rows)
		if err != nil {
			return 0, err
		}
		meta, err := j.metaIn(ctx, tx)
		if err != nil {
			return 0, err
		}
		if err := j.setMeta(ctx, tx, map[string]any{
			"horizon_ms": max(meta.horizonMS, gone.horizonMS), "hlc": int64(max(meta.hlc, gone.highest)),
		}); err != nil {
			return 0, err
		}
		if len(gone.payloads) > 0 {
			if _, err := tx.Run(ctx, j.words.removePayloads, map[string]any{"payloads": gone.payloads}); err != nil {
				return 0, err
			}
		}
		_, err = tx.Run(ctx, j.words.remove, map[string]any{"titles": gone.titles})
		return len(gone.titles), err
	})
	return removed, journal.Wrap("remove journal records", err)
}

// removal is what one transaction removes.
type removal struct {
	titles, payloads []any
	horizonMS        int64    // birth of the newest
	highest          hlc.Time // of their dat_tx_time
}

func (j *Journal) removal(rows [][]any) (r removal, err error) {
	for _, row := range rows {
		txn, err := branches.ParseTxnID(asText(row[1]))
		if err != nil {
			return r, err
		}
		at, err := asInt[hlc.Time](row[2])
		if err != nil {
			return r, err
		}
		r.titles = append(r.titles, row[0])
		if has, _ := row[3].(bool); has {
			r.payloads = append(r.payloads, j.words.payloadTitle(txn))
		}
		if born := txn.Time(); !born.IsZero() {
			r.horizonMS = max(r.horizonMS, born.UnixMilli())
		}
		r.highest = max(r.highest, at)
	}
	return r, nil
}
