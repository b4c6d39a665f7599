package drevo

import (
	"context"
	"errors"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
)

var _ branches.Cleaner = (*Store)(nil)

const (
	deleteMarkers = "MATCH (m:DatApplied) WHERE m.title IN $titles DELETE m"
	oldMarkers    = "MATCH (m:DatApplied) WHERE m.dat_txn < $first AND m.dat_tx_time < $time AND NOT m.dat_txn IN $keep" +
		" RETURN m.title AS title, m.dat_txn AS txn ORDER BY txn LIMIT $limit"
)

// RemoveMarkers deletes the markers of txns.
func (s *Store) RemoveMarkers(ctx context.Context, txns []branches.TxnID) error {
	if len(txns) == 0 {
		return nil
	}
	titles := make([]any, len(txns))
	for i, txn := range txns {
		titles[i] = markerTitle(txn)
	}
	err := s.control.Write(ctx, func(tx *bolt.Tx) error {
		_, err := tx.Run(ctx, deleteMarkers, map[string]any{"titles": titles})
		return err
	})
	return s.fail("remove markers", err)
}

// RemoveMarkersBefore deletes at most limit markers of units that began and were
// staged before t, oldest first. The marker's own time keeps that of a unit that
// was open for long: without it a lost answer to its COMMIT would be settled as
// "never".
func (s *Store) RemoveMarkersBefore(ctx context.Context, t time.Time, keep []branches.TxnID, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	kept := make([]any, len(keep))
	for i, txn := range keep {
		kept[i] = txn.String()
	}
	removed := 0
	err := s.control.Write(ctx, func(tx *bolt.Tx) error {
		rows, err := tx.Run(ctx, oldMarkers, map[string]any{
			"first": firstAt(t).String(), "time": int64(hlc.FromMillis(t.UnixMilli())), "keep": kept, "limit": int64(limit),
		})
		if err != nil {
			return err
		}
		if removed = len(rows); removed == 0 {
			return errSettled
		}
		titles := make([]any, len(rows))
		for i, row := range rows {
			titles[i] = row[0]
		}
		_, err = tx.Run(ctx, deleteMarkers, map[string]any{"titles": titles})
		return err
	})
	if err != nil && !errors.Is(err, errSettled) {
		return 0, s.fail("remove markers", err)
	}
	return removed, nil
}

// firstAt is below every UUIDv7 of t's millisecond and later, and above all
// earlier ones (RFC 9562, section 5.7); their texts sort as they do.
func firstAt(t time.Time) branches.TxnID {
	var id branches.TxnID
	ms := max(t.UnixMilli(), 0)
	for i := 5; i >= 0; i-- {
		id[i] = byte(ms)
		ms >>= 8
	}
	return id
}
