package trace_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/journal"
)

var (
	txn     = branches.TxnID{15: 1}
	errLost = branches.Unknown(errors.New("lost"))
)

// script writes a trace by hand.
type script struct {
	events []trace.Event
	calls  int
}

// call is a request that is answered, and takes effect, at once.
func (s *script) call(e trace.Event) *script { return s.sent(e).took(e).replied(e) }

func (s *script) add(what trace.What, e trace.Event) *script {
	e.What, e.Txn, e.Call = what, txn, s.calls
	if e.Proc == "" {
		e.Proc = "app"
	}
	if e.Actor == "" {
		e.Actor = trace.Journal
	}
	s.events = append(s.events, e)
	return s
}

func (s *script) sent(e trace.Event) *script { s.calls++; return s.add(trace.Sent, e) }

func (s *script) took(e trace.Event) *script { return s.add(trace.Took, e) }

func (s *script) replied(e trace.Event) *script { return s.add(trace.Replied, e) }

func (s *script) ended(v coordinator.Verdict, err error) *script {
	return s.add(trace.Ended, trace.Event{End: coordinator.Outcome{DatTxn: txn, Verdict: v, Err: err}})
}

func (s *script) stage(votes ...branches.Vote) *script {
	for i, vote := range votes {
		s.call(trace.Event{Actor: names[i], Op: trace.Stage, Vote: vote, Own: true})
	}
	return s
}

var names = []string{"a", "b", "c"}

func (s *script) active() *script { return s.call(trace.Event{Op: trace.Create}) }

func (s *script) prepare(stores ...string) *script {
	for _, store := range stores {
		s.call(trace.Event{Actor: store, Op: trace.Prepare, Own: true, Wrote: true})
	}
	return s
}

func (s *script) decide() *script {
	return s.call(trace.Event{Op: trace.Decide, Forced: true, State: journal.StateCommitted})
}

func (s *script) finish(stores ...string) *script {
	for _, store := range stores {
		s.call(trace.Event{Actor: store, Op: trace.Finish, Wrote: true})
		s.add(trace.Point, trace.Event{Step: coordinator.StepEvent{Step: coordinator.S8, Moment: coordinator.After, Store: store}})
	}
	return s
}

func (s *script) by(proc, actor string, op trace.Op) *script {
	return s.call(trace.Event{Proc: proc, Actor: actor, Op: op, Wrote: true})
}

func (s *script) forbid(proc string, forced bool, state journal.State) *script {
	return s.call(trace.Event{Proc: proc, Op: trace.Forbid, Forced: forced, State: state})
}

func (s *script) done() *script { return s.call(trace.Event{Op: trace.Done, State: journal.StateDone}) }

// ready is a unit of two writers that has come as far as S7.
func ready() *script {
	s := &script{}
	return s.stage(branches.VotePrepare, branches.VotePrepare).active().prepare("a", "b")
}

// withReader is the same with a branch c that wrote nothing.
func withReader() *script {
	s := &script{}
	return s.stage(branches.VotePrepare, branches.VotePrepare, branches.VoteReadOnly).active().prepare("a", "b").
		call(trace.Event{Actor: "c", Op: trace.Ping, Own: true})
}

