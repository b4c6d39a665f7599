-- name: CreateAccount :one
INSERT INTO accounts (owner, balance)
VALUES ($1, $2)
RETURNING id, owner, balance;

-- name: ListAccounts :many
SELECT id, owner, balance FROM accounts
ORDER BY id;

-- name: AddToBalance :execrows
UPDATE accounts SET balance = balance + $1
WHERE owner = ANY($2::text[]);

-- name: DeleteAccount :exec
DELETE FROM accounts WHERE owner = $1;
