package iceberg

import (
	"context"
	"database/sql/driver"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/icesql"
)

// alone runs one statement outside of a transaction: a unit of its own. Its snapshot
// is its marker, so that a lost answer can be settled.
func (s *Session) alone(ctx context.Context, parsed icesql.Statement, args []driver.NamedValue) (driver.Result, error) {
	txn, err := branches.NewTxnID()
	if err != nil {
		return nil, err
	}
	b := s.store.newBranch(txn)
	n, err := b.write(ctx, parsed, args)
	if err == nil {
		_, err = b.Stage(ctx, branches.Unit{Txn: txn, TxTime: s.store.opts.Clock.Now(), OnePhase: true, Marker: true})
	}
	if err != nil {
		s.store.leftover(ctx, b)
		return nil, err
	}
	if err := b.Commit(ctx); err != nil {
		if err = s.store.resolve(ctx, txn, err); err != nil {
			return nil, err
		}
	}
	return driver.RowsAffected(n), nil
}

// resolve settles a statement whose answer was lost.
func (s *Store) resolve(ctx context.Context, txn branches.TxnID, err error) error {
	if !branches.IsUnknown(err) {
		return err
	}
	fate, settleErr := s.Settle(ctx, txn)
	switch {
	case settleErr != nil:
		return err
	case fate == branches.FateApplied:
		return nil
	}
	return s.fail("write rows", known(err))
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
