package iceberg

import (
	"context"

	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/files"
)

// SetFault makes writes to the warehouse's disk fail.
func (s *Store) SetFault(fault files.Fault) { s.files.SetFault(fault) }

// SetInspected calls f between the look at a table and the commit.
func (s *Store) SetInspected(f func()) { s.finisher.Inspected = f }

// Load loads a table of the store's namespace.
func (s *Store) Load(ctx context.Context, name string) (*table.Table, error) {
	return s.catalog.Load(ctx, s.ident(nil, name))
}

// DecodePayload reads a payload.
var DecodePayload = change.DecodePayload

// Change is what a payload holds for one table.
type Change = change.Change
