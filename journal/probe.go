package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// probeName is the lease and the execution of a probe's step. The lease's row
// stays, the step's goes.
const probeName = "rhizodat.probe"

// held is how long a probe's claim lives that must be seen alive. A program
// that dies in between leaves a step behind that lapses with it.
const held = time.Minute

// Probe proves that a journal's conditional writes answer for what they do, and
// that expiry is judged by a clock that runs while the statement does. It is
// called before anything rests on them. *Unfit when they do not; any other
// error proves nothing.
func Probe(ctx context.Context, leases Leases, steps Steps) error {
	if err := probeSteps(ctx, steps); err != nil {
		return err
	}
	return probeFence(ctx, leases)
}

// probeSteps works on a row of its own: create-if-absent and replace-if-version.
func probeSteps(ctx context.Context, steps Steps) error {
	key := StepKey{Execution: probeName, Label: rand.Text(), Input: "0"}
	claim := func(token, replaces string, ttl time.Duration) func() (Answer, error) {
		return func() (Answer, error) {
			_, a, err := steps.Claim(ctx, StepRequest{Key: key, Holder: probeName, Token: token, TTL: ttl, Replaces: replaces})
			return a, err
		}
	}
	release := func(token string) func() (Answer, error) {
		return func() (Answer, error) { return steps.Release(ctx, key, token) }
	}
	return checks{
		{"create applies", AnswerWon, claim("a", "", 0)},
		{"second create loses", AnswerLost, claim("b", "", 0)},
		{"replace with a wrong version loses", AnswerLost, claim("b", "c", 0)},
		{"replace with the right version applies once lapsed", AnswerWon, claim("b", "a", held)},
		{"the version that was replaced loses", AnswerLost, release("a")},
		{"a claim that lives is not replaced", AnswerLost, claim("c", "b", 0)},
		{"delete with the right version applies", AnswerWon, release("b")},
		{"second delete loses", AnswerLost, release("b")},
	}.run()
}

// probeFence works on a lease that every probe shares and none holds: a grant of
// no duration is lapsed at once. What is lost to another probe proves nothing.
func probeFence(ctx context.Context, leases Leases) error {
	var granted [2]Lease
	for i := range granted {
		r := LeaseRequest{Name: probeName, Holder: rand.Text(), Token: rand.Text()}
		l, a, err := leases.Acquire(ctx, r)
		switch {
		case err != nil:
			return fmt.Errorf("rhizodat: probe journal: %w", err)
		case a != AnswerWon:
			return nil
		case l.Token != r.Token || l.Fence <= 0:
			return &Unfit{Check: "a grant is the one that was asked for"}
		}
		granted[i] = l
	}
	first := granted[0]
	if granted[1].Fence <= first.Fence {
		return &Unfit{Check: "a lapsed lease is granted with a higher fence"}
	}
	return checks{
		{"release with a wrong fence loses", AnswerLost, func() (Answer, error) { return leases.Release(ctx, first) }},
		{"renewal with a wrong fence loses", AnswerLost, func() (Answer, error) {
			answers, err := leases.Renew(ctx, []LeaseRenewal{{Name: first.Name, Token: first.Token, Fence: first.Fence, TTL: held}})
			if err == nil && len(answers) != 1 {
				err = errors.New("a renewal of one lease has not one answer")
			}
			if err != nil {
				return AnswerUnknown, err
			}
			return answers[0], nil
		}},
	}.run()
}

type checks []struct {
	name string
	want Answer
	do   func() (Answer, error)
}

func (list checks) run() error {
	for _, c := range list {
		got, err := c.do()
		if err != nil {
			return fmt.Errorf("rhizodat: probe journal: %s: %w", c.name, err)
		}
		// Unknown without an error: another probe had locked the row.
		if got != c.want && got != AnswerUnknown {
			return &Unfit{Check: c.name}
		}
	}
	return nil
}
