package journaltest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/journal"
)

var steps = []Item{
	{"step/one of 16 claims wins", raceOfClaims},
	{"step/the first value stands", firstValue},
	{"step/a value comes back byte by byte", valueBytes},
	{"step/a claim is taken over once it has lapsed, by naming it", takeOver},
	{"step/a released claim is nobody's", stepReleased},
	{"step/each renewal is answered for", stepRenewals},
	{"step/all are listed, and old ones removed", stepsListed},
}

func (b *Bed) steps() journal.Steps {
	b.Helper()
	s, err := b.conditional().Steps(b.Context())
	b.must("Steps", err)
	return s
}

func stepKey(label string) journal.StepKey {
	return journal.StepKey{Execution: "run 7", Label: label, Input: "9f86d081884c7d65"}
}

func (b *Bed) claim(s journal.Steps, label string, ttl time.Duration) journal.Step {
	b.Helper()
	r := journal.StepRequest{Key: stepKey(label), Holder: "a", Token: b.txn().String(), TTL: ttl}
	got, answer, err := s.Claim(b.Context(), r)
	b.expectAnswer("Claim", journal.AnswerWon)(answer, err)
	if got.Key != r.Key || got.Holder != "a" || got.Token != r.Token || got.Recorded {
		b.Fatalf("Claim of %s won %+v", label, got)
	}
	return got
}

func (b *Bed) step(s journal.Steps, label string) journal.Step {
	b.Helper()
	got, err := s.Get(b.Context(), stepKey(label))
	b.must("Get", err)
	return got
}

func record(s journal.Step, value string) journal.StepRecord {
	return journal.StepRecord{Key: s.Key, Token: s.Token, Value: []byte(value)}
}

func raceOfClaims(b *Bed) {
	s := b.steps()
	for round := range rounds {
		var mu sync.Mutex
		won, label := 0, string(rune('a'+round))
		b.atOnce(writers, func(ctx context.Context, _ int) {
			r := journal.StepRequest{Key: stepKey(label), Holder: "a", Token: b.txn().String(), TTL: ttl}
			stands, answer, err := s.Claim(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				b.Errorf("Claim: %v", err)
			case answer == journal.AnswerWon:
				won++
			case stands.Token == r.Token || stands.Recorded:
				b.Errorf("a caller that lost was told %+v", stands)
			}
		})
		if won != 1 {
			b.Fatalf("%d claims won, want 1", won)
		}
	}
}

func firstValue(b *Bed) {
	s := b.steps()
	claim := b.claim(s, "one", ttl)
	forged := record(claim, "forged")
	forged.Token = b.txn().String()
	b.expectAnswer("Record under another's claim", journal.AnswerLost)(s.Record(b.Context(), forged))
	b.expectAnswer("Record", journal.AnswerWon)(s.Record(b.Context(), record(claim, "first")))
	b.expectAnswer("second Record", journal.AnswerLost)(s.Record(b.Context(), record(claim, "second")))
	b.expectAnswer("Release of a recorded step", journal.AnswerLost)(s.Release(b.Context(), claim.Key, claim.Token))
	stands, answer, err := s.Claim(b.Context(), journal.StepRequest{
		Key: claim.Key, Holder: "b", Token: b.txn().String(), TTL: ttl, Replaces: claim.Token,
	})
	b.expectAnswer("Claim of a recorded step", journal.AnswerLost)(answer, err)
	for _, got := range []journal.Step{stands, b.step(s, "one")} {
		if !got.Recorded || string(got.Value) != "first" || got.Holder != "a" {
			b.Fatalf("the step stands as %+v, want the first value", got)
		}
	}
}

func valueBytes(b *Bed) {
	s := b.steps()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for label, value := range map[string][]byte{
		"empty": {}, "every byte": every, "greatest": bytes.Repeat(every, journal.MaxStepValue/256),
	} {
		claim := b.claim(s, label, ttl)
		b.expectAnswer("Record", journal.AnswerWon)(s.Record(b.Context(), journal.StepRecord{Key: claim.Key, Token: claim.Token, Value: value}))
		if got := b.step(s, label); !got.Recorded || !bytes.Equal(got.Value, value) {
			b.Fatalf("%s: %d bytes came back as %d", label, len(value), len(got.Value))
		}
	}
}

