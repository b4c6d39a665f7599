package clickhouse

import (
	"context"
	"strings"

	client "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Applied looks the marker of txn up.
func (s *Store) Applied(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	fate, err := s.lookUp(ctx, txn)
	return fate, s.fail("look up marker", err)
}

func (s *Store) lookUp(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	var rows uint64
	var latest int64
	_, err := s.row(ctx, "SELECT count(),max(dat_tx_time) FROM "+s.applied+" WHERE dat_txn="+literalTxn(txn), &rows, &latest)
	if err != nil {
		return branches.FateUnknown, err
	}
	return fateOf(rows, latest), nil
}

// fateOf reads the marker rows of a unit: 0 is a tombstone, anything above it a
// marker.
func fateOf(rows uint64, latest int64) branches.Fate {
	switch {
	case rows == 0:
		return branches.FateAbsent
	case latest > 0:
		return branches.FateApplied
	}
	return branches.FateNever
}

// noMarker is the condition that no marker of txn stands, nor a tombstone.
func (s *Store) noMarker(txn branches.TxnID) string {
	return "(SELECT count() FROM " + s.applied + " WHERE dat_txn=" + literalTxn(txn) + ")=0"
}

// mark writes the marker of a unit, or with time 0 its tombstone, where neither
// stands and all conditions hold, and tells which of them stands then: FateAbsent
// where a condition did not hold. All who write it for a branch do it under one
// query id, so the server runs them one after the other.
func (s *Store) mark(ctx context.Context, gid branches.GID, txn branches.TxnID, time hlc.Time, conditions ...string) (branches.Fate, error) {
	query := "INSERT INTO " + s.applied + " (dat_txn,dat_tx_time) SELECT " + literalTxn(txn) + "," + literalInt(int64(time)) +
		" FROM system.one WHERE " + strings.Join(append([]string{s.noMarker(txn)}, conditions...), " AND ")
	err := s.exclusive(ctx, string(gid)+":m", func(id string) error {
		return s.exec(ctx, query, options{id: id, settings: writes(gid)})
	})
	if err != nil && ctx.Err() != nil {
		return branches.FateUnknown, err
	}
	// Whatever the answer was: what stands there decides.
	fate, lookErr := s.lookUp(ctx, txn)
	if err == nil {
		err = lookErr
	}
	switch {
	case lookErr == nil && fate != branches.FateAbsent:
		return fate, nil
	case err != nil:
		return branches.FateUnknown, err
	case len(conditions) > 0:
		return branches.FateAbsent, nil
	}
	return branches.FateUnknown, errMarkerLost
}

// writes are the settings of every statement of ours that writes. An insert
// that the server collects for later would be counted as lost.
func writes(gid branches.GID) client.Settings {
	return client.Settings{"async_insert": 0, "log_comment": string(gid)}
}
