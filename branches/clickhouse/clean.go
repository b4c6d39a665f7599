package clickhouse

import (
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

var _ branches.Cleaner = (*Store)(nil)

// RemoveMarkers deletes the markers of txns, in one statement: each DELETE writes
// a part anew.
func (s *Store) RemoveMarkers(ctx context.Context, txns []branches.TxnID) error {
	if len(txns) == 0 {
		return nil
	}
	return s.fail("remove markers", s.exec(ctx, "DELETE FROM "+s.applied+" WHERE dat_txn IN ("+txnList(txns)+")",
		options{settings: map[string]any{"mutations_sync": 2}}))
}

func txnList(txns []branches.TxnID) string {
	texts := make([]string, len(txns))
	for i, txn := range txns {
		texts[i] = literalTxn(txn)
	}
	return strings.Join(texts, ",")
}

// RemoveMarkersBefore deletes at most limit markers of units that began and were
// staged before t, oldest first. A dat_txn begins with its time; ClickHouse orders a UUID by its
// second half, so it is the text that is compared.
func (s *Store) RemoveMarkersBefore(ctx context.Context, t time.Time, keep []branches.TxnID, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	query := "SELECT DISTINCT toString(dat_txn) AS txn FROM " + s.applied + " WHERE txn<'" + firstOf(t).String() + "'" +
		" AND dat_tx_time<" + strconv.FormatInt(int64(hlc.FromMillis(t.UnixMilli())), 10)
	if len(keep) > 0 {
		query += " AND dat_txn NOT IN (" + txnList(keep) + ")"
	}
	var old []branches.TxnID
	err := s.each(ctx, query+" ORDER BY txn LIMIT "+decimalText(limit), func(scan func(...any) error) error {
		var text string
		if err := scan(&text); err != nil {
			return err
		}
		txn, err := branches.ParseTxnID(text)
		old = append(old, txn)
		return err
	})
	if err == nil {
		err = s.RemoveMarkers(ctx, old)
	}
	if err != nil {
		return 0, s.fail("remove markers", err)
	}
	return len(old), nil
}

// firstOf is the smallest id of a millisecond.
func firstOf(t time.Time) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(max(t.UnixMilli(), 0))<<16)
	return id
}
