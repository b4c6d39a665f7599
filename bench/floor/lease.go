package floor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Leases is the opponent of leases: a row, taken and given back by one conditional
// and forced statement each, over native pgx. Nobody renews it.
type Leases struct{ conn *pgx.Conn }

// OpenLeases connects and makes the table.
func OpenLeases(ctx context.Context, journal string) (*Leases, error) {
	conn, err := pgx.Connect(ctx, journal)
	if err != nil {
		return nil, fmt.Errorf("open floor: %w", err)
	}
	_, err = conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS floor_lease (name text PRIMARY KEY, holder text, expires_at timestamptz NOT NULL, fence bigint NOT NULL)`)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open floor: %w", err), conn.Close(ctx))
	}
	return &Leases{conn}, nil
}

// Close ends the connection.
func (l *Leases) Close(ctx context.Context) error { return l.conn.Close(ctx) }

// TakeAndGive takes a lease and gives it back.
func (l *Leases) TakeAndGive(ctx context.Context, name, holder string) error {
	var fence int64
	err := l.conn.QueryRow(ctx, `INSERT INTO floor_lease AS l VALUES ($1, $2, clock_timestamp() + interval '30 s', 1)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at, fence = l.fence + 1
		WHERE l.holder IS NULL OR l.expires_at <= clock_timestamp() RETURNING fence`, name, holder).Scan(&fence)
	if err != nil {
		return err
	}
	_, err = l.conn.Exec(ctx, `UPDATE floor_lease SET holder = NULL WHERE name = $1 AND holder = $2 AND fence = $3`, name, holder, fence)
	return err
}
