package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

var _ branches.Cleaner = (*Store)(nil)

// RemoveMarkers deletes the markers of txns.
func (s *Store) RemoveMarkers(ctx context.Context, txns []branches.TxnID) error {
	if len(txns) == 0 {
		return nil
	}
	_, err := s.deleteMarkers(ctx, "dat_txn = ANY ("+literalTxns(txns)+")")
	return s.explain("remove markers", err)
}

// RemoveMarkersBefore deletes at most limit markers of units that began and were
// staged before t, oldest first. A dat_txn begins with its time, so the primary
// key finds them. The marker's own time keeps that of a unit that was open for
// long: without it a lost answer to its COMMIT would be settled as "never".
func (s *Store) RemoveMarkersBefore(ctx context.Context, t time.Time, keep []branches.TxnID, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	names, err := s.known(ctx)
	if err != nil {
		return 0, s.explain("remove markers", err)
	}
	n, err := s.deleteMarkers(ctx, "dat_txn IN (SELECT dat_txn FROM "+names.applied+
		" WHERE dat_txn < "+literalTxn(firstAt(t))+
		" AND dat_tx_time < "+literalInt(int64(hlc.FromMillis(t.UnixMilli())))+
		" AND dat_txn <> ALL ("+literalTxns(keep)+")"+
		" ORDER BY dat_txn LIMIT "+literalInt(int64(limit))+")")
	return n, s.explain("remove markers", err)
}

func (s *Store) deleteMarkers(ctx context.Context, where string) (int, error) {
	var removed int64
	err := s.run(ctx, func(session *Session) error {
		names, err := s.knownBy(ctx, session)
		if err != nil {
			return err
		}
		got, err := ask(ctx, session.client(), ownTransaction("DELETE FROM "+names.applied+" WHERE "+where))
		removed = got.affected(ownFirst)
		return err
	})
	return int(removed), err
}

func literalTxns(txns []branches.TxnID) string {
	var b strings.Builder
	b.WriteString("'{")
	for i, txn := range txns {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(txn.String())
	}
	b.WriteString("}'::pg_catalog.uuid[]")
	return b.String()
}

// firstAt is below every UUIDv7 of t's millisecond and later, and above all
// earlier ones (RFC 9562, section 5.7).
func firstAt(t time.Time) branches.TxnID {
	var id branches.TxnID
	ms := max(t.UnixMilli(), 0)
	for i := 5; i >= 0; i-- {
		id[i] = byte(ms)
		ms >>= 8
	}
	return id
}
