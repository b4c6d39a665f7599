package coordinator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

var (
	ab         = []part{writer("a"), writer("b")}
	abc        = []part{writer("a"), writer("b"), payload("c")}
	certainAB  = []part{certain("a"), certain("b")}
	duplicate  = &fake.Error{Text: "duplicate key", Sort: branches.Constraint}
	serialize  = &fake.Error{Text: "could not serialize", Sort: branches.Transient}
	diskFull   = &fake.Error{Text: "disk full", Sort: branches.StoreFull}
	driftError = &journal.Drift{Max: time.Minute}
)

func split() coordinator.Config { return coordinator.Config{SplitDecision: true} }

func recoverNow(s *scene) {
	if err := s.recovery("recovery"); err != nil {
		s.tell("recovery: %v", err)
	}
}

func happyStories() []story {
	return []story{
		{name: "happy", parts: ab, want: done},
		{name: "happy-s3-beside-s4", parts: certainAB, want: done},
		{name: "happy-s6-apart", parts: ab, config: split(), want: done},
		{name: "happy-payload", parts: abc, want: done},
		{name: "happy-payload-only", parts: []part{payload("c"), payload("d")}, want: done},
		{
			name: "happy-above-the-read-fence", parts: abc, want: done,
			set: func(s *scene, _ *played) { s.world.Journal.Fence = s.clock.Now() + 1<<24 },
			check: func(t *testing.T, s *scene) {
				t.Helper()
				rec, _ := s.world.Journal.Record(txnOf(1))
				if rec.TxTime <= s.world.Journal.Fence || s.units[0].out.DatTxTime != rec.TxTime {
					t.Errorf("record has %v, outcome %v, the fence is %v", rec.TxTime, s.units[0].out.DatTxTime, s.world.Journal.Fence)
				}
				if now := s.clock.Now(); now <= rec.TxTime {
					t.Errorf("a later unit of this process would be stamped %v, before %v", now, rec.TxTime)
				}
			},
		},
	}
}

// stageStories: S3.
func stageStories() []story {
	const permanent = branches.Permanent
	refuse := fake.Script{call("b", trace.Stage, 1): {Kind: fake.Refuse, Err: duplicate}}
	return []story{
		{name: "s3-refused", parts: ab, script: refuse, want: abortedUnwritten(branches.Constraint, "b")},
		{name: "s3-lost-before", parts: ab, script: fault("a", trace.Stage, fake.LostBefore), want: abortedUnwritten(branches.Transient, "a")},
		{name: "s3-lost-after", parts: ab, script: fault("a", trace.Stage, fake.LostAfter), want: abortedUnwritten(branches.Transient, "a")},
		{name: "s3-beside-s4-refused", parts: certainAB, script: refuse, want: aborted(branches.Constraint, "b")},
		{
			name: "s3-beside-s4-hangs", parts: certainAB, script: fault("b", trace.Stage, fake.Hang),
			want: aborted(branches.Transient, "b"),
		},
		{
			name: "s3-slower-than-commit-timeout", parts: ab, want: done,
			script: fake.Script{call("b", trace.Stage, 1): {Kind: fake.Slow, D: time.Minute}},
		},
		{
			name: "s3-store-full", parts: ab, want: abortedUnwritten(branches.StoreFull, "b"),
			script: fake.Script{call("b", trace.Stage, 1): {Kind: fake.Refuse, Err: diskFull}},
		},
		{
			name: "s3-payload-too-large", parts: []part{writer("a"), {store: "c", work: fake.Work{Vote: branches.VoteApply, Payload: make([]byte, 11)}}},
			config: coordinator.Config{MaxPayload: 10}, want: abortedUnwritten(permanent, "c"),
		},
		{
			name: "s3-no-vote", parts: []part{writer("a"), {store: "b", work: fake.Work{Vote: 9}}},
			want: abortedUnwritten(permanent, "b"),
		},
		{
			name: "s3-payload-missing", parts: []part{writer("a"), {store: "c", work: fake.Work{Vote: branches.VoteApply, Payload: []byte{}}}},
			set: func(_ *scene, p *played) { p.unit.Parts[1].Branch = noPayload{p.unit.Parts[1].Branch} }, want: abortedUnwritten(permanent, "c"),
		},
		{
			name:  "s3-certain-and-did-not-write",
			parts: []part{certain("a"), {store: "b", work: fake.Work{Vote: branches.VoteReadOnly, Certain: true}}},
			want:  aborted(permanent, ""),
		},
	}
}

