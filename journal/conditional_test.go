package journal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/memjournal"
	"github.com/rhizodat/rhizodat-go/journal"
)

// The answers are never mixed, and the zero one proves nothing.
func TestAnswers(t *testing.T) {
	lost := errors.New("lost")
	for _, tc := range []struct {
		won  bool
		err  error
		want journal.Answer
		text string
	}{
		{true, nil, journal.AnswerWon, "won"},
		{false, nil, journal.AnswerLost, "lost"},
		{true, lost, journal.AnswerUnknown, "unknown"},
		{false, lost, journal.AnswerUnknown, "unknown"},
	} {
		if got := journal.AnswerOf(tc.won, tc.err); got != tc.want || got.String() != tc.text {
			t.Errorf("AnswerOf(%t, %v) = %v", tc.won, tc.err, got)
		}
	}
	if zero := journal.Answer(0); zero != journal.AnswerUnknown {
		t.Errorf("the zero Answer is %v", zero)
	}
}

func TestFence(t *testing.T) {
	for _, text := range []string{"0", "1", "9223372036854775807"} {
		if f, err := journal.ParseFence(text); err != nil || f.String() != text {
			t.Errorf("%s: %v, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "x", "9223372036854775808"} {
		if f, err := journal.ParseFence(text); err == nil {
			t.Errorf("%q was read as %v", text, f)
		}
	}
}

func TestLateErrors(t *testing.T) {
	for _, tc := range []struct {
		err  interface{ Kind() branches.Kind }
		want string
	}{
		{&journal.Fenced{Lease: "p", Fence: 1, Current: 2}, "fence 1 came too late, fence 2 stands"},
		{&journal.Fenced{Lease: "p", Fence: 1}, "fence 1 does not stand any more"},
		{&journal.Superseded{Key: journal.StepKey{Execution: "e", Label: "l", Input: "0"}}, "step e/l/0"},
	} {
		if text := tc.err.(error).Error(); !strings.Contains(text, tc.want) || tc.err.Kind() != branches.Permanent {
			t.Errorf("%s, %v", text, tc.err.Kind())
		}
	}
}

// spoiled answers some conditional writes wrongly.
type spoiled struct {
	journal.Leases
	journal.Steps
	claim   func(journal.StepRequest, journal.Answer) journal.Answer
	release func(journal.Answer) journal.Answer
	fence   func(journal.Fence) journal.Fence
	token   string
	renew   func([]journal.Answer) []journal.Answer
}

type spoiledSteps struct{ spoiled }

func (s spoiledSteps) Claim(ctx context.Context, r journal.StepRequest) (journal.Step, journal.Answer, error) {
	step, a, err := s.Steps.Claim(ctx, r)
	if s.claim != nil {
		a = s.claim(r, a)
	}
	return step, a, err
}

func (s spoiledSteps) Renew(ctx context.Context, list []journal.StepRenewal) ([]journal.Answer, error) {
	return s.Steps.Renew(ctx, list)
}

func (s spoiledSteps) Get(ctx context.Context, k journal.StepKey) (journal.Step, error) {
	return s.Steps.Get(ctx, k)
}

func (s spoiledSteps) Release(ctx context.Context, k journal.StepKey, token string) (journal.Answer, error) {
	a, err := s.Steps.Release(ctx, k, token)
	if s.release != nil {
		a = s.release(a)
	}
	return a, err
}

type spoiledLeases struct{ spoiled }

func (l spoiledLeases) Acquire(ctx context.Context, r journal.LeaseRequest) (journal.Lease, journal.Answer, error) {
	got, a, err := l.Leases.Acquire(ctx, r)
	if l.fence != nil {
		got.Fence = l.fence(got.Fence)
	}
	if l.token != "" {
		got.Token = l.token
	}
	return got, a, err
}

func (l spoiledLeases) Release(ctx context.Context, g journal.Lease) (journal.Answer, error) {
	return l.Leases.Release(ctx, g)
}

func (l spoiledLeases) Get(ctx context.Context, name string) (journal.Lease, error) {
	return l.Leases.Get(ctx, name)
}

func (l spoiledLeases) List(ctx context.Context) ([]journal.Lease, error) { return l.Leases.List(ctx) }

func (l spoiledLeases) Renew(ctx context.Context, list []journal.LeaseRenewal) ([]journal.Answer, error) {
	got, err := l.Leases.Renew(ctx, list)
	if l.renew != nil {
		got = l.renew(got)
	}
	return got, err
}

// Each wrong answer is found, and named.
func TestProbe(t *testing.T) {
	const won, lost = journal.AnswerWon, journal.AnswerLost
	always := func(a journal.Answer) func(journal.Answer) journal.Answer {
		return func(journal.Answer) journal.Answer { return a }
	}
	for name, tc := range map[string]struct {
		spoil spoiled
		want  string
	}{
		"sound":                         {spoiled{}, ""},
		"a create that does not apply":  {spoiled{claim: func(journal.StepRequest, journal.Answer) journal.Answer { return lost }}, "create applies"},
		"a create that always applies":  {spoiled{claim: func(journal.StepRequest, journal.Answer) journal.Answer { return won }}, "second create loses"},
		"a wrong version that applies":  {spoiled{claim: wrongly("b", "c", won)}, "replace with a wrong version loses"},
		"a right version that loses":    {spoiled{claim: wrongly("b", "a", lost)}, "replace with the right version applies once lapsed"},
		"a claim that lives and yields": {spoiled{claim: wrongly("c", "b", won)}, "a claim that lives is not replaced"},
		"a delete that always applies":  {spoiled{release: always(won)}, "the version that was replaced loses"},
		"a delete that never applies":   {spoiled{release: always(lost)}, "delete with the right version applies"},
		"a fence that stands still":     {spoiled{fence: func(journal.Fence) journal.Fence { return 1 }}, "higher fence"},
		"no fence":                      {spoiled{fence: func(journal.Fence) journal.Fence { return 0 }}, "the one that was asked for"},
		"another's grant":               {spoiled{token: "other"}, "the one that was asked for"},
		"a renewal of an old grant": {spoiled{renew: func([]journal.Answer) []journal.Answer {
			return []journal.Answer{won}
		}}, "renewal with a wrong fence loses"},
	} {
		t.Run(name, func(t *testing.T) {
			j := memjournal.New(hlc.System)
			tc.spoil.Leases, _ = j.Leases(t.Context())
			tc.spoil.Steps, _ = j.Steps(t.Context())
			err := journal.Probe(t.Context(), spoiledLeases{tc.spoil}, spoiledSteps{tc.spoil})
			unfit, found := errors.AsType[*journal.Unfit](err)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("a sound journal: %v", err)
			case tc.want != "" && (!found || !strings.Contains(unfit.Check, tc.want)):
				t.Errorf("got %v, want *Unfit of %q", err, tc.want)
			}
		})
	}
	// An error proves nothing.
	j := memjournal.New(hlc.System)
	j.Spoil(func(memjournal.Op) memjournal.Fault { return memjournal.LostAfter })
	l, _ := j.Leases(t.Context())
	s, _ := j.Steps(t.Context())
	if err := journal.Probe(t.Context(), l, s); !errors.Is(err, memjournal.ErrLost) {
		t.Errorf("over a bad connection: %v", err)
	}
}

// wrongly answers one request of the probe wrongly.
func wrongly(token, replaces string, answer journal.Answer) func(journal.StepRequest, journal.Answer) journal.Answer {
	return func(r journal.StepRequest, a journal.Answer) journal.Answer {
		if r.Token == token && r.Replaces == replaces {
			return answer
		}
		return a
	}
}

// pool is a driver whose connections are c.
type pool struct{ c driver.Conn }

func (p pool) Connect(context.Context) (driver.Conn, error) { return p.c, nil }
func (pool) Driver() driver.Driver                          { return nil }

type conn struct {
	driver.Conn
	j journal.Journal
}

func (c conn) Journal() journal.Journal { return c.j }
func (conn) Close() error               { return nil }

type (
	plain  struct{ driver.Conn }
	raw    struct{ driver.Conn }
	unwrap struct{ driver.Conn }
)

func (plain) Close() error           { return nil }
func (r raw) Raw() driver.Conn       { return r.Conn }
func (raw) Close() error             { return nil }
func (u unwrap) Unwrap() driver.Conn { return u.Conn }
func (unwrap) Close() error          { return nil }

func TestOf(t *testing.T) {
	j := memjournal.New(hlc.System)
	for name, tc := range map[string]struct {
		c    driver.Conn
		want journal.Journal
		err  string
	}{
		"ours":          {conn{j: j}, j, ""},
		"wrapped":       {raw{unwrap{conn{j: j}}}, j, ""},
		"no journal":    {conn{}, nil, "the DSN names none"},
		"not ours":      {plain{}, nil, "not a rhizodat pool"},
		"wrapped other": {raw{plain{}}, nil, "not a rhizodat pool"},
	} {
		t.Run(name, func(t *testing.T) {
			db := sql.OpenDB(pool{tc.c})
			defer db.Close()
			db.SetMaxOpenConns(1)
			for range 2 {
				got, err := journal.Of(t.Context(), db)
				if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, %v", got, err)
				}
			}
			if tc.want == nil {
				return
			}
			// It is asked once: the only connection may be taken.
			taken, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer taken.Close()
			if got, err := journal.Of(t.Context(), db); got != tc.want || err != nil {
				t.Errorf("with the pool used up: %v, %v", got, err)
			}
		})
	}
	closed := sql.OpenDB(pool{conn{j: j}})
	_ = closed.Close()
	if _, err := journal.Of(t.Context(), closed); err == nil {
		t.Error("a closed pool has told its journal")
	}
}

func TestUnderStep(t *testing.T) {
	r := &journal.StepRecord{Token: "t"}
	if got := journal.StepOf(journal.UnderStep(t.Context(), r)); got != r {
		t.Errorf("got %v", got)
	}
	if got := journal.StepOf(t.Context()); got != nil {
		t.Errorf("a context without a step has %v", got)
	}
}
