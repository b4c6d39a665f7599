package rhizodat

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/sqltext"
)

// savepoints are those of the whole unit, because ORMs build nested
// transactions on them. Each stands in every open branch under a name of our
// own, so that the application's equal names nest.
type savepoints struct {
	standing []savepoint // oldest first
	made     int
}

type savepoint struct{ name, own string }

// replay sets the standing savepoints in a branch that was opened after them.
func (s *savepoints) replay(ctx context.Context, b branches.Branch) error {
	sp, ok := b.(branches.Savepointer)
	if !ok {
		return nil
	}
	for _, p := range s.standing {
		if err := sp.Savepoint(ctx, p.own); err != nil {
			return err
		}
	}
	return nil
}

// find returns the index of the newest savepoint of that name.
func (s *savepoints) find(name string) int {
	for i, p := range slices.Backward(s.standing) {
		if p.name == name {
			return i
		}
	}
	return -1
}

// checkSavepoint refuses a savepoint statement that no unit can carry out.
func (t *tx) checkSavepoint(st sqltext.Statement) error {
	switch {
	case st.Store != "":
		return &RouteError{Store: st.Store, Reason: "a savepoint belongs to the whole transaction: write it without a store"}
	case t == nil:
		return errors.New("rhizodat: savepoint: no transaction is open: begin one with db.BeginTx")
	case st.Kind != sqltext.Savepoint && t.savepoints.find(st.Name) < 0:
		return fmt.Errorf("rhizodat: savepoint: none is named %q", st.Name)
	}
	return nil
}

// savepoint carries out SAVEPOINT, ROLLBACK TO and RELEASE in every branch.
func (t *tx) savepoint(ctx context.Context, st sqltext.Statement) error {
	s := &t.savepoints
	if st.Kind == sqltext.Savepoint {
		s.made++
		p := savepoint{name: st.Name, own: fmt.Sprintf("dat_sp_%d", s.made)}
		s.standing = append(s.standing, p)
		return t.everyBranch(ctx, func(sp branches.Savepointer) error { return sp.Savepoint(ctx, p.own) })
	}
	i := s.find(st.Name)
	p := s.standing[i]
	if st.Kind == sqltext.Release {
		s.standing = s.standing[:i]
		return t.everyBranch(ctx, func(sp branches.Savepointer) error { return sp.Release(ctx, p.own) })
	}
	s.standing = s.standing[:i+1]
	for _, b := range t.unit.Parts {
		if _, ok := b.Branch.(branches.Savepointer); !ok && b.Doom == nil {
			b.Doom = fmt.Errorf("rhizodat: roll back to savepoint: store %s cannot take back what it has written since: the transaction can only be rolled back", b.Name)
		}
	}
	return t.everyBranch(ctx, func(sp branches.Savepointer) error { return sp.RollbackTo(ctx, p.own) })
}

// everyBranch runs f in every branch, also after an error in one: that branch
// cannot commit any more, the others must not fall behind. A branch of which
// nothing had reached its store, and whose session was found dead, begins again
// with the savepoints that now stand.
func (t *tx) everyBranch(ctx context.Context, f func(branches.Savepointer) error) error {
	var errs []error
	for _, p := range t.unit.Parts {
		sp, ok := p.Branch.(branches.Savepointer)
		if !ok {
			continue
		}
		err := f(sp)
		if errors.Is(err, driver.ErrBadConn) {
			err = t.conn.again(ctx, t.conn.slots[p.Name])
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
