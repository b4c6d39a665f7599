package journaltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/journal"
)

const ttl = 30 * time.Second

var leases = []Item{
	{"lease/a fence never repeats", fencesRise},
	{"lease/a stranger is refused, and told by whom and until when", strangerRefused},
	{"lease/the same holder gets a new fence, and its earlier grant is worth nothing", sameHolder},
	{"lease/an acquisition that is sent twice keeps its fence", sentTwice},
	{"lease/each renewal is answered for", renewals},
	{"lease/release clears the holder and keeps row and fence", released},
	{"lease/one of 16 acquirers wins", raceOfAcquirers},
	{"lease/all are listed", leasesListed},
}

// leases are those of the item's journal. A journal that keeps none is skipped.
func (b *Bed) leases() journal.Leases {
	b.Helper()
	l, err := b.conditional().Leases(b.Context())
	b.must("Leases", err)
	return l
}

func (b *Bed) conditional() journal.Conditional {
	b.Helper()
	c, ok := b.Journal.(journal.Conditional)
	if !ok {
		b.Skipf("%T is no journal.Conditional: it keeps neither leases nor steps", b.Journal)
	}
	return c
}

// request is an acquisition that is told from every other by its token.
func (b *Bed) request(name, holder string, ttl time.Duration) journal.LeaseRequest {
	b.Helper()
	return journal.LeaseRequest{Name: name, Holder: holder, Token: b.txn().String(), TTL: ttl}
}

func (b *Bed) acquire(l journal.Leases, name, holder string, ttl time.Duration) journal.Lease {
	b.Helper()
	r := b.request(name, holder, ttl)
	got, answer, err := l.Acquire(b.Context(), r)
	if err != nil || answer != journal.AnswerWon {
		b.Fatalf("Acquire %s by %s: %v, %v, want won", name, holder, answer, err)
	}
	if got.Name != name || got.Holder != holder || got.Token != r.Token || got.Fence <= 0 {
		b.Fatalf("Acquire %s by %s granted %+v", name, holder, got)
	}
	return got
}

func (b *Bed) expectAnswer(doing string, want journal.Answer) func(journal.Answer, error) {
	return func(got journal.Answer, err error) {
		b.Helper()
		if err != nil || got != want {
			b.Fatalf("%s: %v, %v, want %v", doing, got, err, want)
		}
	}
}

// now is the journal's clock.
func (b *Bed) now() time.Time {
	b.Helper()
	k, ok := b.Journal.(journal.Timekeeper)
	if !ok {
		b.Fatalf("%T is no journal.Timekeeper", b.Journal)
	}
	t, err := k.Clock(b.Context())
	b.must("Clock", err)
	return t
}

func fencesRise(b *Bed) {
	l := b.leases()
	for i, holder := range []string{"a", "b", "a"} {
		got := b.acquire(l, "one", holder, ttl)
		if want := journal.Fence(i + 1); got.Fence != want {
			b.Fatalf("%s got fence %v, want %v", holder, got.Fence, want)
		}
		b.expectAnswer("Release", journal.AnswerWon)(l.Release(b.Context(), got))
	}
	if got := b.acquire(l, "one", "c", 0); got.Fence != 4 {
		b.Fatalf("c got fence %v, want 4", got.Fence)
	}
	if got := b.acquire(l, "one", "d", ttl); got.Fence != 5 { // c's has lapsed
		b.Fatalf("d got fence %v, want 5", got.Fence)
	}
	if got := b.acquire(l, "other", "e", ttl); got.Fence != 1 {
		b.Fatalf("another lease begins with fence %v, want 1", got.Fence)
	}
}

func strangerRefused(b *Bed) {
	l, before := b.leases(), b.now()
	granted := b.acquire(l, "one", "a", ttl)
	if after := b.now(); granted.Until.Before(before.Add(ttl)) || granted.Until.After(after.Add(ttl)) {
		b.Fatalf("granted until %v, want %v from the journal's now, between %v and %v", granted.Until, ttl, before, after)
	}
	stands, answer, err := l.Acquire(b.Context(), b.request("one", "b", ttl))
	b.expectAnswer("Acquire of a lease that is held", journal.AnswerLost)(answer, err)
	if diff := cmp.Diff(granted, stands); diff != "" {
		b.Fatalf("a stranger was told (-granted +told):\n%s", diff)
	}
	got, err := l.Get(b.Context(), "one")
	b.must("Get", err)
	if diff := cmp.Diff(granted, got); diff != "" {
		b.Fatalf("the refusal has changed the row (-before +after):\n%s", diff)
	}
}

func sameHolder(b *Bed) {
	l := b.leases()
	first := b.acquire(l, "one", "a", ttl)
	second := b.acquire(l, "one", "a", ttl)
	if second.Fence != first.Fence+1 {
		b.Fatalf("fences %v and %v, want a new one", first.Fence, second.Fence)
	}
	b.expectRenewals(l, []journal.Answer{journal.AnswerLost, journal.AnswerWon}, first, second)
	b.expectAnswer("Release of the earlier grant", journal.AnswerLost)(l.Release(b.Context(), first))
	if got, err := l.Get(b.Context(), "one"); err != nil || got.Holder != "a" || got.Token != second.Token {
		b.Fatalf("it stands as %+v, %v", got, err)
	}
}

