package rhizodat

import (
	"context"

	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/lease"
)

// WithLease returns a context whose transactions commit under l: BeginTx and Run
// take it from there. Such a commit applies only while nobody else was granted
// the lease, checked in the decision itself, and it is journaled however few
// branches it has. A late one is *Aborted with *lease.Fenced inside: nothing of
// it took effect, and this holder must not try again.
//
// The context that lease.RunEvery gives is under its lease already.
func WithLease(ctx context.Context, l *lease.Lease) context.Context { return lease.NewContext(ctx, l) }

// Journal is how leases and steps find the journal, through Conn.Raw; nil
// without one.
func (c *conn) Journal() journal.Journal { return c.connector.journal }

// under puts the unit under the lease, and makes it record the step, that ctx
// carries.
func (t *tx) under(ctx context.Context) error {
	t.unit.Step = journal.StepOf(ctx)
	l, ok := lease.FromContext(ctx)
	if !ok {
		return nil
	}
	if err := l.Check(ctx, t.conn.connector.journal); err != nil {
		return err
	}
	t.unit.Lease, t.unit.Fence = l.Name(), l.Fence()
	return nil
}
