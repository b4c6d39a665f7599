package postgres

import (
	"context"

	"github.com/rhizodat/rhizodat-go/journal/sqljournal"
)

// Keep implements sqljournal.Pool.
func (p *pool) Keep(ctx context.Context) (sqljournal.Conn, error) {
	release, err := p.places.Keep(ctx)
	if err != nil {
		return nil, err
	}
	return &place{pool: p, release: release}, nil
}
