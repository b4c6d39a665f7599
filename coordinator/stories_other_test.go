package coordinator_test

import (
	"context"
	"errors"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
)

func markers() coordinator.Config { return coordinator.Config{Markers: true} }

func plain() coordinator.Config { return coordinator.Config{Journal: noJournal{}} }

// onePhaseStories: at most one branch that wrote.
func onePhaseStories() []story {
	one := []part{writer("a")}
	inDoubt := want{verdict: coordinator.VerdictInDoubt}
	return []story{
		{name: "one-branch", parts: one, config: markers(), want: doneUnwritten},
		{name: "one-branch-refused", parts: one, config: markers(), script: fake.Script{call("a", trace.Commit, 1): {Kind: fake.Refuse, Err: serialize}}, want: abortedUnwritten(branches.Transient, "a")},
		{name: "one-branch-lost-and-applied", parts: one, config: markers(), script: fault("a", trace.Commit, fake.LostAfter), want: doneUnwritten},
		{name: "one-branch-lost-and-never", parts: one, config: markers(), script: fault("a", trace.Commit, fake.LostBefore), want: abortedUnwritten(branches.Transient, "a")},
		{ // a deferred trigger keeps the lost backend busy
			name: "one-branch-late", parts: one, config: markers(), want: doneUnwritten,
			script: fake.Script{call("a", trace.Commit, 1): {Kind: fake.Late, D: 3 * time.Second}},
		},
		{
			name: "one-branch-lost-and-unreachable", parts: one, config: markers(), want: want{verdict: coordinator.VerdictInDoubt, committed: true},
			script: fake.Script{
				call("a", trace.Commit, 1): {Kind: fake.LostAfter},
				call("a", trace.Settle, 0): {Kind: fake.LostBefore},
			},
		},
		{
			name: "one-branch-lost-and-unreachable-not-applied", parts: one, config: markers(), want: inDoubt,
			script: fake.Script{
				call("a", trace.Commit, 1): {Kind: fake.LostBefore},
				call("a", trace.Settle, 0): {Kind: fake.LostBefore},
			},
		},
		{ // the caller's end cuts COMMIT short: the marker tells
			name: "one-branch-caller-gives-up-in-commit", parts: one, config: markers(), want: doneUnwritten,
			script: fault("a", trace.Commit, fake.HangAfter), set: giveUpAfter(time.Second),
		},
		{name: "one-branch-read-only", parts: []part{reader("a")}, config: markers(), want: doneNothing},
		{name: "one-branch-payload", parts: []part{payload("c")}, config: markers(), want: doneUnwritten},
		{name: "no-branch", config: markers(), want: doneNothing},
		{name: "plain", parts: one, config: plain(), want: doneUnwritten},
		{name: "plain-refused", parts: one, config: plain(), script: fault("a", trace.Commit, fake.Refuse), want: want{verdict: coordinator.VerdictAborted}},
		{name: "plain-lost", parts: one, config: plain(), script: fault("a", trace.Commit, fake.LostAfter), want: want{verdict: coordinator.VerdictInDoubt, committed: true}},
	}
}

// readerStories: branches that wrote nothing and hold locks.
func readerStories() []story {
	guarded := []part{reader("r"), writer("a"), writer("b"), payload("c")}
	return []story{
		{name: "reader-ended-after-every-s8", parts: guarded, want: done},
		{name: "reader-dead", parts: guarded, script: fault("r", trace.Ping, fake.LostBefore), want: aborted(branches.Transient, "r")},
		{name: "reader-fails-at-its-end", parts: guarded, script: fault("r", trace.Commit, fake.LostBefore), want: done},
		{ // S8 uses all its time: the reader's end has time of its own
			name: "reader-ended-after-a-hanging-s8", parts: guarded, script: fake.Script{call("b", trace.Finish, 0): {Kind: fake.Hang}},
			want: pending("b c"),
		},
		{name: "reader-and-one-writer", parts: []part{reader("r"), writer("a")}, want: doneUnwritten},
		{name: "reader-and-one-payload", parts: []part{reader("r"), payload("c")}, want: doneUnwritten},
		{name: "reader-dead-and-one-writer", parts: []part{reader("r"), writer("a")}, script: fault("r", trace.Ping, fake.LostBefore), want: abortedUnwritten(branches.Transient, "r")},
		{name: "reader-and-one-lost-writer", parts: []part{reader("r"), writer("a")}, script: fault("a", trace.Commit, fake.LostAfter), want: doneUnwritten},
		{ // markers=off is one store's: with two, a lost answer must be told from a rollback
			name: "reader-and-one-lost-writer-no-journal", parts: []part{reader("r"), writer("a")}, config: plain(),
			script: fault("a", trace.Commit, fake.LostAfter), want: doneUnwritten,
		},
		{
			name: "reader-and-one-writer-in-doubt", parts: []part{reader("r"), writer("a")},
			script: fake.Script{
				call("a", trace.Commit, 1): {Kind: fake.LostAfter},
				call("a", trace.Settle, 0): {Kind: fake.LostBefore},
			},
			want: want{verdict: coordinator.VerdictInDoubt, committed: true},
		},
		{name: "readers-only", parts: []part{reader("r"), reader("s")}, want: doneNothing},
		{name: "readers-only-one-lost", parts: []part{reader("r"), reader("s")}, script: fault("s", trace.Commit, fake.LostAfter), want: abortedUnwritten(branches.Transient, "s")},
	}
}

