package postgres

import (
	"context"
	"errors"
	"strconv"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// Applied looks the marker of txn up, on the primary.
func (s *Store) Applied(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	fate := branches.FateUnknown
	err := s.run(ctx, func(session *Session) (err error) {
		fate, err = s.lookUp(ctx, session, txn)
		return err
	})
	return fate, s.explain("look up marker", err)
}

func (s *Store) lookUp(ctx context.Context, session *Session, txn branches.TxnID) (branches.Fate, error) {
	names, err := s.knownBy(ctx, session)
	if err != nil {
		return branches.FateUnknown, err
	}
	got, err := ask(ctx, session.client(), ownTransaction(names.selectMarker(txn)))
	if err != nil {
		return branches.FateUnknown, err
	}
	return fateOf(got.rows(ownFirst))
}

func (t *tables) selectMarker(txn branches.TxnID) string {
	return "SELECT dat_tx_time FROM " + t.applied + " WHERE dat_txn=" + literalTxn(txn)
}

var errMarkerUnread = errors.New("the marker could not be read")

// fateOf reads a marker: 0 is a tombstone.
func fateOf(rows [][][]byte) (branches.Fate, error) {
	if len(rows) == 0 {
		return branches.FateAbsent, nil
	}
	txTime, err := strconv.ParseInt(string(rows[0][0]), 10, 64)
	switch {
	case err != nil || txTime < 0:
		return branches.FateUnknown, errMarkerUnread
	case txTime == 0:
		return branches.FateNever, nil
	}
	return branches.FateApplied, nil
}

// Settle writes a tombstone under the marker's own key, durably. It blocks
// behind a backend that is still committing the unit, since both insert the
// same key. Its row: the unit can never commit. A conflict: what stands there
// says what has happened. Any other answer proves nothing.
func (s *Store) Settle(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	if guard.Off(guard.Marker) {
		return branches.FateNever, nil
	}
	fate := branches.FateUnknown
	err := s.run(ctx, func(session *Session) (err error) {
		fate, err = s.settle(ctx, session, txn)
		return err
	})
	return fate, s.explain("settle commit", err)
}

func (s *Store) settle(ctx context.Context, session *Session, txn branches.TxnID) (branches.Fate, error) {
	names, err := s.knownBy(ctx, session)
	if err != nil {
		return branches.FateUnknown, err
	}
	session.unsynced = false
	got, err := ask(ctx, session.client(), ownTransaction(
		// The wait is the point; the caller's context bounds it.
		"SET LOCAL lock_timeout=0",
		forced,
		"INSERT INTO "+names.applied+" (dat_txn,dat_tx_time) VALUES ("+literalTxn(txn)+",0) ON CONFLICT (dat_txn) DO NOTHING",
		names.selectMarker(txn), // READ COMMITTED: sees what the conflict was with
	))
	switch {
	case err != nil:
		return branches.FateUnknown, err
	case session.unsynced:
		return branches.FateUnknown, errUnsynced
	case got.last() != tagCommit:
		return branches.FateUnknown, errMarkerUnread
	}
	fate, err := fateOf(got.rows(ownFirst + 3))
	if fate == branches.FateAbsent {
		return branches.FateUnknown, errMarkerUnread
	}
	return fate, err
}
