package coordinator_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/journal"
)

// tempting is an error that every retry loop knows, in every way it asks.
func tempting() error {
	return errors.Join(
		driver.ErrBadConn,
		&pgconn.PgError{Code: "40001", Message: "could not serialize access"},
		&net.OpError{Op: "read", Err: context.DeadlineExceeded},
		context.DeadlineExceeded, io.ErrUnexpectedEOF)
}

// TestOutcomesThatMustNotLookRetryable: the loops that people have ask for these
// things, and would write a committed unit twice.
func TestOutcomesThatMustNotLookRetryable(t *testing.T) {
	for _, st := range []story{
		{
			name: "CommittedPending", parts: ab, want: pending("b"),
			script: fake.Script{call("b", trace.Finish, 0): {Kind: fake.Refuse, Err: tempting()}},
		},
		{
			name: "InDoubt", parts: ab, want: want{verdict: coordinator.VerdictInDoubt, record: journal.StateAborted},
			script: fake.Script{
				call(trace.Journal, trace.Decide, 1): {Kind: fake.Refuse, Err: tempting()},
				call(trace.Journal, trace.Forbid, 0): {Kind: fake.Refuse, Err: tempting()},
			},
		},
		{
			name: "InDoubt in one phase", parts: []part{writer("a")}, config: markers(), want: want{verdict: coordinator.VerdictInDoubt},
			script: fake.Script{
				call("a", trace.Commit, 1): {Kind: fake.Refuse, Err: branches.Unknown(tempting())},
				call("a", trace.Settle, 0): {Kind: fake.Refuse, Err: tempting()},
			},
		},
		{
			name: "Heuristic", parts: ab, want: want{verdict: coordinator.VerdictHeuristic, committed: true, record: journal.StateCommitted},
			script: fake.Script{call("b", trace.Finish, 0): {Kind: fake.Refuse, Err: errors.Join(&branches.Heuristic{}, tempting())}},
			set:    func(_ *scene, p *played) { p.heuristic = true },
		},
	} {
		t.Run(st.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				t.Helper()
				s, p := stage(t, st)
				checkVerdict(t, p, st.want.verdict)
				expectUntempting(t, fmt.Errorf("transfer: %w", p.out.Err))
				if got := len(s.ended); got != 1 {
					t.Errorf("%d outcomes were observed", got)
				}
			})
		})
	}
}

func checkVerdict(t *testing.T, p *played, want coordinator.Verdict) {
	t.Helper()
	if p.out.Verdict != want {
		t.Fatalf("verdict %s, want %s: %v", p.out.Verdict, want, p.out.Err)
	}
}

func expectUntempting(t *testing.T, err error) {
	t.Helper()
	var pg *pgconn.PgError
	var network net.Error
	var state interface{ SQLState() string }
	var safe interface{ SafeToRetry() bool }
	for what, found := range map[string]bool{
		"driver.ErrBadConn":        errors.Is(err, driver.ErrBadConn),
		"context.DeadlineExceeded": errors.Is(err, context.DeadlineExceeded),
		"io.ErrUnexpectedEOF":      errors.Is(err, io.ErrUnexpectedEOF),
		"*pgconn.PgError":          errors.As(err, &pg),
		"net.Error":                errors.As(err, &network),
		"SQLState":                 errors.As(err, &state),
		"SafeToRetry":              errors.As(err, &safe),
		"IsRetryable":              coordinator.IsRetryable(err),
	} {
		if found {
			t.Errorf("%v looks like %s", err, what)
		}
	}
	var told interface{ Cause() error }
	if !errors.As(err, &told) {
		t.Fatalf("%v has no Cause", err)
	}
	if cause := told.Cause(); cause == nil {
		t.Errorf("the cause of %v is lost", err)
	}
}

