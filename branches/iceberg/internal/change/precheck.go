package change

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// Precheck reports whether the change still fits the table: ErrReplaced, ErrSchema,
// or for a change that replaces files ErrConflict. It returns the replaced files as
// the table has them.
//
// The library has such checks too, but runs them only when it retries, which its
// SQL catalog never does for a handle that was loaded before the peer's commit.
func (c *Change) Precheck(ctx context.Context, tbl *table.Table) ([]iceberg.DataFile, error) {
	if err := c.fits(tbl); err != nil {
		return nil, err
	}
	if len(c.Remove) == 0 {
		return nil, nil // appends never conflict
	}
	md, head := tbl.Metadata(), tbl.CurrentSnapshot()
	if head == nil {
		return nil, fmt.Errorf("%w: it is empty", ErrConflict)
	}
	live, err := c.live(ctx, tbl, head)
	if err != nil || head.SnapshotID == c.Base {
		return live, err
	}
	between, ok := table.AncestorsBetween(head.SnapshotID, c.Base, md.SnapshotByID)
	if !ok {
		return nil, fmt.Errorf("%w: the snapshot that the unit began on is no longer in its history", ErrConflict)
	}
	for _, s := range between {
		// The scan below sees appended files only. An overwrite may have moved a row
		// into the filter; whether it did nobody can tell without reading it.
		if s.Summary != nil && s.Summary.Operation == table.OpOverwrite {
			return nil, fmt.Errorf("%w: snapshot %d overwrote rows", ErrConflict, s.SnapshotID)
		}
	}
	return live, c.noneAppended(ctx, tbl, head)
}

// fits reports whether files of the unit can be read under the table's schema.
func (c *Change) fits(tbl *table.Table) error {
	if tbl.Metadata().TableUUID().String() != c.UUID {
		return ErrReplaced
	}
	now := tbl.Schema()
	if now.ID == c.Schema {
		return nil
	}
	then := tbl.Schemas()[c.Schema]
	if then == nil {
		return fmt.Errorf("%w: schema %d is gone", ErrSchema, c.Schema)
	}
	for _, f := range now.Fields() {
		if _, had := then.FindFieldByID(f.ID); !had && f.Required && f.InitialDefault == nil {
			return fmt.Errorf("%w: the required column %q was added", ErrSchema, f.Name)
		}
	}
	if len(c.Remove) > 0 {
		// The rewritten files lack a column that was added since, and with it
		// the values that peers have written there.
		return fmt.Errorf("%w: its schema was changed", ErrConflict)
	}
	return nil
}

// live finds the replaced files in the table's head. Rows of them that were deleted
// since are a conflict like a file that is gone.
func (c *Change) live(ctx context.Context, tbl *table.Table, head *table.Snapshot) ([]iceberg.DataFile, error) {
	live, deletes, err := c.find(ctx, tbl, head)
	if err != nil {
		return nil, err
	}
	if len(live) != len(c.Remove) {
		return nil, fmt.Errorf("%w: %d of the %d replaced files were replaced by a peer", ErrConflict, len(c.Remove)-len(live), len(c.Remove))
	}
	if base := tbl.Metadata().SnapshotByID(c.Base); deletes > 0 && (base == nil || deletes > base.SequenceNumber) {
		return nil, fmt.Errorf("%w: rows were deleted since", ErrConflict)
	}
	return live, nil
}

// find also returns the latest sequence number of a manifest of deletes.
func (c *Change) find(ctx context.Context, tbl *table.Table, head *table.Snapshot) (live []iceberg.DataFile, deletes int64, err error) {
	wanted := map[string]bool{}
	for _, f := range c.Remove {
		wanted[f.Path] = true
	}
	io, err := tbl.FS(ctx)
	if err != nil {
		return nil, 0, err
	}
	manifests, err := head.Manifests(io)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range manifests {
		if m.ManifestContent() == iceberg.ManifestContentDeletes {
			deletes = max(deletes, m.SequenceNum())
			continue
		}
		for e, err := range m.Entries(io, true) {
			if err != nil {
				return nil, 0, err
			}
			if df := e.DataFile(); wanted[df.FilePath()] {
				live = append(live, df)
			}
		}
	}
	return live, deletes, nil
}

// untouched reports whether every replaced file is still in the table: then the
// change was not applied, whatever has expired.
func (c *Change) untouched(ctx context.Context, tbl *table.Table) (bool, error) {
	head := tbl.CurrentSnapshot()
	if head == nil {
		return false, nil
	}
	live, _, err := c.find(ctx, tbl, head)
	return err == nil && len(live) == len(c.Remove), err
}

// noneAppended reports whether no peer has appended a file that may hold a row
// inside of the filter.
func (c *Change) noneAppended(ctx context.Context, tbl *table.Table, head *table.Snapshot) error {
	filter, err := iceberg.ParseExpr(c.Filter, tbl.Schema())
	if err != nil {
		return fmt.Errorf("%w: what the statement looked at cannot be told any more: %w", ErrConflict, err)
	}
	tasks, err := tbl.NewIncrementalAppendScan(table.WithRowFilter(filter)).
		FromSnapshotExclusive(c.Base).ToSnapshot(head.SnapshotID).PlanFiles(ctx)
	if err != nil {
		return err
	}
	if len(tasks) > 0 {
		return fmt.Errorf("%w: %d files were appended that the statement may match", ErrConflict, len(tasks))
	}
	return nil
}
