package change

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
)

// attempted is the snapshot that a commit would add.
func attempted(updates []table.Update) (table.Snapshot, bool) {
	for _, u := range updates {
		if u.Action() != table.UpdateAddSnapshot {
			continue
		}
		text, err := json.Marshal(u)
		var made struct{ Snapshot table.Snapshot }
		if err == nil && json.Unmarshal(text, &made) == nil && made.Snapshot.SnapshotID != 0 {
			return made.Snapshot, true
		}
	}
	return table.Snapshot{}, false
}

// dropAttempt removes the manifests of a commit that was certainly refused. What
// it cannot remove is left to the cleanup of orphan files.
func dropAttempt(ctx context.Context, tbl *table.Table, made table.Snapshot) {
	io, err := tbl.FS(ctx)
	if err != nil {
		return
	}
	manifests, err := made.Manifests(io)
	if err != nil {
		return
	}
	for _, m := range manifests {
		if m.SnapshotID() == made.SnapshotID { // the others are the head's own
			_ = io.Remove(m.FilePath())
		}
	}
	_ = io.Remove(made.ManifestList)
}

// discard removes data files that no snapshot can ever name.
func discard(ctx context.Context, tbl *table.Table, files []iceberg.DataFile) {
	io, err := tbl.FS(ctx)
	if err != nil {
		return
	}
	for _, df := range files {
		_ = io.Remove(df.FilePath())
	}
}

// Abort removes the staged files of a change whose unit is durably aborted. Where
// the table holds the change after all it removes nothing and returns ErrApplied.
func (c *Change) Abort(ctx context.Context, tbl *table.Table, txn branches.TxnID) error {
	verdict, err := c.Check(ctx, tbl, txn)
	switch {
	case err != nil:
		return err
	case verdict.State == Done:
		return ErrApplied
	}
	names := make([]string, len(c.Add))
	for i, f := range c.Add {
		names[i] = f.Path
	}
	return Remove(ctx, tbl, names)
}

// Remove removes files by name. One that is not there is a success.
func Remove(ctx context.Context, tbl *table.Table, names []string) error {
	io, err := tbl.FS(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if err := io.Remove(name); err != nil && !isMissing(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sweepBut removes every file of a table whose name holds one of these ids, but for
// those that are kept. It finds what a write that failed has left, which the library
// does not name: the file in progress stays where a writer fails in its Close. It
// walks the whole table, so only a failed write is worth it.
func sweepBut(ctx context.Context, tbl *table.Table, ids []string, keep map[string]bool) error {
	io, err := tbl.FS(ctx)
	if err != nil {
		return err
	}
	walker, ok := io.(iceio.ListableIO)
	if !ok || len(ids) == 0 {
		return nil
	}
	kept := map[string]bool{} // a walk of a local disk gives paths
	for name := range keep {
		kept[path.Base(name)] = true
	}
	root := tbl.Properties().Get(table.WriteDataPathKey, strings.TrimSuffix(tbl.Location(), "/")+"/data")
	var found []string
	err = walker.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && isMissing(err):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir(), kept[path.Base(name)]:
			return nil
		}
		for _, id := range ids {
			if strings.Contains(path.Base(name), id) {
				found = append(found, name)
			}
		}
		return nil
	})
	return errors.Join(err, Remove(ctx, tbl, found))
}