// callerStories: the caller's context, and commit_timeout.
func callerStories() []story {
	const permanent = branches.Permanent
	return []story{
		{name: "caller-gone-before-s3", parts: ab, cancel: "now", want: abortedUnwritten(permanent, "")},
		{name: "caller-gone-before-s3-beside-s4", parts: certainAB, cancel: "now", want: abortedUnwritten(permanent, "")},
		{name: "caller-gone-in-s3", parts: ab, cancel: "S3.before:b", want: abortedUnwritten(permanent, "b")},
		{name: "caller-gone-between-s3-and-s4", parts: ab, cancel: "S3.after", want: abortedUnwritten(permanent, "")},
		{name: "caller-gone-in-s4", parts: ab, script: fault(trace.Journal, trace.Create, fake.HangAfter), set: giveUpAfter(time.Second), want: aborted(permanent, "")},
		{name: "caller-gone-between-s4-and-s5", parts: ab, cancel: "S4.after", want: aborted(permanent, "")},
		{name: "caller-gone-in-s5", parts: ab, cancel: "S5.before:b", want: aborted(permanent, "")},
		{name: "caller-gone-between-s5-and-s7", parts: ab, cancel: "S5.after", want: aborted(permanent, "")},
		{name: "caller-gone-between-s6-and-s7", parts: ab, config: split(), cancel: "S6.after", want: aborted(permanent, "")},
		{name: "caller-gone-in-s7", parts: ab, cancel: "S7.before", want: done},
		{name: "caller-gone-after-s7", parts: abc, cancel: "S7.after", want: done},
		{
			name: "caller-gone-before-one-phase", parts: []part{writer("a")}, config: markers(), cancel: "S3.after",
			want: abortedUnwritten(permanent, ""),
		},
		{
			name: "timeout-between-s4-and-s5", parts: ab, want: aborted(branches.Transient, ""),
			on: map[string]func(*scene){"S4.after": wait(21 * time.Second)},
		},
		{ // S7 is not sent: an abort, not a doubt
			name: "timeout-between-s5-and-s7", parts: ab, want: aborted(branches.Transient, ""),
			on: map[string]func(*scene){"S5.after": wait(21 * time.Second)},
		},
	}
}

// giveUpAfter makes the caller's context end some time after Commit was called.
func giveUpAfter(d time.Duration) func(*scene, *played) {
	return func(s *scene, _ *played) { s.patience = d }
}

// refusedStories: refused before anything is written.
func refusedStories() []story {
	errDoomed := &fake.Error{Text: "current transaction is aborted", Sort: branches.Transient}
	errDoom := errors.New("written since the savepoint")
	return []story{
		{
			name: "doomed-branch", parts: []part{writer("a"), {store: "b", work: fake.Work{Doom: errDoomed}}},
			want: abortedUnwritten(branches.Transient, "b"),
		},
		{name: "doomed-part", parts: []part{writer("a"), {store: "b", doom: errDoom}}, want: abortedUnwritten(branches.Permanent, "b")},
		{name: "plain-doomed-part", parts: []part{{store: "b", doom: errDoom}}, config: plain(), want: abortedUnwritten(branches.Permanent, "b")},
		{
			name: "min-free", parts: ab, config: coordinator.Config{MinFree: 1 << 30}, want: abortedUnwritten(branches.StoreFull, "b"),
			set: func(s *scene, _ *played) { s.world.Store("a").Free, s.world.Store("b").Free = 1<<31, 1<<20 },
		},
		{
			name: "min-free-untold", parts: ab, config: coordinator.Config{MinFree: 1 << 30}, want: done,
			set: func(s *scene, _ *played) { s.world.Store("a").Free = 1 << 31 },
		},
		{
			name: "min-free-plain", parts: []part{writer("b")}, config: coordinator.Config{Journal: noJournal{}, MinFree: 1 << 30},
			set:  func(s *scene, _ *played) { s.world.Store("b").Free = 1 << 20 },
			want: abortedUnwritten(branches.StoreFull, "b"),
		},
		{name: "no-journal", parts: ab, config: plain(), want: abortedUnwritten(branches.Permanent, "")},
		{name: "no-journal-certain", parts: certainAB, config: plain(), want: abortedUnwritten(branches.Permanent, "")},
		{
			name: "not-admitted", parts: ab, want: abortedUnwritten(branches.Permanent, ""),
			config: coordinator.Config{Admit: func(_ context.Context, stores []string) error {
				return errors.New("shared place")
			}},
		},
	}
}
