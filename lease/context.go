package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rhizodat/rhizodat-go/journal"
)

type leaseKey struct{}

// NewContext returns a context whose transactions commit under l: each carries
// its fence. rhizodat.WithLease is the same.
func NewContext(ctx context.Context, l *Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

// FromContext returns the lease that NewContext has put there; ok is false for
// none. Inside of RunEvery it is the one the run is under.
func FromContext(ctx context.Context) (l *Lease, ok bool) {
	l, ok = ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}

var (
	errNil    = errors.New("rhizodat: begin under lease: the lease is nil: it was not acquired")
	errOthers = errors.New("rhizodat: begin under lease: it is of another journal: a fence says nothing here")
)

// Check says whether a transaction that j decides may begin under l now: l is
// still trusted, and was granted by the same journal. Fences of two journals
// have nothing to do with each other.
func (l *Lease) Check(ctx context.Context, j journal.Journal) error {
	if l == nil {
		return errNil
	}
	if over := l.held.Cause(); over != nil {
		return fmt.Errorf("rhizodat: begin under lease %s: %w", l.Name(), over)
	}
	if j == l.journal {
		return nil
	}
	if j == nil {
		return journal.ErrNone
	}
	return l.same.check(ctx, l.journal, j)
}

// same remembers which other opened journals are the lease's own one.
type same struct {
	mu    sync.Mutex
	known map[journal.Journal]bool
}

func (s *same) check(ctx context.Context, mine, other journal.Journal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[other] {
		return nil
	}
	var ids [2]journal.Identity
	for i, j := range []journal.Journal{mine, other} {
		registry, ok := j.(journal.Registry)
		if !ok {
			return errOthers
		}
		var err error
		if ids[i], err = registry.Identify(ctx); err != nil {
			return fmt.Errorf("rhizodat: begin under lease: %w", err)
		}
	}
	if ids[0].ID != ids[1].ID || ids[0].Here != ids[1].Here { // a copy has the same id
		return errOthers
	}
	if s.known == nil {
		s.known = map[journal.Journal]bool{}
	}
	s.known[other] = true
	return nil
}