func takeOver(b *Bed) {
	s := b.steps()
	first := b.claim(s, "one", 0)
	replace := func(token string, ttl time.Duration) (journal.Step, journal.Answer, error) {
		return s.Claim(b.Context(), journal.StepRequest{
			Key: first.Key, Holder: "b", Token: b.txn().String(), TTL: ttl, Replaces: token,
		})
	}
	before := b.step(s, "one")
	for name, token := range map[string]string{"naming nobody": "", "naming the wrong claim": b.txn().String()} {
		_, answer, err := replace(token, ttl)
		b.expectAnswer("take-over "+name, journal.AnswerLost)(answer, err)
	}
	if diff := cmp.Diff(before, b.step(s, "one")); diff != "" {
		b.Fatalf("a refused take-over has changed the row:\n%s", diff)
	}
	second, answer, err := replace(first.Token, ttl)
	b.expectAnswer("take-over", journal.AnswerWon)(answer, err)
	if second.Holder != "b" || second.Token == first.Token || second.Recorded {
		b.Fatalf("taken over as %+v", second)
	}
	_, answer, err = replace(second.Token, ttl)
	b.expectAnswer("take-over of a claim that lives", journal.AnswerLost)(answer, err)
	b.expectAnswer("Record by the owner that was replaced", journal.AnswerLost)(s.Record(b.Context(), record(first, "late")))
	b.expectAnswer("Release by it", journal.AnswerLost)(s.Release(b.Context(), first.Key, first.Token))
	b.expectAnswer("Record", journal.AnswerWon)(s.Record(b.Context(), record(second, "value")))
	if got := b.step(s, "one"); string(got.Value) != "value" || got.Holder != "b" {
		b.Fatalf("the step stands as %+v", got)
	}
	// Lapsed and not taken over: the effect is done, and its value counts.
	lapsed := b.claim(s, "two", 0)
	b.expectAnswer("Record under a claim that has lapsed", journal.AnswerWon)(s.Record(b.Context(), record(lapsed, "value")))
}

func stepReleased(b *Bed) {
	s := b.steps()
	claim := b.claim(s, "one", ttl)
	b.expectAnswer("Release by another", journal.AnswerLost)(s.Release(b.Context(), claim.Key, b.txn().String()))
	b.expectAnswer("Release", journal.AnswerWon)(s.Release(b.Context(), claim.Key, claim.Token))
	if _, err := s.Get(b.Context(), claim.Key); !errors.Is(err, journal.ErrNotFound) {
		b.Fatalf("Get of a released step: %v, want ErrNotFound", err)
	}
	b.expectAnswer("Record after the release", journal.AnswerLost)(s.Record(b.Context(), record(claim, "late")))
	b.claim(s, "one", ttl)
}

func stepRenewals(b *Bed) {
	s := b.steps()
	alive, lapsed, recorded := b.claim(s, "alive", ttl), b.claim(s, "lapsed", 0), b.claim(s, "recorded", ttl)
	b.expectAnswer("Record", journal.AnswerWon)(s.Record(b.Context(), record(recorded, "value")))
	forged := alive
	forged.Token = b.txn().String()
	var list []journal.StepRenewal
	for _, c := range []journal.Step{lapsed, alive, recorded, forged} {
		list = append(list, journal.StepRenewal{Key: c.Key, Token: c.Token, TTL: 2 * ttl})
	}
	got, err := s.Renew(b.Context(), list)
	b.must("Renew", err)
	if want := []journal.Answer{journal.AnswerLost, journal.AnswerWon, journal.AnswerLost, journal.AnswerLost}; !slices.Equal(got, want) {
		b.Fatalf("renewals %v, want %v", got, want)
	}
	if until := b.step(s, "alive").Until; !until.After(b.now().Add(ttl)) {
		b.Fatalf("the claim lives until %v", until)
	}
}

func stepsListed(b *Bed) {
	s := b.steps()
	lister, ok := s.(journal.StepLister)
	if !ok {
		b.Fatalf("%T is no journal.StepLister", s)
	}
	recorded, alive := b.claim(s, "recorded", ttl), b.claim(s, "alive", ttl)
	b.claim(s, "lapsed", 0)
	b.expectAnswer("Record", journal.AnswerWon)(s.Record(b.Context(), record(recorded, "value")))
	list := func() (labels []string) {
		b.must("List", lister.List(b.Context(), func(found journal.Step) error {
			if found.Value != nil || found.Recorded != (found.Key.Label == "recorded") {
				b.Fatalf("listed %+v", found)
			}
			labels = append(labels, found.Key.Label)
			return nil
		}))
		return labels
	}
	if got, want := list(), []string{"alive", "lapsed", "recorded"}; !slices.Equal(got, want) {
		b.Fatalf("listed %v, want %v", got, want)
	}
	remove := func(before time.Time, limit, want int) {
		b.Helper()
		if n, err := lister.Remove(b.Context(), before, limit); err != nil || n != want {
			b.Fatalf("Remove: %d, %v, want %d", n, err, want)
		}
	}
	remove(b.now().Add(-time.Minute), 10, 0)
	remove(b.now().Add(time.Minute), 1, 1)
	remove(b.now().Add(time.Minute), 10, 1)
	if got, want := list(), []string{"alive"}; !slices.Equal(got, want) {
		b.Fatalf("after Remove there is %v, want %v: a claim that lives stays", got, want)
	}
	b.expectAnswer("Record", journal.AnswerWon)(s.Record(b.Context(), record(alive, "value")))
}