// TestAbortedKeepsTheStoresErrorAndNothingElse: the error stays findable, also
// beside a driver.ErrBadConn, which never is.
func TestAbortedKeepsTheStoresErrorAndNothingElse(t *testing.T) {
	pgErr := &pgconn.PgError{Code: "40001", Message: "could not serialize access"}
	for _, test := range []struct {
		name string
		err  error
	}{
		{"alone", pgErr},
		{"beside ErrBadConn", errors.Join(driver.ErrBadConn, pgErr)},
		{"before ErrBadConn", errors.Join(pgErr, driver.ErrBadConn)},
		{"around ErrBadConn", fmt.Errorf("%w: %w", pgErr, driver.ErrBadConn)},
		{"wrapped", fmt.Errorf("prepare: %w", errors.Join(fmt.Errorf("%w", driver.ErrBadConn), pgErr))},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				t.Helper()
				_, p := stage(t, story{parts: ab, script: fake.Script{call("b", trace.Prepare, 1): {Kind: fake.Refuse, Err: test.err}}})
				checkVerdict(t, p, coordinator.VerdictAborted)
				err := fmt.Errorf("transfer: %w", p.out.Err)
				if errors.Is(err, driver.ErrBadConn) {
					t.Error("driver.ErrBadConn is found in it")
				}
				var found *pgconn.PgError
				if !errors.As(err, &found) || found != pgErr || !errors.Is(err, pgErr) {
					t.Errorf("the store's own error is not found in %v", err)
				}
				if errors.Is(err, io.EOF) {
					t.Error("io.EOF is found in it, and was never there")
				}
				if !strings.Contains(err.Error(), pgErr.Message) || !strings.Contains(err.Error(), "store b") {
					t.Errorf("text %q", err)
				}
			})
		})
	}
}

// TestPlainCommitShowsTheStoresOwnError, and still never driver.ErrBadConn.
func TestPlainCommitShowsTheStoresOwnError(t *testing.T) {
	pgErr := &pgconn.PgError{Code: "23505"}
	for _, test := range []struct {
		err     error
		verdict coordinator.Verdict
	}{
		{pgErr, coordinator.VerdictAborted},
		{branches.Unknown(pgErr), coordinator.VerdictInDoubt},
		{branches.Unknown(errors.Join(driver.ErrBadConn, pgErr)), coordinator.VerdictInDoubt},
	} {
		inBubble(t, func(t *testing.T) {
			t.Helper()
			_, p := stage(t, story{parts: []part{writer("a")}, config: plain(), script: fake.Script{call("a", trace.Commit, 1): {Kind: fake.Refuse, Err: test.err}}})
			checkVerdict(t, p, test.verdict)
			var found *pgconn.PgError
			if !errors.As(p.out.Err, &found) || errors.Is(p.out.Err, driver.ErrBadConn) || branches.IsUnknown(p.out.Err) {
				t.Errorf("Commit returned %v", p.out.Err)
			}
			if !errors.Is(test.err, driver.ErrBadConn) && p.out.Err != error(pgErr) { //nolint:errorlint // the very value, as GORM asserts it
				t.Errorf("Commit returned %T, want the store's own value", p.out.Err)
			}
		})
	}
}

func TestOutcomeTexts(t *testing.T) {
	txn := txnOf(1)
	for _, test := range []struct {
		err  error
		want string
	}{
		{
			&coordinator.CommittedPending{DatTxn: txn, Stores: []string{"a", "b"}},
			"rhizodat: commit 00000000-0000-7000-8000-000000000001: committed; recovery finishes a, b: do not run it again",
		},
		{
			&coordinator.InDoubt{DatTxn: txn},
			"rhizodat: commit 00000000-0000-7000-8000-000000000001: outcome unknown here, rhizodat.Lookup will tell it: do not run it again",
		},
		{
			&coordinator.Aborted{DatTxn: txn, Kind: branches.Transient, Err: io.EOF},
			"rhizodat: commit 00000000-0000-7000-8000-000000000001: aborted (transient): EOF",
		},
		{
			&coordinator.Aborted{DatTxn: txn, Store: "a", Kind: branches.Constraint, Err: io.EOF},
			"rhizodat: commit 00000000-0000-7000-8000-000000000001: aborted by store a (constraint): EOF",
		},
		{
			&coordinator.Heuristic{DatTxn: txn, Stores: []string{"b"}},
			"rhizodat: commit 00000000-0000-7000-8000-000000000001: committed, but b resolved it the other way: do not run it again, see rhizorecover show 00000000-0000-7000-8000-000000000001",
		},
		{
			&coordinator.Heuristic{DatTxn: txn, Stores: []string{"b"}, Aborted: true},
			"rhizodat: commit 00000000-0000-7000-8000-000000000001: aborted, but b resolved it the other way: do not run it again, see rhizorecover show 00000000-0000-7000-8000-000000000001",
		},
		{&coordinator.StoreFull{Store: "a", Free: 1, Need: 2}, "rhizodat: commit: store a has 1 bytes free, min_free asks for 2"},
		{&coordinator.StoreFull{Store: "a", Free: -1}, "rhizodat: commit: store a is full"},
		{
			&coordinator.PayloadTooLarge{Store: "c", Size: 11, Max: 10},
			"rhizodat: stage branch: store c has a payload of 11 bytes, max_payload=10: write fewer rows in one transaction or raise it",
		},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("text\n%s\nwant\n%s", got, test.want)
		}
	}
}

