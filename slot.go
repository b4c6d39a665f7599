package rhizodat

import (
	"context"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
)

// slot is one store's place in a driver connection.
type slot struct {
	name    string
	store   branches.Store
	session branches.Session // nil until a statement first reaches the store
	epoch   int              // counts the sessions this slot has had
	reset   bool             // the pool has handed the connection on since the last statement
	used    time.Time
	part    *coordinator.Part // the branch of the open unit
}

// maxIdle is how long a session may lie idle before it is pinged, as pgx does.
const maxIdle = time.Second

// open makes sure that a slot without a branch has a session that can be used:
// one that broke is replaced, one that lay idle is pinged first.
func (c *conn) open(ctx context.Context, s *slot) error {
	if s.session != nil && !s.session.Usable() {
		s.drop()
	}
	if s.session != nil && !s.reset {
		return nil
	}
	now := c.connector.clock.Wall().Now()
	if p, ok := s.session.(branches.Pinger); ok && now.Sub(s.used) > maxIdle && p.Ping(ctx) != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.drop()
	}
	if s.session == nil {
		session, err := s.store.Connect(ctx)
		if err != nil {
			return err
		}
		s.session = session
		s.epoch++
	}
	s.reset, s.used = false, now
	return nil
}

// again replaces a session that was found dead before a byte was sent. Inside a
// unit the branch has died with it, and running only this statement again would
// hide that, unless nothing had happened in the branch.
func (c *conn) again(ctx context.Context, s *slot) error {
	if s.part != nil {
		if !s.begun() {
			return c.tx.beginAgain(ctx, s)
		}
		return &LostSession{Store: s.name}
	}
	s.drop()
	return c.open(ctx, s)
}

// LostSession means that the store's session died before this statement was sent. The
// unit is aborted and worth running again.
type LostSession struct{ Store string }

func (e *LostSession) Error() string {
	return fmt.Sprintf("rhizodat: run statement: session with store %s lost: run the unit again", e.Store)
}

// Kind of a lost session.
func (e *LostSession) Kind() branches.Kind { return branches.Transient }

// begun is false where nothing of the open branch has reached its store.
func (s *slot) begun() bool {
	if s.part == nil {
		return true
	}
	b, ok := s.part.Branch.(branches.Beginner)
	return !ok || b.Begun()
}

func (s *slot) drop() {
	if s.session != nil {
		_ = s.session.Close() // it is being given up: its error says nothing new
		s.session = nil
	}
}
