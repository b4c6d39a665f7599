package journaltest

import (
	"errors"

	"github.com/rhizodat/rhizodat-go/journal"
)

var fences = []Item{
	{"fence/S7 applies with the fence that stands, and with no other", fencedDecision},
	{"fence/expiry alone stops nobody, nor does a renewal", fenceOutlivesExpiry},
	{"fence/S7 records a step's value with the decision, or neither", decidedStep},
	{"fence/S7 asks for fence and claim together", fencedStep},
}

// under writes a record that is to be decided under a lease.
func (b *Bed) under(s journal.Session, l journal.Lease) journal.Decision {
	b.Helper()
	rec := b.record()
	rec.Lease, rec.Fence = l.Name, l.Fence
	rec = b.write(s, rec)
	if got := b.read(s, rec.Txn); got.Lease != l.Name || got.Fence != l.Fence {
		b.Fatalf("the record carries lease %q and fence %v, want %q and %v", got.Lease, got.Fence, l.Name, l.Fence)
	}
	return journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime, Lease: l.Name, Fence: l.Fence}
}

// expectFenced wants a refusal that names both fences, and an open record.
func (b *Bed) expectFenced(s journal.Session, d journal.Decision, current journal.Fence) {
	b.Helper()
	before := b.read(s, d.Txn)
	err := s.Decide(b.Context(), d)
	fenced, ok := errors.AsType[*journal.Fenced](err)
	if !ok || *fenced != (journal.Fenced{Lease: d.Lease, Fence: d.Fence, Current: current}) {
		b.Fatalf("Decide: %v, want a *Fenced by %v", err, current)
	}
	if diff := same(before, b.read(s, d.Txn)); diff != "" {
		b.Fatalf("a fenced S7 has changed the record:\n%s", diff)
	}
}

func fencedDecision(b *Bed) {
	s, l := b.session(), b.leases()
	for _, with := range []bool{true, false} { // S6 in the same request, and apart
		name := map[bool]string{true: "together", false: "apart"}[with]
		first := b.acquire(l, name, "a", 0)
		late := b.under(s, first)
		second := b.acquire(l, name, "b", ttl)
		good := b.under(s, second)
		late.WithPrepare, good.WithPrepare = with, with
		if !with {
			b.must("Prepare", s.Prepare(b.Context(), late))
			b.must("Prepare", s.Prepare(b.Context(), good))
		}
		b.expectFenced(s, late, second.Fence)
		b.must("Decide", s.Decide(b.Context(), good))
		b.expectState(s, good.Txn, journal.StateCommitted)
		b.expectConflict(s.Decide(b.Context(), good), good.Txn, journal.StateCommitted) // again: lost
		b.expectFenced(s, late, second.Fence)
		b.abort(s, late.Txn)
		b.expectConflict(s.Decide(b.Context(), late), late.Txn, journal.StateAborted)
	}
	never := b.under(s, journal.Lease{Name: "never", Fence: 1})
	never.WithPrepare = true
	b.expectFenced(s, never, 0)
}

func fenceOutlivesExpiry(b *Bed) {
	s, l := b.session(), b.leases()
	lapsed := b.under(s, b.acquire(l, "lapsed", "a", 0))
	renewed := b.acquire(l, "renewed", "a", ttl)
	decision := b.under(s, renewed)
	b.expectRenewals(l, []journal.Answer{journal.AnswerWon}, renewed)
	for _, d := range []journal.Decision{lapsed, decision} {
		d.WithPrepare = true
		b.must("Decide", s.Decide(b.Context(), d))
		b.expectState(s, d.Txn, journal.StateCommitted)
	}
}

func decidedStep(b *Bed) {
	s, all := b.session(), b.steps()
	decide := func(claim journal.Step, value string) (journal.Decision, error) {
		b.Helper()
		rec := b.write(s, b.record())
		step := record(claim, value)
		d := journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime, WithPrepare: true, Step: &step}
		return d, s.Decide(b.Context(), d)
	}
	expectPending := func(label string) {
		b.Helper()
		if got := b.step(all, label); got.Recorded {
			b.Fatalf("a value was recorded without its decision: %+v", got)
		}
	}
	claim := b.claim(all, "one", 0)
	forged := claim
	forged.Token = b.txn().String()
	d, err := decide(forged, "forged")
	if superseded, ok := errors.AsType[*journal.Superseded](err); !ok || superseded.Key != claim.Key {
		b.Fatalf("Decide under another's claim: %v, want a *Superseded", err)
	}
	b.expectState(s, d.Txn, journal.StateActive)
	expectPending("one")

	// A record that was aborted records nothing.
	rec := b.write(s, b.record())
	b.abort(s, rec.Txn)
	step := record(claim, "of an aborted unit")
	err = s.Decide(b.Context(), journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime, WithPrepare: true, Step: &step})
	b.expectConflict(err, rec.Txn, journal.StateAborted)
	expectPending("one")

	d, err = decide(claim, "first")
	b.must("Decide", err)
	b.expectState(s, d.Txn, journal.StateCommitted)
	if got := b.step(all, "one"); !got.Recorded || string(got.Value) != "first" {
		b.Fatalf("the step stands as %+v", got)
	}
	if _, err = decide(claim, "second"); err == nil {
		b.Fatalf("a second value was recorded")
	}
	if got := b.step(all, "one"); string(got.Value) != "first" {
		b.Fatalf("the value became %q", got.Value)
	}
}

func fencedStep(b *Bed) {
	s, l, all := b.session(), b.leases(), b.steps()
	claim := b.claim(all, "one", ttl)
	first := b.acquire(l, "one", "a", 0)
	late := b.under(s, first)
	second := b.acquire(l, "one", "b", ttl)
	step := record(claim, "value")
	late.WithPrepare, late.Step = true, &step
	b.expectFenced(s, late, second.Fence)
	if got := b.step(all, "one"); got.Recorded {
		b.Fatalf("a fenced unit has recorded %q", got.Value)
	}
	good := b.under(s, second)
	good.WithPrepare, good.Step = true, &step
	b.must("Decide", s.Decide(b.Context(), good))
	if got := b.step(all, "one"); string(got.Value) != "value" {
		b.Fatalf("the step stands as %+v", got)
	}
}
