// Package payload is a store without prepared transactions, for the crash
// tests: what a unit writes travels in the journal's record and is applied after the
// decision (S9), as it will be for stores that cannot hold a branch open. It
// keeps its ledger and its markers in a PostgreSQL database.
//
//	name=payload:postgres://…
//
// Its one statement is "book", with the arguments dat_txn, stores and amount.
package payload

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/branches"
)

// Scheme of the store's URL.
const Scheme = "payload"

// Tables are what the store's database must hold.
const Tables = `CREATE TABLE dat_applied (dat_txn uuid PRIMARY KEY, dat_tx_time bigint NOT NULL);
	CREATE TABLE ledger (dat_txn uuid NOT NULL, stores int NOT NULL, amount bigint NOT NULL)`

func init() {
	rhizodat.RegisterStore(Scheme, func(_ context.Context, name string, cfg rhizodat.StoreConfig, _ rhizodat.StoreEnv) (branches.Store, error) {
		url, ok := strings.CutPrefix(cfg.URL, Scheme+":")
		if !ok {
			return nil, errors.New("payload: open store: it needs a URL")
		}
		return &store{name: name, url: url}, nil
	})
}

// store opens a connection for each request: crash tests are not in a hurry.
type store struct{ name, url string }

var _ branches.Store = (*store)(nil)

func (s *store) Connect(context.Context) (branches.Session, error) { return &session{store: s}, nil }

func (s *store) Finish(ctx context.Context, ref branches.Ref) error {
	rows, err := decode(ref.Payload)
	if err != nil {
		return err
	}
	fate, err := s.apply(ctx, ref.Txn, max(int64(ref.TxTime), 1), rows)
	if err == nil && fate == branches.FateNever {
		return &branches.Heuristic{Store: s.name, GID: ref.GID, Evidence: "a tombstone stands"}
	}
	return err
}

// Abort has nothing to take back: before the decision nothing was written here.
func (s *store) Abort(ctx context.Context, ref branches.Ref) error {
	fate, err := s.Applied(ctx, ref.Txn)
	if err == nil && fate == branches.FateApplied {
		return &branches.Heuristic{Store: s.name, GID: ref.GID, Committed: true, Evidence: "its marker stands"}
	}
	return err
}

func (s *store) Applied(ctx context.Context, txn branches.TxnID) (fate branches.Fate, err error) {
	err = s.in(ctx, func(tx pgx.Tx) error {
		fate, err = read(ctx, tx, txn)
		return err
	})
	return fate, err
}

// Settle leaves a tombstone, if nothing stands under the key.
func (s *store) Settle(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	return s.apply(ctx, txn, 0, nil)
}

func (s *store) Close() error { return nil }

// apply writes marker and rows, unless a marker stands. It tells which one
// stands afterwards.
func (s *store) apply(ctx context.Context, txn branches.TxnID, txTime int64, rows []row) (fate branches.Fate, err error) {
	err = s.in(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `INSERT INTO dat_applied VALUES ($1, $2) ON CONFLICT DO NOTHING`, txn.String(), txTime)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if tag.RowsAffected() == 0 {
				break // applied before
			}
			if _, err := tx.Exec(ctx, `INSERT INTO ledger VALUES ($1, $2, $3)`, r.Txn, r.Stores, r.Amount); err != nil {
				return err
			}
		}
		fate, err = read(ctx, tx, txn)
		return err
	})
	return fate, err
}

func read(ctx context.Context, tx pgx.Tx, txn branches.TxnID) (branches.Fate, error) {
	var txTime int64
	err := tx.QueryRow(ctx, `SELECT dat_tx_time FROM dat_applied WHERE dat_txn = $1`, txn.String()).Scan(&txTime)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return branches.FateAbsent, nil
	case err != nil:
		return branches.FateUnknown, err
	case txTime == 0:
		return branches.FateNever, nil
	}
	return branches.FateApplied, nil
}

func (s *store) in(ctx context.Context, f func(pgx.Tx) error) (err error) {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return fmt.Errorf("payload: reach store: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // after COMMIT nothing is lost with it
	return pgx.BeginFunc(ctx, conn, f)
}
