package change

import (
	"context"
	"errors"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
)

// drift is how far the clocks of the hosts that commit may lie apart. It only
// widens the part of a table's history that is looked at.
const drift = time.Hour

// Fate is what a table proves about a unit, by its id alone. FateAbsent is proved:
// the history is complete back to the unit's birth. Where it is not, and nothing is
// found, the fate is unknown.
func Fate(ctx context.Context, tbl *table.Table, txn branches.TxnID) (branches.Fate, error) {
	md, since := tbl.Metadata(), txn.Time().Add(-drift).UnixMilli()
	if fate := fateOf(tagged(md, txn)); fate != branches.FateUnknown || reaches(md, since) {
		return max(fate, branches.FateAbsent), nil
	}
	whole := true
	for older, err := range older(ctx, tbl) {
		switch {
		case ctx.Err() != nil:
			return branches.FateUnknown, ctx.Err()
		case err != nil && !isMissing(err):
			return branches.FateUnknown, err
		case err != nil:
			whole = false
			continue
		}
		if fate := fateOf(tagged(older, txn)); fate != branches.FateUnknown {
			return fate, nil
		}
		if whole && reaches(older, since) {
			return branches.FateAbsent, nil
		}
	}
	return branches.FateUnknown, nil
}

func fateOf(s State) branches.Fate {
	switch s {
	case Done:
		return branches.FateApplied
	case Never:
		return branches.FateNever
	case Pending, Vanished:
	}
	return branches.FateUnknown
}

// reaches reports whether every snapshot since a moment is still there: the chain
// ends at a snapshot without a parent, or at one that is older.
func reaches(md table.Metadata, since int64) bool {
	head := md.CurrentSnapshot()
	if head == nil {
		return len(md.Snapshots()) == 0 && md.LastSequenceNumber() == 0
	}
	for s := head; s != nil; s = md.SnapshotByID(*s.ParentSnapshotID) {
		if s.TimestampMs < since || s.ParentSnapshotID == nil {
			return true
		}
	}
	return false
}

// Bury makes sure that a unit that is not in a table never will be: an empty
// snapshot that says so moves the head, so that a commit that is under way is
// refused, and the next look finds it. It returns what stands then, FateApplied or
// FateNever; an error proves nothing.
func (f *Finisher) Bury(ctx context.Context, ident table.Identifier, txn branches.TxnID) (branches.Fate, error) {
	var last error
	for try := range tries {
		if err := backOff(ctx, try); err != nil {
			return branches.FateUnknown, errors.Join(err, last)
		}
		tbl, err := f.Catalog.Load(ctx, ident)
		if err != nil {
			return branches.FateUnknown, err
		}
		fate, err := Fate(ctx, tbl, txn)
		switch {
		case err != nil:
			return branches.FateUnknown, err
		case fate == branches.FateUnknown:
			return fate, ErrTooLate
		case fate != branches.FateAbsent:
			return fate, nil
		}
		tx := tbl.NewTransaction()
		last = appendNothing(ctx, tx, tbl, iceberg.Properties{NeverKey: txn.String()})
		if last == nil {
			last = f.send(ctx, tbl, tx)
		}
		// Whatever the answer was: what stands there decides. Only a request that may
		// still be on its way has to be settled by another one.
	}
	return branches.FateUnknown, last
}

// appendNothing stages a snapshot without files.
func appendNothing(ctx context.Context, tx *table.Transaction, tbl *table.Table, props iceberg.Properties) error {
	schema, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
	if err != nil {
		return err
	}
	empty, err := array.NewRecordReader(schema, nil)
	if err != nil {
		return err
	}
	defer empty.Release()
	return tx.Append(ctx, empty, props)
}
