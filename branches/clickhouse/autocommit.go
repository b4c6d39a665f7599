package clickhouse

import (
	"context"
	"database/sql/driver"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse/internal/chsql"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// alone runs one INSERT outside of a transaction: a unit of its own, whose rows
// go the same way and so with all digits of a time. It leaves a marker where its
// table has the columns for it, so that a lost answer can be settled.
func (s *Session) alone(ctx context.Context, in *chsql.InsertInto, args []driver.NamedValue) (driver.Result, error) {
	txn, err := branches.NewTxnID()
	if err != nil {
		return nil, err
	}
	b := &Branch{session: s, txn: txn, buffer: buffer{store: s.store}}
	n, err := b.insert(ctx, in, args)
	if err != nil {
		return nil, err
	}
	if s.store.marks(b.buffer.tables()) {
		unit := branches.Unit{Txn: txn, TxTime: s.store.opts.Clock.Now(), OnePhase: true, Marker: true}
		if _, err := b.Stage(ctx, unit); err != nil {
			return nil, err
		}
	}
	if err := b.Commit(ctx); err != nil {
		return nil, s.store.resolve(ctx, b, err)
	}
	return driver.RowsAffected(n), nil
}

// marks reports whether every table can be found a unit's rows in.
func (s *Store) marks(tables []*table) bool {
	if !s.opts.Markers {
		return false
	}
	for _, t := range tables {
		if cause, _ := s.fit(t); cause != "" {
			return false
		}
	}
	return true
}

// resolve settles an insert whose answer was lost.
func (s *Store) resolve(ctx context.Context, b *Branch, err error) error {
	if !b.unit.Marker || !branches.IsUnknown(err) {
		return err
	}
	fate, settleErr := s.Settle(ctx, b.txn)
	switch {
	case settleErr != nil:
		return err
	case fate == branches.FateApplied:
		return nil
	}
	return s.fail("insert rows", known(err))
}

// known takes the mark of an unknown outcome off.
func known(err error) error {
	for branches.IsUnknown(err) {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return err
		}
		err = inner.Unwrap()
	}
	return err
}

// time of the rows: the unit's, or the store's own clock where nothing was staged.
func (b *Branch) time() hlc.Time {
	if b.unit.TxTime > 0 {
		return b.unit.TxTime
	}
	return b.session.store.opts.Clock.Now()
}
