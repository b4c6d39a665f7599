//go:build !rhizodat_no_iceberg

package rhizodat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/lease"
)

const (
	// tableLockTTL is how long a holder that died keeps the others waiting.
	tableLockTTL = 10 * time.Second
	// tableLockAnswer bounds one request: a journal that does not answer must not
	// stop commits that need no journal.
	tableLockAnswer = 5 * time.Second
	// The pause between two looks at a lock that another holds.
	firstPause, lastPause = 10 * time.Millisecond, 250 * time.Millisecond
)

// tableLock is the commit lock of Iceberg tables: a lease in the journal for each.
type tableLock struct {
	journal func() journal.Journal
	wall    hlc.Wall
	turns   sync.Map // lease's name -> chan struct{}: those of this process take turns without asking the journal
}

var _ iceberg.Locker = (*tableLock)(nil)

// Lock takes the lease.
func (l *tableLock) Lock(ctx context.Context, name string) (unlock func(), err error) {
	name = leaseName(name)
	made, _ := l.turns.LoadOrStore(name, make(chan struct{}, 1))
	turn, _ := made.(chan struct{}) // nothing else is kept there
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: this process, for another transaction", iceberg.ErrLocked)
	}
	held, err := l.acquire(ctx, name)
	if err != nil {
		<-turn
		return nil, err
	}
	return func() {
		// What could not be released lapses by itself.
		_ = held.Release(ctx)
		<-turn
	}, nil
}

func (l *tableLock) acquire(ctx context.Context, name string) (*lease.Lease, error) {
	var held *lease.Held
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		bounded, cancel := context.WithTimeout(ctx, tableLockAnswer)
		granted, err := lease.AcquireIn(bounded, l.journal(), name, lease.WithTTL(tableLockTTL))
		cancel()
		another := errors.As(err, &held)
		if err == nil || !another && (ctx.Err() == nil || held == nil) {
			return granted, err
		}
		jittered := pause/2 + rand.N(pause/2+1) //nolint:gosec // jitter, not a secret
		if l.wall.Sleep(ctx, jittered) != nil {
			return nil, fmt.Errorf("%w: %w", iceberg.ErrLocked, held)
		}
	}
}

// leaseName fits a lock's name into a lease's: one that is too long, or holds what a
// lease's name cannot, is known by its hash.
func leaseName(name string) string {
	if lease.ValidName(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "iceberg:sha256-" + hex.EncodeToString(sum[:])
}
