package iceberg

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
)

// Applied looks for the unit in the snapshots of every table of the namespace.
// FateAbsent is proved; where a table's history since the unit's birth has expired
// and nothing is found, the fate is unknown.
func (s *Store) Applied(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	fate, _, err := s.look(ctx, txn)
	return fate, s.fail("look up marker", err)
}

// look also returns the tables that it has looked at, in the order of their names.
func (s *Store) look(ctx context.Context, txn branches.TxnID) (branches.Fate, []table.Identifier, error) {
	names, err := s.catalog.Tables(ctx, s.to.namespace)
	if err != nil {
		return branches.FateUnknown, nil, err
	}
	slices.SortFunc(names, slices.Compare)
	found := branches.FateAbsent
	for _, ident := range names {
		tbl, err := s.catalog.Load(ctx, ident)
		if errors.Is(err, catalog.ErrNoSuchTable) {
			continue // dropped since it was listed
		}
		if err != nil {
			return branches.FateUnknown, nil, err
		}
		fate, err := change.Fate(ctx, tbl, txn)
		switch {
		case err != nil:
			return branches.FateUnknown, nil, err
		case fate == branches.FateApplied:
			return fate, names, nil
		case fate == branches.FateNever:
			found = fate
		case fate == branches.FateUnknown && found == branches.FateAbsent:
			found = fate
		}
	}
	return found, names, nil
}

// Settle ends the doubt about a one-phase commit. A unit commits in its tables in
// the order of their names, so the first of them decides. An empty snapshot that
// says "never" moves its head: a commit on its way stands on the old one and is
// refused.
//
// The process whose commit was lost knows the unit's tables, and rolls the others
// forward where the first one holds it. Any other process buries the unit in every
// table of the namespace.
func (s *Store) Settle(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	s.mu.Lock()
	known := s.doubts[txn]
	s.mu.Unlock()
	settle := s.settleUnknown
	if known != nil {
		settle = func(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
			return s.settleKnown(ctx, txn, known)
		}
	}
	fate, err := settle(ctx, txn)
	if err != nil {
		return branches.FateUnknown, s.fail("settle commit", err)
	}
	s.mu.Lock()
	delete(s.doubts, txn)
	s.mu.Unlock()
	return fate, nil
}

// doubt is a one-phase commit whose outcome is not known.
type doubt struct {
	mark    change.Mark
	changes []*change.Change
}

// doubt remembers a commit without an answer, where someone will ask.
func (s *Store) doubt(b *Branch) {
	if !b.unit.Marker {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubts[b.txn] = &doubt{change.Mark{Txn: b.txn, Time: b.time()}, b.changes}
}

func (s *Store) settleKnown(ctx context.Context, txn branches.TxnID, known *doubt) (branches.Fate, error) {
	first := known.changes[0]
	fate, err := s.finisher.Bury(ctx, first.Table, txn)
	switch {
	case err != nil:
		return branches.FateUnknown, err
	case fate == branches.FateApplied:
		for _, c := range known.changes[1:] {
			if err := s.commitTable(ctx, c, known.mark, true); err != nil {
				return branches.FateUnknown, err
			}
		}
		return fate, nil
	}
	for _, c := range known.changes {
		tbl, err := s.catalog.Load(ctx, c.Table)
		if err == nil {
			err = c.Abort(ctx, tbl, txn)
		}
		if err != nil {
			s.opts.Logger.WarnContext(ctx, "rhizodat: staged files left to orphan cleanup",
				"store", s.name, "table", name(c.Table), "dat_txn", txn, "error", err)
		}
	}
	return fate, nil
}

func (s *Store) settleUnknown(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	fate, names, err := s.look(ctx, txn)
	switch {
	case err != nil:
		return branches.FateUnknown, err
	case fate == branches.FateApplied:
		return fate, nil
	}
	// Also where a tombstone stands: whoever wrote it may not have come to the end.
	for _, ident := range names {
		fate, err := s.finisher.Bury(ctx, ident, txn)
		switch {
		case errors.Is(err, catalog.ErrNoSuchTable):
		case err != nil:
			return branches.FateUnknown, err
		case fate == branches.FateApplied:
			return fate, nil
		}
	}
	return branches.FateNever, nil
}
