package coordinator_test

import (
	"time"

	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

func wait(d time.Duration) func(*scene) {
	return func(s *scene) {
		s.tell("%s pass", d)
		_ = hlc.System.Sleep(s.ctx, d)
	}
}

// down makes every request of one kind unanswered, until up.
func down(actor string, op trace.Op) fake.Script {
	return fake.Script{call(actor, op, 0): {Kind: fake.LostBefore}}
}

func up(s *scene) {
	s.tell("the faults are over")
	s.world.Play(nil)
}

// finishStories: S8 and S9.
func finishStories() []story {
	return []story{
		{name: "s8-lost-before", parts: ab, script: fault("b", trace.Finish, fake.LostBefore), want: done},
		{name: "s8-lost-after", parts: ab, script: fault("b", trace.Finish, fake.LostAfter), want: done},
		{
			name: "s8-late", parts: ab, want: done,
			script: fake.Script{call("b", trace.Finish, 1): {Kind: fake.Late, D: time.Second}},
		},
		{name: "s8-refused-once", parts: ab, script: fault("b", trace.Finish, fake.Refuse), want: done},
		{name: "s8-pending-then-recovery", parts: ab, script: down("b", trace.Finish), want: pending("b"), within: 6 * time.Second},
		{ // and this process sees that nothing is left to do
			name: "s8-pending-then-recovery-beside-this-process", parts: ab, script: down("b", trace.Finish), want: pending("b"),
			after: func(s *scene) { up(s); recoverNow(s); wait(time.Second)(s) },
		},
		{
			name: "s8-pending-then-finished-here", parts: ab, script: down("b", trace.Finish), want: pending("b"),
			after: func(s *scene) { up(s); wait(time.Second)(s) },
		},
		{
			name: "s8-pending-and-one-hangs", parts: abc, want: pending("b c"),
			script: fake.Script{call("b", trace.Finish, 0): {Kind: fake.Hang}},
			after:  wait(2 * time.Second),
		},
		{ // a branch that a person gave up must not come back
			name: "s8-pending-then-skipped", parts: []part{writer("a"), writer("b")}, script: down("b", trace.Finish),
			set: func(s *scene, _ *played) { s.skipped = []string{"b"} },
			after: func(s *scene) {
				s.tell("a person resolves b as skipped")
				s.world.Journal.Annotated(txnOf(1), func(b *journal.Branch) {
					if b.Store == "b" {
						b.Outcome = journal.OutcomeSkipped
					}
				})
				up(s)
				wait(time.Second)(s)
			},
			want: pending("b"),
		},
		{
			name: "s8-pending-and-journal-down", parts: ab, want: pending("b"),
			script: fake.Script{
				call("b", trace.Finish, 0):         {Kind: fake.LostBefore},
				call(trace.Journal, trace.Read, 0): {Kind: fake.LostBefore},
			},
			after: wait(time.Second),
		},
		{name: "s9-lost-before", parts: abc, script: fault("c", trace.Finish, fake.LostBefore), want: done},
		{name: "s9-lost-after", parts: abc, script: fault("c", trace.Finish, fake.LostAfter), want: done},
		{name: "s9-pending", parts: abc, script: down("c", trace.Finish), want: pending("c")},
		{
			name: "s9-killed-before", parts: abc, want: want{committed: true, record: journal.StateDone},
			on: map[string]func(*scene){"S9.before": func(s *scene) { s.app.Kill() }},
		},
	}
}

// doneStories: S10.
func doneStories() []story {
	return []story{
		{name: "s10-lost-before", parts: ab, script: fault(trace.Journal, trace.Done, fake.LostBefore), want: done},
		{name: "s10-lost-after", parts: ab, script: fault(trace.Journal, trace.Done, fake.LostAfter), want: done},
		{name: "s10-left-to-recovery", parts: ab, script: down(trace.Journal, trace.Done), want: done},
		{ // it was not forced
			name: "s10-lost-in-a-crash", parts: ab, want: done,
			after: func(s *scene) { wait(time.Second)(s); s.world.Journal.Crash() },
		},
	}
}

// heuristicStories: a store resolved its branch by itself.
func heuristicStories() []story {
	resolve := func(point, store string, to fake.TxnState) map[string]func(*scene) {
		return map[string]func(*scene){point: func(s *scene) {
			s.units[0].heuristic = true
			s.world.Store(store).Resolve(txnOf(1), to)
		}}
	}
	heuristic := want{verdict: coordinator.VerdictHeuristic, committed: true, record: journal.StateCommitted}
	withPending := heuristic
	withPending.pending = "c"
	return []story{
		{name: "heuristic-rollback-at-s8", parts: ab, on: resolve("S8.before", "b", fake.RolledBack), want: heuristic},
		{name: "heuristic-commit-at-s8", parts: ab, on: resolve("S8.before", "b", fake.Committed), want: done},
		{
			name: "heuristic-and-pending", parts: abc, on: resolve("S8.before", "b", fake.RolledBack),
			script: down("c", trace.Finish), want: withPending,
			after: func(s *scene) { up(s); wait(time.Second)(s) },
		},
		{ // found while this process retries: DONE must not follow
			name: "heuristic-while-pending", parts: abc, script: fake.Script{
				call("b", trace.Finish, 0): {Kind: fake.LostBefore},
				call("c", trace.Finish, 0): {Kind: fake.LostBefore},
			},
			after: func(s *scene) {
				s.units[0].heuristic = true
				s.world.Store("b").Resolve(txnOf(1), fake.RolledBack)
				s.world.Play(down("c", trace.Finish))
				wait(time.Second)(s)
				up(s)
				wait(5 * time.Second)(s)
			},
			want: want{verdict: coordinator.VerdictPending, pending: "b c", committed: true, record: journal.StateCommitted},
		},
		{
			name: "heuristic-and-not-remembered", parts: ab, on: resolve("S8.before", "b", fake.RolledBack),
			script: down(trace.Journal, trace.Annotate), want: heuristic,
			after: func(s *scene) { up(s); wait(time.Second)(s) },
		},
		{
			name: "heuristic-commit-of-an-aborted-unit", parts: ab, on: resolve("S5.after", "a", fake.Committed),
			script: fault("b", trace.Prepare, fake.Refuse),
			want:   want{verdict: coordinator.VerdictHeuristic, committed: true, record: journal.StateAborted},
		},
	}
}
