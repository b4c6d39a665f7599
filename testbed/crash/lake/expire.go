package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/apache/iceberg-go/table"
)

// Expire leaves the last snapshot of the table, and of the other ones nothing that
// the last does not name, as maintenance does that keeps too little.
func (s *Store) Expire(ctx context.Context) error {
	for {
		tbl, err := s.load(ctx)
		if err != nil || len(tbl.Metadata().Snapshots()) <= 1 {
			return err
		}
		// One of this very millisecond is not old enough yet.
		tx := tbl.NewTransaction()
		if err := tx.ExpireSnapshots(table.WithOlderThan(0), table.WithRetainLast(1), table.WithPostCommit(true)); err != nil {
			return fmt.Errorf("expire snapshots: %w", err)
		}
		// Its removal of files may meet one that it has removed before; the commit
		// stands by then.
		if _, err := tx.Commit(ctx); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("expire snapshots: %w", err)
		}
	}
}

// Committed reports whether a snapshot that is there tells of a unit.
func (s *Store) Committed(ctx context.Context, txn string) (bool, error) {
	tbl, err := s.load(ctx)
	if err != nil {
		return false, err
	}
	for _, snapshot := range tbl.Metadata().Snapshots() {
		if snapshot.Summary != nil && snapshot.Summary.Properties["dat.txn"] == txn {
			return true, nil
		}
	}
	return false, nil
}

func (s *Store) load(ctx context.Context) (*table.Table, error) {
	opened, err := s.open()
	if err != nil {
		return nil, err
	}
	tbl, err := opened.LoadTable(ctx, table.Identifier{Namespace, "ledger"})
	if err != nil {
		return nil, fmt.Errorf("load table: %w", err)
	}
	return tbl, nil
}
