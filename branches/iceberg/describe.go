package iceberg

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
)

var _ branches.Describer = (*Store)(nil)

// Describe tells, a line a table, which files a payload adds and replaces, how large
// they are, and the snapshot that holds them.
func (s *Store) Describe(ctx context.Context, ref branches.Ref) ([]string, error) {
	changes, err := change.DecodePayload(ref.Payload)
	if err != nil {
		return nil, s.fail("describe payload", err)
	}
	lines := make([]string, len(changes))
	for i, c := range changes {
		state, err := s.stateOf(ctx, c, ref.Txn)
		if err != nil {
			return nil, s.fail("describe payload", err)
		}
		lines[i] = "table " + name(c.Table) + ": " + amount("adds", c.Add)
		if len(c.Remove) > 0 {
			lines[i] += ", " + amount("replaces", c.Remove)
		}
		base := "an empty table"
		if c.Base != 0 {
			base = "snapshot " + strconv.FormatInt(c.Base, 10)
		}
		lines[i] += "; it began on " + base + "; " + state
	}
	return lines, nil
}

func amount(verb string, list []change.File) string {
	var rows, bytes int64
	for _, f := range list {
		rows, bytes = rows+f.Rows, bytes+f.Bytes
	}
	return fmt.Sprintf("%s %d files of %d rows and %d bytes", verb, len(list), rows, bytes)
}

// stateOf is what has become of a change.
func (s *Store) stateOf(ctx context.Context, c *change.Change, txn branches.TxnID) (string, error) {
	tbl, err := s.catalog.Load(ctx, c.Table)
	switch {
	case errors.Is(err, catalog.ErrNoSuchTable), errors.Is(err, catalog.ErrNoSuchNamespace):
		return "the table does not exist", nil
	case err != nil:
		return "", err
	}
	verdict, err := c.Check(ctx, tbl, txn)
	if err != nil {
		return "", err
	}
	switch verdict.State {
	case change.Done:
		if snapshot := snapshotOf(tbl, txn); snapshot != 0 {
			return "committed in snapshot " + strconv.FormatInt(snapshot, 10), nil
		}
		return "committed: " + verdict.Why, nil
	case change.Never:
		return "a tombstone stands: it never commits", nil
	case change.Vanished:
		return "not committed, and " + verdict.Why, nil
	case change.Pending:
	}
	return "not committed yet, and every file is there", nil
}

// snapshotOf is the snapshot that carries a unit's id, or 0.
func snapshotOf(tbl *table.Table, txn branches.TxnID) int64 {
	for _, s := range tbl.Metadata().Snapshots() {
		if s.Summary != nil && s.Summary.Properties[change.TxnKey] == txn.String() {
			return s.SnapshotID
		}
	}
	return 0
}