// activeStories: S4.
func activeStories() []story {
	return []story{
		{name: "s4-lost-before", parts: ab, script: fault(trace.Journal, trace.Create, fake.LostBefore), want: aborted(branches.Transient, "")},
		{name: "s4-lost-after", parts: ab, script: fault(trace.Journal, trace.Create, fake.LostAfter), want: aborted(branches.Transient, "")},
		{
			name: "s4-late", parts: ab, want: aborted(branches.Transient, ""),
			script: fake.Script{call(trace.Journal, trace.Create, 1): {Kind: fake.Late, D: time.Second}},
		},
		{name: "s4-hangs", parts: ab, script: fault(trace.Journal, trace.Create, fake.Hang), want: aborted(branches.Transient, "")},
		{
			name: "s4-clock-drift", parts: ab, want: aborted(branches.Permanent, ""),
			script: fake.Script{call(trace.Journal, trace.Create, 1): {Kind: fake.Refuse, Err: driftError}},
		},
		{
			name: "s4-record-too-large", parts: ab, want: aborted(branches.Permanent, ""),
			script: fake.Script{call(trace.Journal, trace.Create, 1): {Kind: fake.Refuse, Err: journal.ErrFull}},
		},
		{
			name: "s4-journal-down", parts: ab,
			script: fake.Script{
				call(trace.Journal, trace.Create, 0): {Kind: fake.LostBefore},
				call(trace.Journal, trace.Forbid, 0): {Kind: fake.LostBefore},
			},
			want: abortedUnwritten(branches.Transient, ""),
		},
		{
			name: "s4-forbidden", parts: ab, want: aborted(branches.Transient, ""),
			set: func(s *scene, p *played) { // rhizorecover resolve of an absent dat_txn
				j := s.world.Journal.Client(s.world.NewProcess("person"), 1)
				session, _ := j.Session(s.ctx)
				_, _ = session.Abort(s.ctx, p.unit.Txn, journal.Forced)
				session.Release()
			},
		},
	}
}

// prepareStories: S5.
func prepareStories() []story {
	return []story{
		{
			name: "s5-refused", parts: ab, want: aborted(branches.Transient, "b"),
			script: fake.Script{call("b", trace.Prepare, 1): {Kind: fake.Refuse, Err: serialize}},
		},
		{name: "s5-lost-before", parts: ab, script: fault("b", trace.Prepare, fake.LostBefore), want: aborted(branches.Transient, "b")},
		{name: "s5-lost-after", parts: ab, script: fault("b", trace.Prepare, fake.LostAfter), want: aborted(branches.Transient, "b")},
		{ // it lands between two looks of this process
			name: "s5-late", parts: ab, want: aborted(branches.Transient, "b"),
			script: fake.Script{call("b", trace.Prepare, 1): {Kind: fake.Late, D: 500 * time.Millisecond}},
		},
		{ // it lands when this process looks no more: the sweep's
			name: "s5-very-late", parts: ab, want: aborted(branches.Transient, "b"),
			script: fake.Script{call("b", trace.Prepare, 1): {Kind: fake.Late, D: time.Minute}},
		},
		{ // the other answer is waited for no longer than finish_timeout
			name: "s5-refused-beside-a-hanging-one", parts: ab, want: aborted(branches.Transient, "b"), within: 6 * time.Second,
			script: fake.Script{
				call("b", trace.Prepare, 1): {Kind: fake.Refuse, Err: serialize},
				call("a", trace.Prepare, 1): {Kind: fake.HangAfter},
			},
		},
		{name: "s5-hangs", parts: ab, script: fault("b", trace.Prepare, fake.HangAfter), want: aborted(branches.Transient, "b")},
		{ // S7 was never sent: Aborted, whoever does not answer
			name: "s5-refused-and-nobody-answers", parts: ab, want: aborted(branches.Transient, "b"),
			script: fake.Script{
				call("b", trace.Prepare, 1):          {Kind: fake.Refuse, Err: serialize},
				call("a", trace.Abort, 0):            {Kind: fake.Hang},
				call(trace.Journal, trace.Forbid, 1): {Kind: fake.Hang},
			},
		},
	}
}

