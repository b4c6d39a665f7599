package rhizodat

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
)

// tx is one unit: one sql.Tx, one meta-transaction.
type tx struct {
	conn *conn
	//nolint:containedctx // driver.Tx.Commit has no context: BeginTx's rules it
	ctx        context.Context
	opts       driver.TxOptions
	unit       *coordinator.Unit
	savepoints savepoints
	handle     *Handle
}

var _ driver.Tx = (*tx)(nil)

// enlist opens the unit's branch in a store that a statement reaches first.
func (t *tx) enlist(ctx context.Context, s *slot) error {
	if len(t.unit.Parts) > 0 || t.unit.Conditional() {
		if err := t.probe(ctx, s); err != nil {
			return err
		}
	}
	opts := t.beginOptions()
	branch, err := t.begin(ctx, s, opts)
	if errors.Is(err, driver.ErrBadConn) { // nothing has happened yet
		s.drop()
		if err = t.conn.open(ctx, s); err == nil {
			branch, err = t.begin(ctx, s, opts)
		}
	}
	if branch == nil {
		return err
	}
	s.part = &coordinator.Part{Name: s.name, Store: s.store, Branch: branch}
	t.unit.Parts = append(t.unit.Parts, s.part)
	return err
}

func (t *tx) beginOptions() branches.BeginOptions {
	return branches.BeginOptions{
		Txn: t.unit.Txn, Isolation: t.opts.Isolation, ReadOnly: t.opts.ReadOnly,
		Shared: t.conn.only == nil,
	}
}

// beginAgain replaces a branch of which nothing has reached its store, and whose
// session was found dead, by one on a new session.
func (t *tx) beginAgain(ctx context.Context, s *slot) error {
	dead := s.session
	s.session = nil
	branch, err := t.openAndBegin(ctx, s)
	if branch == nil {
		// The branch is the dead session's still. So is the slot: on a new one the
		// next statement would run outside of the unit, and without one, nowhere.
		s.drop()
		s.session = dead
		if errors.Is(err, driver.ErrBadConn) {
			return &LostSession{Store: s.name}
		}
		return err
	}
	_ = dead.Close() // it is being given up: its error says nothing new
	s.part.Branch = branch
	return err
}

func (t *tx) openAndBegin(ctx context.Context, s *slot) (branches.Branch, error) {
	if err := t.conn.open(ctx, s); err != nil {
		return nil, err
	}
	return t.begin(ctx, s, t.beginOptions())
}

// begin opens a branch with the savepoints that stand. A branch that comes with
// an error has begun, and belongs to the unit.
func (t *tx) begin(ctx context.Context, s *slot, opts branches.BeginOptions) (branches.Branch, error) {
	branch, err := s.session.Begin(ctx, opts)
	if err != nil {
		return nil, err
	}
	err = t.savepoints.replay(ctx, branch)
	switch {
	case err == nil:
		return branch, nil
	case errors.Is(err, driver.ErrBadConn):
		return nil, err
	}
	return branch, fmt.Errorf("rhizodat: set standing savepoints in store %s: %w", s.name, err)
}

// probe asks every store of a unit that reaches its second one whether it can
// take part, before anything is written there.
func (t *tx) probe(ctx context.Context, second *slot) error {
	stores := []*slot{second}
	for _, p := range t.unit.Parts {
		stores = append(stores, t.conn.slots[p.Name])
	}
	for _, s := range stores {
		if p, ok := s.store.(branches.Prober); ok && !t.opts.ReadOnly {
			if err := p.Probe(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Commit ends the unit in every store, or in none.
func (t *tx) Commit() error {
	out := t.conn.connector.coordinator.Commit(t.ctx, t.unit)
	t.end(out)
	if out.Verdict == coordinator.VerdictPending && t.conn.connector.cfg.OnPending == PendingOK {
		return nil
	}
	return out.Err
}

// Rollback ends the unit. It is detached from BeginTx's context, which may be
// what ended it.
func (t *tx) Rollback() error {
	out, err := t.conn.connector.coordinator.Rollback(t.ctx, t.unit)
	t.end(out)
	return err
}

// end gives the sessions back to their slots; one that cannot run another unit
// is closed, whatever the outcome.
func (t *tx) end(out coordinator.Outcome) {
	t.handle.end(out)
	t.conn.tx = nil
	for _, s := range t.conn.slots {
		if s.part == nil {
			continue
		}
		s.part = nil
		if !s.session.Usable() {
			s.drop()
		}
	}
}
