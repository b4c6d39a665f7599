package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"gocloud.dev/gcerrors"

	"github.com/rhizodat/rhizodat-go/branches"
)

// State is what a table says about a change.
type State int

// The states. The zero State is none of them.
const (
	_        State = iota
	Pending        // not applied; it can be
	Done           // applied
	Never          // a tombstone stands
	Vanished       // not applied as far as the table shows, and staged files are missing
)

// Verdict is a State with its proof.
type Verdict struct {
	State State
	Why   string
	// Complete: the table's history since the unit began is all there, so that
	// "not applied" is proved and not only likely.
	Complete bool
}

// Check answers "already applied?", the cheapest proof first:
//
//  1. a snapshot carries dat.txn (or dat.never).
//  2. The chain of snapshots from the head to the one that the unit began on is
//     complete: nothing has expired since, so the look at the summaries was all
//     there is to see. This saves the walk through the manifests, which in a long
//     table takes longer than the commit.
//  3. Any manifest that is still there names a staged file, tombstones of deleted
//     files included.
//  4. An older metadata file still lists an expired snapshot with dat.txn.
//  5. A staged file is missing, or has another size.
func (c *Change) Check(ctx context.Context, tbl *table.Table, txn branches.TxnID) (Verdict, error) {
	if state := tagged(tbl.Metadata(), txn); state != 0 {
		return Verdict{State: state, Why: "a snapshot carries its id", Complete: true}, nil
	}
	complete := c.chained(tbl)
	if !complete {
		done, err := c.referenced(ctx, tbl)
		if err != nil || done {
			return Verdict{State: Done, Why: "a manifest names a staged file"}, err
		}
		state, reached, err := c.logged(ctx, tbl, txn)
		switch {
		case err != nil:
			return Verdict{}, err
		case state != 0:
			return Verdict{State: state, Why: "an expired snapshot in the metadata log carries its id", Complete: true}, nil
		}
		complete = reached
	}
	missing, err := c.missing(ctx, tbl)
	switch {
	case err != nil:
		return Verdict{}, err
	case missing != "":
		return Verdict{State: Vanished, Why: missing, Complete: complete}, nil
	}
	return Verdict{State: Pending, Complete: complete}, nil
}

// tagged looks for a unit among the snapshots of one metadata file.
func tagged(md table.Metadata, txn branches.TxnID) State {
	id := txn.String()
	for _, s := range md.Snapshots() {
		switch {
		case s.Summary == nil:
		case s.Summary.Properties[TxnKey] == id:
			return Done
		case s.Summary.Properties[NeverKey] == id:
			return Never
		}
	}
	return 0
}

// chained reports whether no snapshot since the base has expired.
func (c *Change) chained(tbl *table.Table) bool { return chainedTo(tbl.Metadata(), c.Base) }

func chainedTo(md table.Metadata, base int64) bool {
	head := md.CurrentSnapshot()
	switch {
	case head == nil:
		return base == 0
	case head.SnapshotID == base:
		return true
	case base == 0: // the chain must end at a snapshot that never had a parent
		chain, ok := table.AncestorsOfChecked(head.SnapshotID, md.SnapshotByID)
		return ok && len(chain) > 0 && chain[len(chain)-1].ParentSnapshotID == nil
	}
	_, ok := table.AncestorsBetween(head.SnapshotID, base, md.SnapshotByID)
	return ok
}

// referenced looks for the staged files in every manifest there is.
func (c *Change) referenced(ctx context.Context, tbl *table.Table) (bool, error) {
	if len(c.Add) == 0 {
		return false, nil
	}
	staged := map[string]bool{}
	for _, f := range c.Add {
		staged[f.Path] = true
	}
	io, err := tbl.FS(ctx)
	if err != nil {
		return false, err
	}
	for m, err := range tbl.AllManifests(ctx) {
		if err != nil {
			return false, err
		}
		for e, err := range m.Entries(io, false) {
			if err != nil {
				return false, err
			}
			if staged[e.DataFile().FilePath()] {
				return true, nil
			}
		}
	}
	return false, nil
}

// logged looks into older metadata files, newest first. reached: with them the
// history is complete after all.
func (c *Change) logged(ctx context.Context, tbl *table.Table, txn branches.TxnID) (state State, reached bool, err error) {
	whole := true
	for md, err := range older(ctx, tbl) {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		if err != nil {
			// Removed, which is a writer's right: no evidence, and a gap.
			if !isMissing(err) {
				return 0, false, err
			}
			whole = false
			continue
		}
		if state := tagged(md, txn); state != 0 {
			return state, true, nil
		}
		if whole && atBase(md, c.Base) {
			return 0, true, nil
		}
	}
	return 0, false, nil
}

// atBase reports whether a metadata file is from when the unit began: everything
// after it has been looked at.
func atBase(md table.Metadata, base int64) bool {
	head := md.CurrentSnapshot()
	if head == nil {
		return base == 0
	}
	return head.SnapshotID == base
}

// older gives the metadata files before the present one, newest first.
func older(ctx context.Context, tbl *table.Table) func(func(table.Metadata, error) bool) {
	var names []string
	for entry := range tbl.Metadata().PreviousFiles() {
		names = append(names, entry.MetadataFile)
	}
	return func(yield func(table.Metadata, error) bool) {
		for _, name := range slices.Backward(names) {
			old, err := table.NewFromLocation(ctx, tbl.Identifier(), name, tbl.FS, nil)
			if err != nil {
				if !yield(nil, fmt.Errorf("read older metadata: %w", err)) {
					return
				}
				continue
			}
			if !yield(old.Metadata(), nil) {
				return
			}
		}
	}
}

// missing names a staged file that is not there as it was written.
func (c *Change) missing(ctx context.Context, tbl *table.Table) (string, error) {
	io, err := tbl.FS(ctx)
	if err != nil {
		return "", err
	}
	for _, f := range c.Add {
		size, err := sizeOf(io, f.Path)
		switch {
		case isMissing(err):
			return f.Path + " does not exist", nil
		case err != nil:
			return "", fmt.Errorf("look for staged file: %w", err)
		case size != f.Bytes:
			return fmt.Sprintf("%s has %d bytes, %d were written", f.Path, size, f.Bytes), nil
		}
	}
	return "", nil
}

// isMissing reports whether a file or an object is not there.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || gcerrors.Code(err) == gcerrors.NotFound
}

func sizeOf(io iceio.IO, name string) (int64, error) {
	if able, ok := io.(iceio.StatIO); ok {
		info, err := able.Stat(name)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	file, err := io.Open(name)
	if err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	return info.Size(), nil
}
