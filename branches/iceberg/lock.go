package iceberg

import (
	"context"
	"errors"
	"time"

	"github.com/apache/iceberg-go/table"
)

// Locker is where the commits to one table take turns. The lock spares tries that
// another one's commit would refuse; what makes commits safe is the catalog's own
// compare-and-swap, since other engines take no lock of ours. It is called by
// several goroutines at once.
type Locker interface {
	// Lock takes the lock of that name and waits for whoever holds it as long as ctx
	// lasts. Its error is ErrLocked where another holds it to the end; any other one
	// says that there is no lock to be had. unlock gives it back, and is called once.
	Lock(ctx context.Context, name string) (unlock func(), err error)
}

// ErrLocked means that another was committing to the table for as long as this one
// waited.
var ErrLocked = errors.New("rhizodat: take commit lock: another holds it")

// finisherWait is how long a finisher waits. What is decided must not wait for a
// holder that may be dead.
const finisherWait = time.Second

// turn takes the table's commit lock. Before the decision a commit that waits in vain
// has an answer, TRANSIENT. After it there is none: it goes on without the lock, as
// everybody does where the lock cannot be had.
func (s *Store) turn(ctx context.Context, ident table.Identifier, decided bool) (done func(), err error) {
	if s.opts.Locker == nil {
		return func() {}, nil
	}
	wait := s.opts.CommitWait
	if decided {
		wait = finisherWait
	}
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock, err := s.lockName(bounded, ident)
	if err == nil {
		done, err = s.opts.Locker.Lock(bounded, lock)
	}
	switch {
	case err == nil:
		return done, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, ErrLocked) && !decided:
		return nil, s.busy("commit branch", "table "+name(ident)+": others were committing to it for "+wait.String()+", which is commit_wait", err)
	case !errors.Is(err, ErrLocked):
		s.opts.Logger.WarnContext(ctx, "rhizodat: table is committed to without its commit lock",
			"store", s.name, "table", name(ident), "error", err)
	}
	return func() {}, nil
}

// lockName is iceberg:<catalog>/<namespace>.<table>, the same from every process.
func (s *Store) lockName(ctx context.Context, ident table.Identifier) (string, error) {
	s.mu.Lock()
	identity := s.identity
	s.mu.Unlock()
	if identity == "" {
		var err error
		if identity, err = s.catalog.Identity(ctx); err != nil {
			return "", s.fail("name commit lock", err)
		}
		s.mu.Lock()
		s.identity = identity
		s.mu.Unlock()
	}
	return "iceberg:" + identity + "/" + name(ident), nil
}