// decideStories: S6 and S7.
func decideStories() []story {
	return slices.Concat(lostDecisions(), racedDecisions(), eitherDecision())
}

// lostDecisions: nobody else acts, and what is lost is read back or is not.
func lostDecisions() []story {
	lost := aborted(branches.Transient, "")
	unreachable := fake.Script{
		call(trace.Journal, trace.Decide, 1): {Kind: fake.LostAfter},
		call(trace.Journal, trace.Forbid, 0): {Kind: fake.LostBefore},
	}
	inDoubt := want{verdict: coordinator.VerdictInDoubt, committed: true, record: journal.StateDone}
	return []story{
		{name: "s6-lost-before", parts: ab, config: split(), script: fault(trace.Journal, trace.Prepared, fake.LostBefore), want: lost},
		{name: "s6-lost-after", parts: ab, config: split(), script: fault(trace.Journal, trace.Prepared, fake.LostAfter), want: lost},
		{
			name: "s6-late", parts: ab, config: split(), want: lost,
			script: fake.Script{call(trace.Journal, trace.Prepared, 1): {Kind: fake.Late, D: time.Second}},
		},
		{name: "s7-in-doubt-decided", parts: ab, script: unreachable, want: inDoubt, within: 21 * time.Second},
		{
			name: "s7-in-doubt-not-decided", parts: []part{writer("a"), writer("b"), reader("r")},
			script: fake.Script{
				call(trace.Journal, trace.Decide, 1): {Kind: fake.LostBefore},
				call(trace.Journal, trace.Forbid, 0): {Kind: fake.LostBefore},
			},
			want: want{verdict: coordinator.VerdictInDoubt, record: journal.StateAborted},
		},
		{ // read, and not yet known to be durable: a standby's answer was given up
			name: "s7-lost-and-read-back-soft", parts: ab, script: fault(trace.Journal, trace.Decide, fake.Soft), want: done,
			on: map[string]func(*scene){"S8.before": func(s *scene) { s.world.Journal.Crash() }},
		},
		{ // the same, and it cannot be made durable: no branch may be touched
			name: "s7-lost-and-not-hardened", parts: ab,
			script: fake.Script{
				call(trace.Journal, trace.Decide, 1): {Kind: fake.Soft},
				call(trace.Journal, trace.Harden, 0): {Kind: fake.LostBefore},
			},
			after: func(s *scene) { s.world.Journal.Crash() },
			want:  want{verdict: coordinator.VerdictInDoubt, record: journal.StateAborted},
		},
		{ // a fail-over between reading and hardening: the decision is gone
			name: "s7-lost-and-gone-before-it-is-hardened", parts: ab, want: lost,
			script: fake.Script{
				call(trace.Journal, trace.Decide, 1): {Kind: fake.Soft},
				call(trace.Journal, trace.Harden, 1): {Kind: fake.Slow, D: 2 * time.Second},
			},
			on: map[string]func(*scene){"S7.after": func(s *scene) {
				go func() {
					_ = hlc.System.Sleep(s.ctx, time.Second)
					s.world.Journal.Crash()
				}()
			}},
		},
	}
}

