package payload

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
)

// row is what one "book" writes.
type row struct {
	Txn    string `json:"txn"`
	Stores int64  `json:"stores"`
	Amount int64  `json:"amount"`
}

func decode(payload []byte) (rows []row, err error) {
	if err := json.Unmarshal(payload, &rows); err != nil {
		return nil, fmt.Errorf("payload: read payload: %w", err)
	}
	return rows, nil
}

// session holds the rows of its open branch; it has no connection to lose.
type session struct {
	store  *store
	branch *branch
}

var (
	_ branches.Session = (*session)(nil)
	_ branches.Branch  = (*branch)(nil)
)

var errOnlyBook = errors.New(`payload: run statement: it takes only "book" inside a transaction`)

func (s *session) Exec(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if query != "book" || len(args) != 3 || s.branch == nil {
		return nil, errOnlyBook
	}
	txn, isText := args[0].Value.(string)
	stores, isInt := args[1].Value.(int64)
	amount, isAmount := args[2].Value.(int64)
	if !isText || !isInt || !isAmount {
		return nil, errOnlyBook
	}
	s.branch.rows = append(s.branch.rows, row{txn, stores, amount})
	return driver.RowsAffected(1), nil
}

func (s *session) Query(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, errOnlyBook
}

func (s *session) Prepare(context.Context, string) (driver.Stmt, error) { return nil, errOnlyBook }

func (s *session) Begin(_ context.Context, opts branches.BeginOptions) (branches.Branch, error) {
	s.branch = &branch{session: s, txn: opts.Txn}
	return s.branch, nil
}

func (s *session) Usable() bool { return true }
func (s *session) Close() error { return nil }

// branch buffers rows until they are a payload.
type branch struct {
	session *session
	txn     branches.TxnID
	txTime  int64
	rows    []row
}

func (b *branch) Stage(_ context.Context, unit branches.Unit) (branches.Staged, error) {
	b.txTime = int64(unit.TxTime)
	if len(b.rows) == 0 {
		return branches.Staged{Vote: branches.VoteReadOnly}, nil
	}
	payload, err := json.Marshal(b.rows)
	return branches.Staged{Vote: branches.VoteApply, Payload: payload}, err
}

func (b *branch) Prepare(context.Context, branches.GID) error { return nil }

func (b *branch) Finish(ctx context.Context, ref branches.Ref) error {
	return b.session.store.Finish(ctx, ref)
}

func (b *branch) Commit(ctx context.Context) error {
	if len(b.rows) == 0 {
		return nil
	}
	_, err := b.session.store.apply(ctx, b.txn, b.txTime, b.rows)
	return branches.Unknown(err)
}

func (b *branch) Rollback(context.Context) error {
	b.rows = nil
	return nil
}

func (b *branch) Doomed() error { return nil }