func TestIsCommittedAndIsRetryable(t *testing.T) {
	for _, test := range []struct {
		err                  error
		committed, retryable bool
	}{
		{nil, true, false},
		{&coordinator.CommittedPending{}, true, false},
		{fmt.Errorf("wrapped: %w", &coordinator.CommittedPending{}), true, false},
		{&coordinator.InDoubt{}, false, false},
		{&coordinator.Heuristic{}, false, false},
		{&coordinator.Aborted{Kind: branches.Transient}, false, true},
		{fmt.Errorf("wrapped: %w", &coordinator.Aborted{Kind: branches.Transient}), false, true},
		{&coordinator.Aborted{Kind: branches.Permanent}, false, false},
		{&coordinator.Aborted{Kind: branches.StoreFull}, false, false},
		{&coordinator.Aborted{Kind: branches.Constraint}, false, false},
		{&coordinator.Aborted{Kind: branches.Invalid}, false, false},
		{io.EOF, false, false},
	} {
		if got := coordinator.IsCommitted(test.err); got != test.committed {
			t.Errorf("IsCommitted(%v) = %t", test.err, got)
		}
		if got := coordinator.IsRetryable(test.err); got != test.retryable {
			t.Errorf("IsRetryable(%v) = %t", test.err, got)
		}
	}
}

// TestWhatIsFoundInAborted: each reason by its own type, in the Aborted of a
// real commit.
func TestWhatIsFoundInAborted(t *testing.T) {
	wanted := func(find func(error) bool) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			t.Helper()
			if !find(err) {
				t.Errorf("not found in %v", err)
			}
		}
	}
	given := errors.New("the operator said stop")
	for _, test := range []struct {
		story story
		check func(*testing.T, error)
	}{
		{
			story{name: "ErrNoJournal", parts: ab, config: plain()},
			wanted(func(err error) bool { return errors.Is(err, coordinator.ErrNoJournal) }),
		},
		{
			story{name: "Conflict", parts: ab, on: map[string]func(*scene){"S7.before": recoverNow}},
			wanted(func(err error) bool {
				var c *journal.Conflict
				return errors.As(err, &c) && c.Found == journal.StateAborted
			}),
		},
		{
			story{name: "Drift", parts: ab, script: fake.Script{call(trace.Journal, trace.Create, 1): {Kind: fake.Refuse, Err: driftError}}},
			wanted(func(err error) bool { var d *journal.Drift; return errors.As(err, &d) }),
		},
		{
			story{name: "StoreFull of the store", parts: ab, script: fake.Script{call("b", trace.Stage, 1): {Kind: fake.Refuse, Err: diskFull}}},
			wanted(func(err error) bool {
				var full *coordinator.StoreFull
				return errors.As(err, &full) && full.Store == "b" && full.Free == -1 && errors.Is(err, diskFull)
			}),
		},
		{
			story{name: "the caller's cause", parts: ab, set: func(s *scene, _ *played) { s.giveUp = given }, cancel: "S5.after"},
			wanted(func(err error) bool { return errors.Is(err, context.Canceled) && errors.Is(err, given) }),
		},
		{
			story{name: "commit_timeout", parts: ab, on: map[string]func(*scene){"S5.after": wait(time.Minute)}},
			wanted(func(err error) bool {
				return errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "commit_timeout=20s")
			}),
		},
	} {
		t.Run(test.story.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				t.Helper()
				s, p := stage(t, test.story)
				checkVerdict(t, p, coordinator.VerdictAborted)
				test.check(t, p.out.Err)
				expectNone(t, s.violations())
			})
		})
	}
}

func TestVerdictStrings(t *testing.T) {
	for v, want := range map[coordinator.Verdict]string{
		coordinator.VerdictNone: "none", coordinator.VerdictCommitted: "committed", coordinator.VerdictPending: "pending",
		coordinator.VerdictAborted: "aborted", coordinator.VerdictInDoubt: "in doubt", coordinator.VerdictHeuristic: "heuristic", 99: "none",
	} {
		if got := v.String(); got != want {
			t.Errorf("Verdict(%d) = %q, want %q", int(v), got, want)
		}
	}
}
