package drevo

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/internal/guard"
)

// The two ends of a prepared transaction, by autocommit and from any connection.
const (
	commitPrepared   = "CALL drevo.tx.commitPrepared($gid)"
	rollbackPrepared = "CALL drevo.tx.rollbackPrepared($gid)"
)

// Texts of their answers. Neither has a code of its own.
const (
	textUnknownGID = "no transaction is prepared as"
	textHeuristic  = "rolled back heuristically"
)

// Finish is what Store.Finish does: a prepared transaction belongs to no session.
func (b *Branch) Finish(ctx context.Context, ref branches.Ref) error {
	return b.session.store.Finish(ctx, ref)
}

// Finish commits the prepared transaction. nil is the server's own answer, or a
// marker that proves it was done before.
func (s *Store) Finish(ctx context.Context, ref branches.Ref) error {
	err := s.end(ctx, commitPrepared, ref)
	switch {
	case bolt.Says(err, textHeuristic):
		return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Evidence: "drevo says it rolled it back heuristically, by its timeout or an operator's word"}
	case !bolt.Says(err, textUnknownGID):
		return s.fail("finish branch", err)
	case guard.Off(guard.Exists):
		return nil
	}
	// Somebody has ended it. That alone is never success: the marker decides.
	fate, err := s.lookUp(ctx, ref.Txn)
	switch {
	case err != nil:
		return s.fail("finish branch", err)
	case fate == branches.FateApplied:
		return nil
	case fate == branches.FateNever:
		return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Evidence: "no prepared transaction, and a tombstone for a marker"}
	}
	return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Evidence: "no prepared transaction and no marker"}
}

// Abort rolls the prepared transaction back; what drevo rolled back heuristically
// agrees with that. That it is not there is success, unless its marker shows that
// it was committed.
func (s *Store) Abort(ctx context.Context, ref branches.Ref) error {
	err := s.end(ctx, rollbackPrepared, ref)
	if !bolt.Says(err, textUnknownGID) {
		return s.fail("abort branch", err)
	}
	fate, err := s.lookUp(ctx, ref.Txn)
	if err != nil {
		return s.fail("abort branch", err)
	}
	if fate == branches.FateApplied {
		return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Committed: true, Evidence: "its marker stands"}
	}
	return nil
}

// end calls a procedure on the prepared transaction. A call whose answer was lost
// may be made again: what it then finds is told by the marker.
func (s *Store) end(ctx context.Context, call string, ref branches.Ref) error {
	if _, err := branches.ParseGID(ref.GID.String()); err != nil {
		return err
	}
	if ref.GID.Txn() != ref.Txn {
		return errors.New("the gid belongs to another unit")
	}
	_, err := s.control.Read(ctx, call, map[string]any{"gid": ref.GID.String()})
	s.notice(err)
	if err == nil {
		s.pay(ctx)
	}
	return err
}
