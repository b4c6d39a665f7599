// Package lease gives one process at a time the right to do something: to run a
// pipeline, to read a source partition, to compact a table.
//
// A lease is a row in the journal, and each grant of it has a fence, a number
// that only rises. Expiry alone does not stop a holder that was paused from
// writing late: what does is the fence. A transaction that was begun with
// [NewContext] (rhizodat.WithLease) commits only while the lease's row still
// carries the fence it was begun under, checked and locked in the same statement
// as the decision. A late commit ends as *Aborted with *Fenced inside, every
// branch is rolled back, and nothing of it is ever readable.
//
//	l, err := lease.Acquire(ctx, db, "orders/nightly")
//	var held *lease.Held
//	if errors.As(err, &held) { … } // another's until held.Until: next time
//	defer l.Release(ctx)
//	tx, err := db.BeginTx(rhizodat.WithLease(l.Context(), l), nil)
//
// INVARIANT I1: each fence of a lease has at most one holder.
// INVARIANT I2: the fences of a lease only rise.
// INVARIANT I3: no commit under a lease lands with a fence below the highest
// that was granted.
// INVARIANT I4: release keeps row and fence.
//
// A holder may rely on its lease as long as [Lease.Context] lasts. It is renewed
// every third of its TTL, by one goroutine for all leases of the process, and
// the context ends before the lease can have expired by the journal's clock.
// The clocks of two hosts are never compared.
package lease

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/keeper"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Fence is the number of a grant.
type Fence = journal.Fence

// Fenced means that a write under a lease came too late; see journal.Fenced.
type Fenced = journal.Fenced

// Held means that another holds the lease. It is not an error of the caller's
// work: the run is skipped until its next turn, without a queue or a retry.
type Held struct {
	Name   string
	Holder string
	Until  time.Time // by the journal's clock; the holder may renew it
}

func (e *Held) Error() string {
	return fmt.Sprintf("rhizodat: acquire lease %s: held by %s until %s", e.Name, e.Holder, e.Until.UTC().Format(time.RFC3339))
}

// The causes of the end of a lease's context, besides *Fenced.
var (
	// ErrLapsed: it could not be renewed in time. Others may have it now.
	ErrLapsed = keeper.ErrLapsed
	// ErrReleased: Release was called.
	ErrReleased = errors.New("rhizodat: use lease: it was released")
)

// Lease is one grant. It is safe for concurrent use.
type Lease struct {
	grant   journal.Lease
	journal journal.Journal
	leases  journal.Leases
	held    *keeper.Held
	same    same
}

// Acquire takes the lease of that name in the journal of db, or says at once who
// has it: *Held. Any other error proves nothing; a grant whose answer was lost
// lapses by itself. The values of ctx stay with the lease, its end does not.
func Acquire(ctx context.Context, db *sql.DB, name string, opts ...Option) (*Lease, error) {
	s, err := settingsOf(name, opts)
	if err != nil {
		return nil, err
	}
	j, err := journal.Of(ctx, db)
	if err != nil {
		return nil, err
	}
	return acquire(ctx, j, s)
}

// AcquireIn is Acquire for code that has a journal and no pool.
func AcquireIn(ctx context.Context, j journal.Journal, name string, opts ...Option) (*Lease, error) {
	s, err := settingsOf(name, opts)
	if err != nil {
		return nil, err
	}
	return acquire(ctx, j, s)
}

func acquire(ctx context.Context, j journal.Journal, s settings) (*Lease, error) {
	keeps, ok := j.(journal.Conditional)
	if !ok {
		return nil, journal.ErrNoLease
	}
	leases, err := keeps.Leases(ctx)
	if err != nil {
		return nil, err
	}
	r := journal.LeaseRequest{Name: s.name, Holder: s.holder, Token: rand.Text(), TTL: s.ttl}
	began := hlc.System.Now()
	stands, answer, err := leases.Acquire(ctx, r)
	if answer == journal.AnswerUnknown {
		stands, answer, err = reread(ctx, leases, r, err)
	}
	switch {
	case answer == journal.AnswerLost:
		return nil, &Held{Name: s.name, Holder: stands.Holder, Until: stands.Until}
	case answer != journal.AnswerWon:
		return nil, err
	}
	l := &Lease{grant: stands, journal: j, leases: leases}
	l.held = keeper.Lease(ctx, j, journal.LeaseRenewal{
		Name: stands.Name, Token: stands.Token, Fence: stands.Fence, TTL: s.ttl,
	}, began, &Fenced{Lease: stands.Name, Fence: stands.Fence})
	if err := ctx.Err(); err != nil { // granted to a caller that is gone
		return nil, errors.Join(err, l.Release(ctx))
	}
	return l, nil
}

// reread finds out about an acquisition whose reply was lost: the token that was
// sent is in the row, or it proves nothing. The request may land yet; then
// nobody holds the lease until it lapses.
func reread(ctx context.Context, leases journal.Leases, r journal.LeaseRequest, lost error) (journal.Lease, journal.Answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.TTL/3)
	defer cancel()
	stands, err := leases.Get(ctx, r.Name)
	switch {
	case err == nil && stands.Token == r.Token && !stands.Lapsed:
		return stands, journal.AnswerWon, nil
	case err == nil || errors.Is(err, journal.ErrNotFound):
		err = nil
	}
	return stands, journal.AnswerUnknown, errors.Join(lost, err)
}

// Name of the lease.
func (l *Lease) Name() string { return l.grant.Name }

// Holder is who this process is to the others.
func (l *Lease) Holder() string { return l.grant.Holder }

// Fence of this grant. It never changes: a lease that was lost is acquired anew.
func (l *Lease) Fence() Fence { return l.grant.Fence }

// Context ends when the lease was released, is another's, or may be another's
// before long because it could not be renewed. context.Cause tells which:
// ErrReleased, *Fenced, ErrLapsed. It has the values of Acquire's context.
func (l *Lease) Context() context.Context { return l.held.Context() }

// Release gives the lease back, so that others need not wait until it lapses.
// The context ends first. The row and its fence stay. Releasing what is not
// held any more does nothing. After an error the lease lapses by itself.
func (l *Lease) Release(ctx context.Context) error {
	l.held.Drop(ErrReleased)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	answer, err := l.leases.Release(ctx, l.grant)
	if answer != journal.AnswerUnknown || err == nil {
		return nil
	}
	// A lost reply: it is released if the row no longer names this grant's holder.
	stands, again := l.leases.Get(ctx, l.grant.Name)
	if again == nil && (stands.Token != l.grant.Token || stands.Holder == "") {
		return nil
	}
	return err
}

// releaseWithin bounds the goodbye: its caller's context has often ended.
const releaseWithin = 5 * time.Second
