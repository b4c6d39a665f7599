package sqlc

import "context"

// Account is a row of accounts.
type Account struct {
	ID      int64
	Owner   string
	Balance int64
}

const addToBalance = `-- name: AddToBalance :execrows
UPDATE accounts SET balance = balance + $1
WHERE owner = ANY($2::text[])
`

// AddToBalanceParams are the arguments of AddToBalance.
type AddToBalanceParams struct {
	Balance int64
	Column2 []string
}

// AddToBalance returns the number of accounts.
func (q *Queries) AddToBalance(ctx context.Context, arg AddToBalanceParams) (int64, error) {
	result, err := q.exec(ctx, q.addToBalanceStmt, addToBalance, arg.Balance, arg.Column2)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

const createAccount = `-- name: CreateAccount :one
INSERT INTO accounts (owner, balance)
VALUES ($1, $2)
RETURNING id, owner, balance
`

// CreateAccountParams are the arguments of CreateAccount.
type CreateAccountParams struct {
	Owner   string
	Balance int64
}

// CreateAccount returns the account with its id.
func (q *Queries) CreateAccount(ctx context.Context, arg CreateAccountParams) (Account, error) {
	row := q.queryRow(ctx, q.createAccountStmt, createAccount, arg.Owner, arg.Balance)
	var i Account
	err := row.Scan(&i.ID, &i.Owner, &i.Balance)
	return i, err
}

const deleteAccount = `-- name: DeleteAccount :exec
DELETE FROM accounts WHERE owner = $1
`

// DeleteAccount deletes an account.
func (q *Queries) DeleteAccount(ctx context.Context, owner string) error {
	_, err := q.exec(ctx, q.deleteAccountStmt, deleteAccount, owner)
	return err
}

const listAccounts = `-- name: ListAccounts :many
SELECT id, owner, balance FROM accounts
ORDER BY id
`

// ListAccounts returns all accounts.
func (q *Queries) ListAccounts(ctx context.Context) ([]Account, error) {
	rows, err := q.query(ctx, q.listAccountsStmt, listAccounts)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var items []Account
	for rows.Next() {
		var i Account
		if err := rows.Scan(&i.ID, &i.Owner, &i.Balance); err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	if err := rows.Close(); err != nil {
		return nil, err
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return items, nil
}
