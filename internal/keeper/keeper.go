// Package keeper keeps alive what this process holds in a journal: leases, and
// claims of steps. One goroutine for each journal renews all of it, with one
// statement for each kind and renewal period.
package keeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

const (
	// renewals in one TTL, so that one of them may fail.
	renewals = 3
	// retries in the period between two renewals, after one that failed.
	retries = 3
	// margin is the part of the TTL that a holder does not trust: for the rates
	// of two clocks, and for a process that is scheduled late.
	margin = 10
)

// keepers has one for each journal that something is held in.
var keepers = struct {
	mu sync.Mutex
	of map[journal.Journal]*keeper
}{of: map[journal.Journal]*keeper{}}

// keeper renews what is held in one journal. Its goroutine lives as long as
// something is.
type keeper struct {
	journal journal.Conditional
	wake    chan struct{} // something was added or dropped

	mu   sync.Mutex
	held map[*Held]struct{}
	hush context.CancelFunc // ends the round that is under way; nil for none
}

// add starts to keep h.
func add(j journal.Journal, h *Held) {
	keepers.mu.Lock()
	defer keepers.mu.Unlock()
	k := keepers.of[j]
	if k == nil {
		k = &keeper{journal: h.journal, wake: make(chan struct{}, 1), held: map[*Held]struct{}{}}
		keepers.of[j] = k
		go k.run(context.Background(), j) // the root of the keeper's own life, which no call's context governs
	}
	h.keeper = k
	k.mu.Lock()
	k.held[h] = struct{}{}
	k.mu.Unlock()
	k.signal()
}

func (k *keeper) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *keeper) drop(h *Held) {
	k.mu.Lock()
	delete(k.held, h)
	if len(k.held) == 0 && k.hush != nil {
		k.hush() // nobody waits for its answer
	}
	k.mu.Unlock()
	k.signal()
}

// run renews until nothing is held any more.
func (k *keeper) run(ctx context.Context, j journal.Journal) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, ok := k.next()
		if !ok && k.retire(j) {
			return
		}
		if wait := next.Sub(hlc.System.Now()); ok && wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-k.wake:
			}
			continue
		}
		k.renew(ctx)
	}
}

// retire ends a keeper that holds nothing, unless something was added meanwhile.
func (k *keeper) retire(j journal.Journal) bool {
	keepers.mu.Lock()
	defer keepers.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.held) > 0 {
		return false
	}
	delete(keepers.of, j)
	return true
}

// next is when the first renewal is due.
func (k *keeper) next() (first time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for h := range k.held {
		if due := h.dueAt(); !ok || due.Before(first) {
			first, ok = due, true
		}
	}
	return first, ok
}

// due takes what is due, and what will be within half of its period: so all of
// one TTL come to be renewed together, however they were acquired.
func (k *keeper) due() (list []*Held, shortest time.Duration) {
	now := hlc.System.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for h := range k.held {
		if h.dueAt().Sub(now) > h.period()/2 {
			continue
		}
		if list == nil || h.period() < shortest {
			shortest = h.period()
		}
		list = append(list, h)
	}
	return list, shortest
}

// renew is one round. The shortest period bounds it, so that the others still
// have their own tries when the journal does not answer.
func (k *keeper) renew(ctx context.Context) {
	list, shortest := k.due()
	ctx, cancel := context.WithTimeout(ctx, shortest)
	defer cancel()
	k.mu.Lock()
	k.hush = cancel
	k.mu.Unlock()
	k.renewLeases(ctx, list)
	k.renewSteps(ctx, list)
}

func (k *keeper) renewLeases(ctx context.Context, list []*Held) {
	var held []*Held
	var grants []journal.LeaseRenewal
	for _, h := range list {
		if h.lease != nil {
			held, grants = append(held, h), append(grants, *h.lease)
		}
	}
	if len(held) == 0 {
		return
	}
	began := hlc.System.Now()
	leases, err := k.journal.Leases(ctx)
	var answers []journal.Answer
	if err == nil {
		answers, err = leases.Renew(ctx, grants)
	}
	settle(held, answers, err, began)
}

func (k *keeper) renewSteps(ctx context.Context, list []*Held) {
	var held []*Held
	var claims []journal.StepRenewal
	for _, h := range list {
		if h.step != nil {
			held, claims = append(held, h), append(claims, *h.step)
		}
	}
	if len(held) == 0 {
		return
	}
	began := hlc.System.Now()
	steps, err := k.journal.Steps(ctx)
	var answers []journal.Answer
	if err == nil {
		answers, err = steps.Renew(ctx, claims)
	}
	settle(held, answers, err, began)
}

// settle tells each what was answered. An error proves nothing: the holder's own
// clock goes on, and it is tried again soon.
func settle(held []*Held, answers []journal.Answer, err error, began time.Time) {
	for i, h := range held {
		answer := journal.AnswerUnknown
		if err == nil && i < len(answers) {
			answer = answers[i]
		}
		switch {
		case answer == journal.AnswerWon:
			h.renewed(began)
		case answer == journal.AnswerLost:
			h.Drop(h.lost)
		case errors.Is(err, journal.ErrClosed): // nobody will renew it any more
			h.Drop(err)
		default:
			h.again()
		}
	}
}