// TestCheckReports hand-made bad traces, each for its rule and no other.
func TestCheckReports(t *testing.T) {
	const committed, read = journal.StateCommitted, journal.StateCommitted
	bad := fmt.Errorf("commit: %w", context.DeadlineExceeded)
	for _, test := range []struct {
		name  string
		trace *script
		want  trace.Rule
	}{
		{"PREPARE without a record", (&script{}).stage(2, 2).prepare("a"), trace.I1},
		{"PREPARE beside ACTIVE", (&script{}).stage(2, 2).sent(trace.Event{Op: trace.Create}).prepare("a"), trace.I1},
		{"PREPARE after a lost ACTIVE", (&script{}).stage(2, 2).sent(trace.Event{Op: trace.Create}).took(trace.Event{Op: trace.Create}).replied(trace.Event{Op: trace.Create, Err: errLost}).prepare("a"), trace.I1},
		{"release before S7", ready().finish("a"), trace.I2},
		{"release beside S7", ready().sent(trace.Event{Op: trace.Decide, Forced: true}).finish("a"), trace.I2},
		{"release after a lost S7", ready().sent(trace.Event{Op: trace.Decide, Forced: true}).took(trace.Event{Op: trace.Decide, Forced: true, State: committed}).replied(trace.Event{Op: trace.Decide, Err: errLost}).finish("a"), trace.I2},
		{"release after COMMITTED was only read", ready().call(trace.Event{Proc: "r", Op: trace.Read, State: read}).by("r", "a", trace.Finish), trace.I2},
		{"release after a hardening without another look", ready().call(trace.Event{Proc: "r", Op: trace.Read, State: read}).call(trace.Event{Proc: "r", Op: trace.Harden, Forced: true}).by("r", "a", trace.Finish), trace.I2},
		{"release on what another process knows", ready().decide().by("r", "a", trace.Finish), trace.I2},
		{"one phase beside another writer", (&script{}).stage(2, 2).by("app", "a", trace.Commit), trace.I2},
		{"a rollback after InDoubt", ready().sent(trace.Event{Op: trace.Decide, Forced: true}).replied(trace.Event{Op: trace.Decide, Err: errLost}).ended(coordinator.VerdictInDoubt, nil).forbid("app", true, journal.StateAborted).by("app", "a", trace.Abort), trace.I3},
		{"a reader's end after InDoubt", withReader().sent(trace.Event{Op: trace.Decide, Forced: true}).replied(trace.Event{Op: trace.Decide, Err: errLost}).ended(coordinator.VerdictInDoubt, nil).call(trace.Event{Actor: "c", Op: trace.Rollback, Own: true}), trace.I3},
		{"a rollback after the decision", ready().decide().by("app", "a", trace.Abort), trace.I4},
		{"a decision that was not conditional", ready().forbid("r", true, journal.StateAborted).sent(trace.Event{Proc: "r", Actor: "a", Op: trace.Abort}).decide().took(trace.Event{Proc: "r", Actor: "a", Op: trace.Abort, Wrote: true}), trace.I4},
		{"a commit reported as a timeout", ready().decide().finish("a").ended(coordinator.VerdictPending, bad), trace.I4},
		{"ErrBadConn", ready().ended(coordinator.VerdictAborted, driver.ErrBadConn), trace.I4},
		{"S7 before every PREPARE was answered", (&script{}).stage(2, 2).active().prepare("a").decide(), trace.AllReady},
		{"S7 after a lost PREPARE", (&script{}).stage(2, 2).active().prepare("a").sent(trace.Event{Actor: "b", Op: trace.Prepare}).replied(trace.Event{Actor: "b", Op: trace.Prepare, Err: errLost}).decide(), trace.AllReady},
		{"S7 before a reader has answered", (&script{}).stage(2, 2, 1).active().prepare("a", "b").decide(), trace.AllReady},
		{"a sweep without ABORTED", ready().by("r", "a", trace.Abort), trace.Presumed},
		{"a sweep with an unforced ABORTED", ready().forbid("r", false, journal.StateAborted).by("r", "a", trace.Abort), trace.Presumed},
		{"a sweep on another's ABORTED", ready().forbid("q", true, journal.StateAborted).by("r", "a", trace.Abort), trace.Presumed},
		{"an abort of our own after S7 was sent", ready().sent(trace.Event{Op: trace.Decide, Forced: true}).replied(trace.Event{Op: trace.Decide, Err: errLost}).by("app", "a", trace.Abort), trace.Presumed},
		{"a reader ended before S7", withReader().call(trace.Event{Actor: "c", Op: trace.Commit, Own: true}), trace.Guarded},
		{"a reader ended before an S8", withReader().decide().finish("a").call(trace.Event{Actor: "c", Op: trace.Commit, Own: true}), trace.Guarded},
		{"a reader ended before the one writer", (&script{}).stage(2, 1).call(trace.Event{Actor: "b", Op: trace.Commit, Own: true}), trace.Guarded},
		{"DONE before every S8", ready().decide().finish("a").done(), trace.Finished},
		{"nil with a branch missing", ready().decide().finish("a").ended(coordinator.VerdictCommitted, nil), trace.Truth},
		{"pending and not decided", ready().ended(coordinator.VerdictPending, nil), trace.Truth},
		{"aborted and decided", ready().decide().ended(coordinator.VerdictAborted, nil), trace.Truth},
		{"aborted and decided later", ready().ended(coordinator.VerdictAborted, nil).decide(), trace.Truth},
		{"aborted and a branch committed later", (&script{}).stage(2).ended(coordinator.VerdictAborted, nil).took(trace.Event{Actor: "a", Op: trace.Commit, Wrote: true}), trace.Truth},
		{"no outcome", ready().ended(coordinator.VerdictNone, nil), trace.Truth},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rules []trace.Rule
			for _, v := range trace.Check(test.trace.events) {
				rules = append(rules, v.Rule)
				if v.Text == "" || v.Txn != txn {
					t.Errorf("violation says too little: %v", v)
				}
			}
			if rules = slices.Compact(rules); len(rules) != 1 || rules[0] != test.want {
				t.Errorf("reported %v, want %s\n%s", trace.Check(test.trace.events), test.want, trace.Text(test.trace.events))
			}
		})
	}
}

