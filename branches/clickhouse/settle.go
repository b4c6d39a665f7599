package clickhouse

import (
	"context"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
)

// Settle ends the doubt about a one-phase commit. An attempt that still runs is
// waited for; then a tombstone is written where no marker stands. From then on
// no statement of this unit inserts anything, since each asks for it itself
// (C1), and what was inserted before is taken out again.
func (s *Store) Settle(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	fate, err := s.settle(ctx, txn)
	return fate, s.fail("settle commit", err)
}

func (s *Store) settle(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	gid := branches.NewGID(txn, s.name)
	if err := s.quiet(ctx, gid, s.settlePatience()); err != nil {
		return branches.FateUnknown, err
	}
	fate, err := s.mark(ctx, gid, txn, 0)
	if err != nil || fate == branches.FateApplied {
		return fate, err
	}
	s.reach(momentSettled)
	// One that had asked before the tombstone stood may be at work.
	if err := s.quiet(ctx, gid, s.settlePatience()); err != nil {
		return branches.FateUnknown, err
	}
	names, err := s.marked(ctx)
	if err != nil {
		return branches.FateUnknown, err
	}
	if err := s.clear(ctx, gid, txn, names); err != nil {
		return branches.FateUnknown, err
	}
	return branches.FateNever, nil
}

// marked lists the tables that may hold rows of a unit; see fit.
func (s *Store) marked(ctx context.Context) ([]tableName, error) {
	var names []tableName
	database := chsql.Text(s.database)
	err := s.each(ctx, "SELECT table FROM system.columns WHERE database="+database+" AND name='"+columnTxn+"'"+
		" AND table NOT IN ("+textList([]string{appliedTable, metaTable})+")"+
		" AND table IN (SELECT name FROM system.tables WHERE database="+database+" AND endsWith(engine,'MergeTree'))",
		func(scan func(...any) error) error {
			name := tableName{database: s.database}
			if err := scan(&name.table); err != nil {
				return err
			}
			names = append(names, name)
			return nil
		})
	return names, err
}

// Abort makes sure that nothing of an aborted unit is there. Nothing was inserted
// before the decision; where a person has given up a decided branch, rows of it
// may be.
func (s *Store) Abort(ctx context.Context, ref branches.Ref) error {
	fate, err := s.lookUp(ctx, ref.Txn)
	switch {
	case err != nil:
		return s.fail("abort branch", err)
	case fate == branches.FateApplied:
		return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Committed: true, Evidence: "its marker stands"}
	case len(ref.Payload) == 0:
		return nil
	}
	p, err := decodePayload(ref.Payload)
	if err != nil {
		return s.fail("abort branch", err)
	}
	var names []tableName
	for _, b := range newRun(ref.GID, ref.Txn, ref.TxTime, p).batches {
		names = append(names, b.name)
	}
	return s.fail("abort branch", s.clear(ctx, ref.GID, ref.Txn, names))
}
