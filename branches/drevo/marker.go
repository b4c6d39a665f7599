package drevo

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// The marker is format (docs/drevo.md): label DatApplied, title DatApplied:<dat_txn>,
// properties dat_txn and dat_tx_time; a dat_tx_time of 0 is a tombstone: this unit
// never commits here.
const (
	markerLabel  = "DatApplied"
	createMarker = "CREATE (:DatApplied {title: $title, dat_txn: $txn, dat_tx_time: $time})"
	findMarker   = "MATCH (m:DatApplied {title: $title}) RETURN m.dat_tx_time AS time"
)

func markerTitle(txn branches.TxnID) string { return markerLabel + ":" + txn.String() }

func markerParams(txn branches.TxnID, time hlc.Time) map[string]any {
	return map[string]any{"title": markerTitle(txn), "txn": txn.String(), "time": int64(time)}
}

// Applied looks the marker of txn up.
func (s *Store) Applied(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	fate, err := s.lookUp(ctx, txn)
	return fate, s.fail("look up marker", err)
}

func (s *Store) lookUp(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	rows, err := s.control.Read(ctx, findMarker, map[string]any{"title": markerTitle(txn)})
	if err != nil {
		return branches.FateUnknown, err
	}
	return fateOf(rows)
}

var errMarkerUnread = errors.New("the marker could not be read")

func fateOf(rows [][]any) (branches.Fate, error) {
	if len(rows) == 0 {
		return branches.FateAbsent, nil
	}
	row, err := bolt.Only(rows, nil)
	if err != nil {
		return branches.FateUnknown, err
	}
	time, ok := row[0].(int64)
	switch {
	case !ok || time < 0:
		return branches.FateUnknown, errMarkerUnread
	case time == 0:
		return branches.FateNever, nil
	}
	return branches.FateApplied, nil
}

// harden makes a marker that was only read as durable as one whose COMMIT was
// answered. drevo, when it starts on a log whose last record lacks nothing but its
// newline, takes the record and writes the next one behind it on the same line; at
// the start after that it drops both. So two records follow: with the second one on
// a line of its own the server refuses to start, which is not silent.
func (s *Store) harden(ctx context.Context) error {
	for range 2 {
		if err := s.control.Write(ctx, func(tx *bolt.Tx) error {
			_, err := bolt.Only(tx.Run(ctx, beat, nil))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

const beat = "MATCH (m:DatMeta {title: 'DatMeta'}) SET m.beat = coalesce(m.beat, 0) + 1 RETURN m.beat"

// errStands ends the transaction of Settle where a marker is there already: its
// COMMIT would be refused by the fence for nothing.
var errStands = errors.New("a marker stands")

// Settle writes a tombstone under the marker's own title and commits it. A COMMIT
// of the unit that is still under way and this one refuse each other: the graph
// has changed for whoever comes second. After "write-ahead log write failed" the
// server refuses this until it is restarted, and what it then finds in its log is
// the answer.
func (s *Store) Settle(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	if guard.Off(guard.Marker) {
		return branches.FateNever, nil
	}
	fate := branches.FateUnknown
	err := s.control.Write(ctx, func(tx *bolt.Tx) error {
		rows, err := tx.Run(ctx, findMarker, map[string]any{"title": markerTitle(txn)})
		if err != nil {
			return err
		}
		if fate, err = fateOf(rows); err != nil {
			return err
		}
		if fate != branches.FateAbsent {
			return errStands
		}
		_, err = tx.Run(ctx, createMarker, markerParams(txn, 0))
		return err
	})
	switch {
	case err == nil:
		return branches.FateNever, nil
	case !errors.Is(err, errStands):
	case fate == branches.FateNever:
		return fate, nil
	default:
		if err = s.harden(ctx); err == nil {
			return s.Applied(ctx, txn)
		}
	}
	s.notice(err)
	return branches.FateUnknown, s.fail("settle commit", err)
}
