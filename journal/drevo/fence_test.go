package drevo_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/drevotest"
	"github.com/rhizodat/rhizodat-go/journal"
)

func leasesOf(t *testing.T, j *bed) journal.Leases {
	t.Helper()
	l, err := j.journal.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func acquire(t *testing.T, l journal.Leases, name, holder string, ttl time.Duration) journal.Lease {
	t.Helper()
	lease, answer, err := l.Acquire(t.Context(), journal.LeaseRequest{Name: name, Holder: holder, Token: newTxn(t).String(), TTL: ttl})
	if err != nil || answer != journal.AnswerWon {
		t.Fatalf("Acquire: %v, %v", answer, err)
	}
	return lease
}

// Once the next grant was answered, a unit under the one before it does not commit
// any more. Looking at the fence without a conflict would be write skew.
func TestGrantDuringDecision(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	other := open(t, b.graph.URL(), journal.Options{}) // as another process
	theirs, err := other.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, other)
	late := 0
	for range 30 {
		lease := acquire(t, leasesOf(t, b), "one", "a", 0)
		rec := journal.Record{Txn: newTxn(t), TxTime: 1, Lease: lease.Name, Fence: lease.Fence}
		if err := b.session.Create(t.Context(), &rec); err != nil {
			t.Fatal(err)
		}
		decision := decision(rec)
		decision.Lease, decision.Fence = rec.Lease, rec.Fence
		var wg sync.WaitGroup
		var decided error
		wg.Go(func() { decided = b.session.Decide(t.Context(), decision) })
		grant, answer, err := theirs.Acquire(t.Context(), journal.LeaseRequest{Name: "one", Holder: "b", Token: newTxn(t).String()})
		if err != nil || answer != journal.AnswerWon || grant.Fence != lease.Fence+1 {
			t.Errorf("Acquire: %+v, %v, %v", grant, answer, err)
		}
		seen, err := s.Read(t.Context(), rec.Txn)
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
		fenced, isFenced := errors.AsType[*journal.Fenced](decided)
		switch {
		case decided == nil && seen.State == journal.StateActive:
			t.Errorf("fence %v was granted while the record was %s, and the unit under fence %v committed after it", grant.Fence, seen.State, lease.Fence)
		case decided == nil:
		case isFenced && fenced.Current == grant.Fence:
			late++
			b.expectState(t, rec.Txn, journal.StateActive)
		default:
			t.Errorf("Decide: %v, want nil or *Fenced by %v", decided, grant.Fence)
		}
	}
	// And certainly so where the grant comes first.
	lease := acquire(t, leasesOf(t, b), "two", "a", 0)
	acquire(t, leasesOf(t, b), "two", "b", 0)
	rec := b.active(t)
	decision := decision(rec)
	decision.Lease, decision.Fence = lease.Name, lease.Fence
	if _, fenced := errors.AsType[*journal.Fenced](b.session.Decide(t.Context(), decision)); !fenced {
		t.Error("a unit under the fence before committed")
	}
	t.Logf("%d of 30 decisions came too late", late)
}

// Each of a list is answered for, also one that stands in it twice.
func TestRenewSeveral(t *testing.T) {
	b := newBed(t, drevotest.Server(t))
	l := leasesOf(t, b)
	one, two, lapsed := acquire(t, l, "one", "a", time.Minute), acquire(t, l, "two", "a", time.Minute), acquire(t, l, "three", "a", 0)
	var list []journal.LeaseRenewal
	for _, r := range []struct {
		lease journal.Lease
		ttl   time.Duration
	}{{one, time.Hour}, {lapsed, time.Hour}, {two, 2 * time.Hour}, {one, time.Hour}} {
		list = append(list, journal.LeaseRenewal{Name: r.lease.Name, Token: r.lease.Token, Fence: r.lease.Fence, TTL: r.ttl})
	}
	answers, err := l.Renew(t.Context(), list)
	want := []journal.Answer{journal.AnswerWon, journal.AnswerLost, journal.AnswerWon, journal.AnswerWon}
	if err != nil || !slices.Equal(answers, want) {
		t.Fatalf("Renew: %v, %v, want %v", answers, err, want)
	}
	for name, ttl := range map[string]time.Duration{"one": time.Hour, "two": 2 * time.Hour} {
		got, err := l.Get(t.Context(), name)
		if off := time.Until(got.Until) - ttl; err != nil || off.Abs() > time.Minute || got.Fence != 1 {
			t.Errorf("lease %s: %+v, %v", name, got, err)
		}
	}
}

// The reply to an acquisition is lost: sent again, it is the same grant.
func TestLostGrant(t *testing.T) {
	cluster := drevotest.Own(t)
	b := newBed(t, cluster)
	l := leasesOf(t, b)
	r := journal.LeaseRequest{Name: "one", Holder: "a", Token: newTxn(t).String(), TTL: time.Minute}
	cluster.Restart(t, "--fault", "commit:after:drop")
	if lease, answer, err := l.Acquire(t.Context(), r); err == nil || answer != journal.AnswerUnknown {
		t.Fatalf("Acquire whose reply was lost: %+v, %v, %v", lease, answer, err)
	}
	lease, answer, err := l.Acquire(t.Context(), r)
	if err != nil || answer != journal.AnswerWon || lease.Fence != 1 {
		t.Fatalf("Acquire again: %+v, %v, %v, want fence 1", lease, answer, err)
	}
}
