package rhizodat

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
)

// CopyFrom writes rows to a table of a PostgreSQL store by COPY, on the
// transaction's own connection, and returns their number. table may be
// qualified ("sales.orders"); rows returns one row a call and nil at the end.
// The named store must be configured and have a bulk path.
//
// database/sql has no way to say this. It travels as a private argument of
// tx.ExecContext, and works under wrappers that forward NamedValueChecker.
func CopyFrom(ctx context.Context, tx *sql.Tx, store, table string, columns []string, rows func() ([]any, error)) (int64, error) {
	call := &privateCall{run: func(ctx context.Context, s branches.Session) (driver.Result, error) {
		c, ok := s.(branches.Copier)
		if !ok {
			return nil, fmt.Errorf("rhizodat: copy into store %s: its adapter has no bulk path", store)
		}
		n, err := c.CopyFrom(ctx, table, columns, rows)
		return driver.RowsAffected(n), err
	}}
	result, err := tx.ExecContext(ctx, "store:"+store+" COPY", call)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// CopyRows makes the rows argument of CopyFrom from a slice.
func CopyRows(rows [][]any) func() ([]any, error) {
	next := 0
	return func() ([]any, error) {
		if next >= len(rows) {
			return nil, nil
		}
		next++
		return rows[next-1], nil
	}
}

// privateCall is work on a unit's own session that SQL text cannot say.
type privateCall struct {
	run func(ctx context.Context, s branches.Session) (driver.Result, error)
}

func callOf(args []driver.NamedValue) *privateCall {
	if len(args) != 1 {
		return nil
	}
	call, _ := args[0].Value.(*privateCall)
	return call
}

// Value is reached only under a wrapper that does not ask our NamedValueChecker.
func (*privateCall) Value() (driver.Value, error) {
	return nil, errors.New("rhizodat: bulk call: a driver wrapper does not forward driver.NamedValueChecker: open the pool without it, or update it")
}
