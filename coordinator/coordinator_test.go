package coordinator_test

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"go/parser"
	"go/token"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/journal"
)

// TestProtocolNamesEveryTransition: the page that a newcomer reads has the
// transitions of package journal, and no others, each beside its step.
func TestProtocolNamesEveryTransition(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "protocol.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t([A-Z]+) +-> ([A-Z]+) {2,}(.+)$`).FindAllStringSubmatch(file.Doc.Text(), -1) {
		told[m[1]+" -> "+m[2]] = m[3]
	}
	want := map[string]string{}
	for _, from := range journal.States {
		for _, to := range journal.States {
			if from.To(to) {
				want[from.String()+" -> "+to.String()] = map[journal.State]string{
					journal.StatePrepared: "S6", journal.StateCommitted: "S7", journal.StateDone: "S10",
					journal.StateAborted: "presumed abort",
				}[to]
			}
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("transitions of package journal (-) and of protocol.go (+):\n%s", diff)
	}
	for s := coordinator.S1; s <= coordinator.S10; s++ {
		if !strings.Contains(file.Doc.Text(), "\n\t"+s.String()+" ") {
			t.Errorf("the story of protocol.go lacks %s", s)
		}
	}
}

// TestRollback: whatever its branches answer the unit is aborted, also when the
// caller's context has ended, and ErrBadConn is not shown.
func TestRollback(t *testing.T) {
	for _, test := range []struct {
		name   string
		script fake.Script
		fails  bool
	}{
		{name: "answered"},
		{name: "lost", script: fake.Script{call("a", trace.Rollback, 1): {Kind: fake.Refuse, Err: errors.Join(driver.ErrBadConn, fake.ErrLost)}}, fails: true},
		{name: "hangs", script: fake.Script{call("b", trace.Rollback, 1): {Kind: fake.Hang}}, fails: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				t.Helper()
				s := newScene(t.Context(), []string{"a", "b"}, coordinator.Config{}, 1)
				s.world.Play(test.script)
				p := s.begin(1, ab)
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				out, err := s.coord.Rollback(ctx, p.unit)
				p.out = &out
				if (err != nil) != test.fails || errors.Is(err, driver.ErrBadConn) {
					t.Errorf("Rollback returned %v", err)
				}
				if out.Verdict != coordinator.VerdictAborted || coordinator.IsRetryable(out.Err) || len(s.ended) != 1 || s.ended[0].Took > 21*time.Second {
					t.Errorf("outcome %+v, observed %+v", out, s.ended)
				}
				if err := s.settle(); err != nil {
					t.Error(err)
				}
				expectNone(t, s.violations())
			})
		})
	}
}

// TestOutcomeIsObserved with its times and its conflict.
func TestOutcomeIsObserved(t *testing.T) {
	for _, test := range []struct {
		story    story
		conflict bool
		locked   bool // a lock window is told
	}{
		{story{parts: ab}, false, true},
		{story{parts: ab, on: map[string]func(*scene){"S7.before": recoverNow}}, true, false},
		{story{parts: []part{writer("a")}, config: markers()}, false, false},
	} {
		inBubble(t, func(t *testing.T) {
			t.Helper()
			s, p := stage(t, test.story)
			if len(s.ended) != 1 {
				t.Fatalf("%d outcomes observed", len(s.ended))
			}
			e := s.ended[0]
			if e.Conflict != test.conflict || (e.LockWindow > 0) != test.locked || e.Took <= e.LockWindow || e.Verdict != p.out.Verdict || e.DatTxn != txnOf(1) {
				t.Errorf("observed %+v", e)
			}
		})
	}
}

// TestLogSaysWhatMatters: one line with the cause for what is not plainly
// committed or aborted, and none for what is.
func TestLogSaysWhatMatters(t *testing.T) {
	for _, test := range []struct {
		story story
		want  string
	}{
		{story{parts: ab}, ""},
		{story{parts: ab, script: down("b", trace.Finish)}, "level=WARN msg=\"rhizodat: committed, finishing goes on\""},
		{
			story{parts: ab, script: fake.Script{call(trace.Journal, trace.Decide, 1): {Kind: fake.LostAfter}, call(trace.Journal, trace.Forbid, 0): {Kind: fake.LostBefore}}},
			"level=ERROR msg=\"rhizodat: outcome unknown here\"",
		},
		{
			story{parts: ab, on: map[string]func(*scene){"S8.before": func(s *scene) { s.world.Store("b").Resolve(txnOf(1), fake.RolledBack) }}},
			"level=ERROR msg=\"rhizodat: a store resolved its branch against the decision\"",
		},
	} {
		inBubble(t, func(t *testing.T) {
			t.Helper()
			var log bytes.Buffer
			test.story.config.Logger = slog.New(slog.NewTextHandler(&log, nil))
			stage(t, test.story)
			first, _, _ := strings.Cut(log.String(), "\n")
			if (test.want == "") != (first == "") || !strings.Contains(first, test.want) {
				t.Errorf("first line of the log %q, want %q", first, test.want)
			}
			if first != "" && (!strings.Contains(first, "dat_txn="+txnOf(1).String()) || !strings.Contains(first, "error=")) {
				t.Errorf("line %q lacks the unit or the cause", first)
			}
		})
	}
}

// TestAdmitIsAskedBeforeS4 for every store of the unit.
func TestAdmitIsAskedBeforeS4(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		t.Helper()
		var asked [][]string
		config := coordinator.Config{Admit: func(_ context.Context, stores []string) error {
			asked = append(asked, stores)
			return nil
		}}
		stage(t, story{parts: []part{writer("a"), reader("r"), writer("b")}, config: config})
		stage(t, story{parts: []part{writer("a"), reader("r")}, config: config})
		if diff := cmp.Diff([][]string{{"a", "r", "b"}}, asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

// TestPointNames are what traces, docs and crash tables call a moment.
func TestPointNames(t *testing.T) {
	for want, e := range map[string]coordinator.StepEvent{
		"S5.before":   {Step: coordinator.S5},
		"S8.after:a":  {Step: coordinator.S8, Moment: coordinator.After, Store: "a"},
		"S10.after":   {Step: coordinator.S10, Moment: coordinator.After},
		"S3.before:b": {Step: coordinator.S3, Store: "b"},
	} {
		if got := e.Point(); got != want {
			t.Errorf("Point() = %q, want %q", got, want)
		}
	}
}