// TestCheckAccepts what the protocol allows.
func TestCheckAccepts(t *testing.T) {
	lostS7 := func() *script {
		return ready().sent(trace.Event{Op: trace.Decide, Forced: true}).replied(trace.Event{Op: trace.Decide, Err: errLost})
	}
	for _, test := range []struct {
		name    string
		trace   *script
		skipped []string
	}{
		{"a commit", ready().decide().finish("a", "b").ended(coordinator.VerdictCommitted, nil).done(), nil},
		{"a commit with a reader", withReader().decide().finish("a", "b").call(trace.Event{Actor: "c", Op: trace.Commit, Own: true}).ended(coordinator.VerdictCommitted, nil), nil},
		{"an abort of our own", ready().forbid("app", false, journal.StateAborted).by("app", "a", trace.Abort).ended(coordinator.VerdictAborted, nil), nil},
		{"an abort proved after a lost S7", lostS7().forbid("app", true, journal.StateAborted).by("app", "a", trace.Abort), nil},
		{"recovery rolls back", ready().forbid("r", true, journal.StateAborted).by("r", "a", trace.Abort), nil},
		{
			"recovery rolls forward", ready().decide().call(trace.Event{Proc: "r", Op: trace.Read, State: journal.StateCommitted}).
				call(trace.Event{Proc: "r", Op: trace.Harden, Forced: true}).
				call(trace.Event{Proc: "r", Op: trace.Read, State: journal.StateCommitted}).by("r", "a", trace.Finish), nil,
		},
		{"in doubt and left alone", lostS7().ended(coordinator.VerdictInDoubt, nil), nil},
		{"a person's skip", ready().decide().finish("a").by("app", "b", trace.Abort).done(), []string{"b"}},
		{"a decision lost in a crash", lostS7().took(trace.Event{Op: trace.Decide, Forced: true, Soft: true, State: journal.StateCommitted}).add(trace.Crashed, trace.Event{}).forbid("r", true, journal.StateAborted).by("r", "a", trace.Abort), nil},
		{"one phase", (&script{}).stage(2, 1).by("app", "a", trace.Commit).call(trace.Event{Actor: "b", Op: trace.Commit, Own: true}).ended(coordinator.VerdictCommitted, nil), nil},
	} {
		if found := trace.Check(test.trace.events, test.skipped...); len(found) > 0 {
			t.Errorf("%s: reported %v", test.name, found)
		}
	}
}

func TestFateViolations(t *testing.T) {
	end := func(v coordinator.Verdict) *coordinator.Outcome { return &coordinator.Outcome{Verdict: v} }
	both, half, none := map[string]bool{"a": true, "b": true}, map[string]bool{"a": true, "b": false}, map[string]bool{"a": false, "b": false}
	for _, test := range []struct {
		name string
		fate trace.Fate
		want trace.Rule // empty: none
	}{
		{"committed", trace.Fate{Writers: both, Times: 1, Record: journal.StateDone, Reported: end(coordinator.VerdictCommitted)}, ""},
		{"aborted", trace.Fate{Writers: none, Record: journal.StateAborted, Reported: end(coordinator.VerdictAborted)}, ""},
		{"in doubt, either way", trace.Fate{Writers: none, Reported: end(coordinator.VerdictInDoubt)}, ""},
		{"heuristic", trace.Fate{Writers: half, Record: journal.StateCommitted, Heuristic: true, Reported: end(coordinator.VerdictHeuristic)}, ""},
		{"half", trace.Fate{Writers: half, Record: journal.StateAborted}, trace.Whole},
		{"under two times", trace.Fate{Writers: both, Times: 2}, trace.Whole},
		{"a gid left", trace.Fate{Writers: none, Prepared: []string{"a"}}, trace.Whole},
		{"a record left", trace.Fate{Writers: both, Record: journal.StateCommitted}, trace.Whole},
		{"DONE too early", trace.Fate{Writers: half, Record: journal.StateDone, Heuristic: true}, trace.Finished},
		{"false commit", trace.Fate{Writers: none, Reported: end(coordinator.VerdictCommitted)}, trace.Truth},
		{"false pending", trace.Fate{Writers: none, Reported: end(coordinator.VerdictPending)}, trace.Truth},
		{"false abort", trace.Fate{Writers: both, Reported: end(coordinator.VerdictAborted)}, trace.Truth},
		{"false heuristic", trace.Fate{Writers: both, Reported: end(coordinator.VerdictHeuristic)}, trace.Truth},
	} {
		found := test.fate.Violations()
		switch {
		case test.want == "" && len(found) == 0:
		case len(found) != 1 || found[0].Rule != test.want:
			t.Errorf("%s: reported %v, want %q", test.name, found, test.want)
		}
	}
}
