package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/internal/demodb"
	"github.com/rhizodat/rhizodat-go/lease"
)

// One node at a time merges the small files of an Iceberg table: those of a day
// that is over. A transaction reads the day's rows, deletes them and writes them
// again, in one snapshot; it commits under the fence of its turn.
//
// The day must be over: after the decision the DELETE may be done again on a head
// that has moved, and rows that a late writer has added to the day would go.
func ExampleRunEvery_compaction() {
	dir, err := os.MkdirTemp("", "lake")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db := lake(dir)
	defer func() { _ = db.Close() }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	for id := range 5 { // a file each
		if _, err := db.ExecContext(ctx, "INSERT INTO history VALUES (?, '2026-11-29')", id); err != nil {
			panic(err)
		}
	}
	fmt.Println("files before:", files(dir))
	err = lease.RunEvery(ctx, db, "compact erp.history", time.Minute, func(ctx context.Context) error {
		defer stop() // one turn is enough here
		return compact(ctx, db, "2026-11-29")
	})
	fmt.Println("stopped:", errors.Is(err, context.Canceled))
	fmt.Println("files written:", files(dir)-5)
	var rows int
	err = db.QueryRowContext(context.Background(), "SELECT count(*) FROM history").Scan(&rows)
	fmt.Println("rows:", rows, err)
	// Output:
	// files before: 5
	// stopped: true
	// files written: 1
	// rows: 5 <nil>
}

// compact writes one day of the table anew. A conflict before the decision is
// transient: the next turn does it.
func compact(ctx context.Context, db *sql.DB, day string) error {
	tx, err := db.BeginTx(ctx, nil) // under the lease of the turn
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	kept, err := rowsOf(ctx, tx, day)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM history WHERE day = ?", day); err != nil {
		return err
	}
	if _, err := rhizodat.Append(ctx, tx, "lake", "history", []string{"id", "day"}, rhizodat.CopyRows(kept)); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil && !rhizodat.IsRetryable(err) {
		return err
	}
	return nil
}

func rowsOf(ctx context.Context, tx *sql.Tx, day string) (kept [][]any, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT id FROM history WHERE day = ?", day)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		kept = append(kept, []any{id, day})
	}
	return kept, rows.Err()
}

// lake is a deployment that needs no server.
func lake(dir string) *sql.DB {
	db := demodb.OpenDSN("lake=iceberg+sqlite://" + dir + "/catalog.db?warehouse=file://" + dir + "/wh&namespace=erp journal=file://" + dir + "/journal.db")
	if _, err := db.Exec("CREATE TABLE history (id long, day string)"); err != nil {
		panic(err)
	}
	return db
}

func files(dir string) int {
	found, err := filepath.Glob(filepath.Join(dir, "wh", "erp*", "history", "data", "*.parquet"))
	if err != nil {
		panic(err)
	}
	return len(found)
}