func sentTwice(b *Bed) {
	l, r := b.leases(), b.request("one", "a", ttl)
	for range 2 {
		got, answer, err := l.Acquire(b.Context(), r)
		b.expectAnswer("Acquire", journal.AnswerWon)(answer, err)
		if got.Fence != 1 {
			b.Fatalf("granted fence %v, want 1", got.Fence)
		}
	}
}

func (b *Bed) expectRenewals(l journal.Leases, want []journal.Answer, list ...journal.Lease) {
	b.Helper()
	var renewals []journal.LeaseRenewal
	for _, g := range list {
		renewals = append(renewals, journal.LeaseRenewal{Name: g.Name, Token: g.Token, Fence: g.Fence, TTL: 2 * ttl})
	}
	got, err := l.Renew(b.Context(), renewals)
	b.must("Renew", err)
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("renewals (-want +got):\n%s", diff)
	}
}

func renewals(b *Bed) {
	l := b.leases()
	alive := b.acquire(l, "alive", "a", ttl)
	lapsed := b.acquire(l, "lapsed", "a", 0)
	taken := b.acquire(l, "taken", "a", 0)
	b.acquire(l, "taken", "b", ttl)
	released := b.acquire(l, "released", "a", ttl)
	b.expectAnswer("Release", journal.AnswerWon)(l.Release(b.Context(), released))
	forged := alive
	forged.Token = b.txn().String()
	never := journal.Lease{Name: "never", Token: alive.Token, Fence: 1}
	const won, lost = journal.AnswerWon, journal.AnswerLost
	b.expectRenewals(l, []journal.Answer{lost, lost, won, lost, lost, lost}, lapsed, taken, alive, released, forged, never)
	b.expectRenewals(l, []journal.Answer{})
	for name, holder := range map[string]string{"alive": "a", "lapsed": "a", "taken": "b", "released": ""} {
		got, err := l.Get(b.Context(), name)
		if err != nil || got.Holder != holder || got.Lapsed != (name == "lapsed" || name == "released") {
			b.Fatalf("%s stands as %+v, %v", name, got, err)
		}
		if extended := got.Until.After(b.now().Add(ttl)); extended != (name == "alive") {
			b.Fatalf("%s lives until %v", name, got.Until)
		}
	}
	if _, err := l.Get(b.Context(), "never"); !errors.Is(err, journal.ErrNotFound) {
		b.Fatalf("a renewal has made a lease: %v", err)
	}
}

func released(b *Bed) {
	l := b.leases()
	got := b.acquire(l, "one", "a", ttl)
	wrong := got
	wrong.Fence++
	b.expectAnswer("Release with a wrong fence", journal.AnswerLost)(l.Release(b.Context(), wrong))
	b.expectAnswer("Release", journal.AnswerWon)(l.Release(b.Context(), got))
	b.expectAnswer("second Release", journal.AnswerLost)(l.Release(b.Context(), got))
	stands, err := l.Get(b.Context(), "one")
	if err != nil || stands.Holder != "" || stands.Fence != got.Fence || !stands.Lapsed {
		b.Fatalf("a released lease stands as %+v, %v", stands, err)
	}
}

func raceOfAcquirers(b *Bed) {
	l := b.leases()
	for round := range rounds {
		var mu sync.Mutex
		var winner journal.Lease
		won := 0
		b.atOnce(writers, func(ctx context.Context, i int) {
			r := b.request("one", fmt.Sprint(i), ttl)
			got, answer, err := l.Acquire(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				b.Errorf("Acquire: %v", err)
			}
			if answer == journal.AnswerWon {
				winner = got
				won++
			}
		})
		if won != 1 || winner.Fence != journal.Fence(round+1) {
			b.Fatalf("round %d: %d acquirers won, the last with %+v", round, won, winner)
		}
		b.expectAnswer("Release", journal.AnswerWon)(l.Release(b.Context(), winner))
	}
}

// atOnce runs n functions at once.
func (b *Bed) atOnce(n int, f func(ctx context.Context, i int)) {
	b.Helper()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(b.Context(), i)
		})
	}
	close(start)
	wg.Wait()
}

func leasesListed(b *Bed) {
	l := b.leases()
	var want []journal.Lease
	for _, name := range []string{"b ü", "c/d", "z' OR '1'='1"} {
		want = append(want, b.acquire(l, name, "a", ttl))
	}
	b.expectAnswer("Release", journal.AnswerWon)(l.Release(b.Context(), want[1]))
	want[1].Holder, want[1].Lapsed = "", true
	all, err := l.List(b.Context())
	b.must("List", err)
	var got []journal.Lease
	for _, found := range all {
		if found.Name != "rhizodat.probe" {
			got = append(got, found)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("listed (-want +got):\n%s", diff)
	}
	if _, err := l.Get(b.Context(), "none"); !errors.Is(err, journal.ErrNotFound) {
		b.Fatalf("Get of a lease that never was: %v, want ErrNotFound", err)
	}
}
