package coordinator_test

import (
	"errors"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/journal"
)

// under grants a lease, and puts the unit under it.
func under(s *scene, p *played) {
	p.unit.Lease, p.unit.Fence = "p", s.world.Journal.Grant("p")
}

// transferred grants it to somebody else.
func transferred(s *scene) { s.world.Journal.Grant("p") }

// fenced checks that the outcome says by what.
func fenced(t *testing.T, s *scene) {
	t.Helper()
	err := s.units[0].out.Err
	found, ok := errors.AsType[*journal.Fenced](err)
	if !ok || *found != (journal.Fenced{Lease: "p", Fence: 1, Current: 2}) || coordinator.IsRetryable(err) {
		t.Errorf("got %v, want *Fenced by 2 that is not retryable", err)
	}
	if !s.ended[0].Conflict {
		t.Error("the observer was not told of a conflict")
	}
}

// leaseStories: units under a lease.
func leaseStories() []story {
	late := func(st story) story {
		st.set, st.check, st.want = under, fenced, aborted(branches.Permanent, "")
		if st.on == nil {
			st.on = map[string]func(*scene){"S7.before": transferred}
		}
		return st
	}
	one := []part{writer("a")}
	return []story{
		{name: "lease-two-branches", parts: ab, set: under, want: done},
		{name: "lease-one-branch", parts: one, set: under, want: done},
		{name: "lease-one-certain-branch", parts: []part{certain("a")}, set: under, want: done},
		{name: "lease-one-payload", parts: []part{payload("c")}, set: under, want: done},
		{name: "lease-reader-and-one-writer", parts: []part{reader("r"), writer("a")}, set: under, want: done},
		{name: "lease-read-only", parts: []part{reader("a")}, config: markers(), set: under, want: doneNothing},
		{name: "lease-no-journal", parts: one, config: plain(), set: under, want: abortedUnwritten(branches.Permanent, "")},
		late(story{name: "lease-late", parts: abc}),
		late(story{name: "lease-late-s6-apart", parts: ab, config: split()}),
		late(story{name: "lease-late-one-branch", parts: one}),
		late(story{name: "lease-late-during-work", parts: ab, on: map[string]func(*scene){"S3.before": transferred}}),
		{ // S7 had won before the lease went to another: its lost answer is read back
			name: "lease-transferred-after-a-lost-s7", parts: ab, set: under, want: done,
			script: fault(trace.Journal, trace.Decide, fake.LostAfter),
			on:     map[string]func(*scene){"S7.after": transferred},
		},
		{ // and of one that never arrived nothing will
			name: "lease-lost-before", parts: ab, set: under, want: aborted(branches.Transient, ""),
			script: fault(trace.Journal, trace.Decide, fake.LostBefore),
		},
		{ // the decision stands: recovery finishes it whoever has the lease now
			name: "lease-killed-after-s7", parts: ab, set: under,
			on: map[string]func(*scene){"S7.after": func(s *scene) {
				transferred(s)
				s.app.Kill()
			}},
			want: want{committed: true, record: journal.StateDone},
		},
	}
}

var stepKey = journal.StepKey{Execution: "e", Label: "l", Input: "0"}

// recording makes the unit record a step that is its own.
func recording(s *scene, p *played) {
	s.world.Journal.Claim(stepKey, "mine")
	p.unit.Step = &journal.StepRecord{Key: stepKey, Token: "mine", Value: []byte("value")}
}

func recorded(want bool) func(*testing.T, *scene) {
	return func(t *testing.T, s *scene) {
		t.Helper()
		if value, ok := s.world.Journal.Value(stepKey); ok != want || ok && string(value) != "value" {
			t.Errorf("the step holds %q, %t, want %t", value, ok, want)
		}
	}
}

// stepStories: units that are a step's effect.
func stepStories() []story {
	return []story{
		{name: "step-two-branches", parts: ab, set: recording, check: recorded(true), want: done},
		{name: "step-one-branch", parts: []part{writer("a")}, set: recording, check: recorded(true), want: done},
		{name: "step-read-only", parts: []part{reader("a")}, set: recording, check: recorded(true), want: want{verdict: coordinator.VerdictCommitted, record: journal.StateDone}},
		{name: "step-no-branch", set: recording, check: recorded(true), want: want{verdict: coordinator.VerdictCommitted, record: journal.StateDone}},
		{
			name: "step-superseded", parts: ab, set: recording, want: aborted(branches.Permanent, ""),
			on: map[string]func(*scene){"S7.before": func(s *scene) { s.world.Journal.Claim(stepKey, "another's") }},
			check: func(t *testing.T, s *scene) {
				t.Helper()
				recorded(false)(t, s)
				if err, ok := errors.AsType[*journal.Superseded](s.units[0].out.Err); !ok || err.Key != stepKey {
					t.Errorf("got %v, want *Superseded", s.units[0].out.Err)
				}
			},
		},
		{
			name: "step-refused", parts: ab, set: recording, check: recorded(false), want: aborted(branches.Constraint, "b"),
			script: fake.Script{call("b", trace.Prepare, 1): {Kind: fake.Refuse, Err: duplicate}},
		},
		{
			name: "step-lost-after", parts: ab, set: recording, check: recorded(true), want: done,
			script: fault(trace.Journal, trace.Decide, fake.LostAfter),
		},
	}
}