// racedDecisions: recovery acts meanwhile, or the journal or the process dies.
func racedDecisions() []story {
	lost := aborted(branches.Transient, "")
	return []story{
		{
			name: "s7-fenced-by-recovery", parts: ab, want: lost,
			on: map[string]func(*scene){"S7.before": recoverNow},
		},
		{ // SIGSTOP for longer than every timeout
			name: "s7-stopped-and-resumed", parts: ab, want: lost,
			on: map[string]func(*scene){"S7.before": func(s *scene) {
				recoverNow(s)
				_ = hlc.System.Sleep(s.ctx, time.Hour)
			}},
		},
		{
			name: "s7-lost-before-and-recovery-first", parts: ab, want: lost,
			script: fault(trace.Journal, trace.Decide, fake.LostBefore),
			on:     map[string]func(*scene){"S7.after": recoverNow},
		},
		{
			name: "s7-lost-after-and-recovery-first", parts: ab, want: done,
			script: fault(trace.Journal, trace.Decide, fake.LostAfter),
			on:     map[string]func(*scene){"S7.after": recoverNow},
		},
		{ // our own S7 was delivered before, and is refused now
			name: "s7-refused-though-it-had-won", parts: ab, want: done,
			on: map[string]func(*scene){"S7.before": func(s *scene) { s.world.Journal.Deliver(txnOf(1)) }},
		},
		{ // its unforced ACTIVE is gone, the gids are not
			name: "s7-after-a-crash-of-the-journal", parts: ab, want: lost,
			on: map[string]func(*scene){"S7.before": func(s *scene) { s.world.Journal.Crash() }},
		},
		{ // an abort that recovery acted on survives every crash
			name: "s7-after-recovery-and-a-crash-of-the-journal", parts: ab, config: split(), want: lost,
			on: map[string]func(*scene){"S7.before": func(s *scene) {
				recoverNow(s)
				s.world.Journal.Crash()
			}},
		},
		{
			name: "killed-before-s7", parts: ab, want: want{record: journal.StateAborted},
			on: map[string]func(*scene){"S7.before": func(s *scene) { s.app.Kill() }},
		},
		{
			name: "killed-after-s7", parts: abc, want: want{committed: true, record: journal.StateDone},
			on: map[string]func(*scene){"S7.after": func(s *scene) { s.app.Kill() }},
		},
	}
}

// eitherDecision: what holds of S7 alone and of S7 behind an S6 of its own.
func eitherDecision() []story {
	lost := aborted(branches.Transient, "")
	var st []story
	for _, how := range []struct {
		name   string
		config coordinator.Config
	}{{"s7", coordinator.Config{}}, {"s6-apart-s7", split()}} {
		st = append(st,
			story{name: how.name + "-lost-before", parts: ab, config: how.config, script: fault(trace.Journal, trace.Decide, fake.LostBefore), want: lost},
			story{name: how.name + "-lost-after", parts: ab, config: how.config, script: fault(trace.Journal, trace.Decide, fake.LostAfter), want: done},
			story{
				name: how.name + "-late", parts: ab, config: how.config, want: done,
				script: fake.Script{call(trace.Journal, trace.Decide, 1): {Kind: fake.Late, D: 3 * time.Second}},
			},
			story{name: how.name + "-hangs", parts: ab, config: how.config, script: fault(trace.Journal, trace.Decide, fake.Hang), want: lost, within: 20 * time.Second},
			story{name: how.name + "-hangs-after", parts: ab, config: how.config, script: fault(trace.Journal, trace.Decide, fake.HangAfter), want: done, within: 20 * time.Second},
		)
	}
	return st
}

// noPayload votes to apply a payload that it does not have.
type noPayload struct{ branches.Branch }

func (b noPayload) Stage(ctx context.Context, unit branches.Unit) (branches.Staged, error) {
	staged, err := b.Branch.Stage(ctx, unit)
	staged.Payload = nil
	return staged, err
}
