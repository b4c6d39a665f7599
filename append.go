package rhizodat

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Append keeps rows for a table of a ClickHouse or Iceberg store until the
// transaction commits, and returns their number. It is INSERT … VALUES without its text:
// values are checked against the table at once, and a row that is refused takes
// back all rows of the call. table may be qualified ("events.clicks"); rows
// returns one row a call and nil at the end ([CopyRows] makes it from a slice).
//
// It travels as [CopyFrom] does, which for these stores is the same.
func Append(ctx context.Context, tx *sql.Tx, store, table string, columns []string, rows func() ([]any, error)) (int64, error) {
	call := &privateCall{run: func(ctx context.Context, s branches.Session) (driver.Result, error) {
		c, ok := s.(branches.Copier)
		if !ok {
			return nil, fmt.Errorf("rhizodat: append to store %s: its adapter has no bulk path", store)
		}
		n, err := c.CopyFrom(ctx, table, columns, rows)
		return driver.RowsAffected(n), err
	}}
	result, err := tx.ExecContext(ctx, "store:"+store+" APPEND", call)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
