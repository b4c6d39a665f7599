package journal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"runtime"
	"sync"
	"weak"
)

// ErrNone means that a pool's DSN names no journal.
var ErrNone = errors.New("rhizodat: find journal: the DSN names none: add journal=postgres://… (journal=file:///… for development) and run rhizorecover init")

// pools remembers the journal of each pool, so that it is asked for once: inside
// a transaction of a pool with one connection there would be none left to ask.
var pools sync.Map // weak.Pointer[sql.DB] -> Journal

// Of returns the journal of a pool that package rhizodat opened, also under
// wrappers that give access to the connection they wrap. It takes a connection
// of the pool for that, the first time, and gives it back at once. ErrNone.
func Of(ctx context.Context, db *sql.DB) (Journal, error) {
	pool := weak.Make(db)
	if j, ok := pools.Load(pool); ok {
		return j.(Journal), nil //nolint:forcetypeassert // nothing else is kept there
	}
	j, err := ask(ctx, db)
	if err != nil {
		return nil, err
	}
	if _, loaded := pools.LoadOrStore(pool, j); !loaded {
		runtime.AddCleanup(db, func(pool weak.Pointer[sql.DB]) { pools.Delete(pool) }, pool)
	}
	return j, nil
}

func ask(ctx context.Context, db *sql.DB) (Journal, error) {
	pooled, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = pooled.Close() }() // back to the pool
	var found Journal
	err = pooled.Raw(func(c any) error {
		found, err = behind(c)
		return err
	})
	return found, err
}

// behind looks through the wrappers that tracing libraries put around a
// connection, as far as they let us.
func behind(c any) (Journal, error) {
	for {
		switch w := c.(type) {
		case interface{ Journal() Journal }:
			if j := w.Journal(); j != nil {
				return j, nil
			}
			return nil, ErrNone
		case interface{ Raw() driver.Conn }: // XSAM/otelsql
			c = w.Raw()
		case interface{ Unwrap() driver.Conn }:
			c = w.Unwrap()
		default:
			return nil, errors.New("rhizodat: find journal: not a rhizodat pool, or a wrapper that hides its connection")
		}
	}
}

type stepKey struct{}

// UnderStep returns a context whose unit of work records r in its own decision:
// S7 applies only together with it. r may be filled until Commit is called.
func UnderStep(ctx context.Context, r *StepRecord) context.Context {
	return context.WithValue(ctx, stepKey{}, r)
}

// StepOf returns what UnderStep has put there, or nil.
func StepOf(ctx context.Context) *StepRecord {
	r, _ := ctx.Value(stepKey{}).(*StepRecord)
	return r
}
