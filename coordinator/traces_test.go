package coordinator_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/journal"
)

// story is one commit, what happens to it, and how it must end. Its trace is
// testdata/traces/NAME.txt; the rest is checked whatever that file says.
type story struct {
	name   string
	parts  []part
	config coordinator.Config
	script fake.Script
	on     map[string]func(*scene)
	set    func(*scene, *played) // before Commit
	cancel string                // the point at which the caller's context ends; "now" is before Commit
	after  func(*scene)          // after Commit has returned
	within time.Duration         // how long Commit may take; 0 is not asked
	check  func(*testing.T, *scene)
	want   want
}

// want is how a story must end.
type want struct {
	verdict   coordinator.Verdict
	kind      branches.Kind // of an Aborted
	store     string        // that an Aborted names
	pending   string        // stores, joined by a blank
	committed bool          // in the end, after recovery
	record    journal.State // in the end; empty for none
}

var (
	done          = want{verdict: coordinator.VerdictCommitted, committed: true, record: journal.StateDone}
	doneUnwritten = want{verdict: coordinator.VerdictCommitted, committed: true}
	doneNothing   = want{verdict: coordinator.VerdictCommitted}
)

func aborted(kind branches.Kind, store string) want {
	return want{verdict: coordinator.VerdictAborted, kind: kind, store: store, record: journal.StateAborted}
}

// abortedUnwritten: before S4, or without a journal.
func abortedUnwritten(kind branches.Kind, store string) want {
	return want{verdict: coordinator.VerdictAborted, kind: kind, store: store}
}

func pending(stores string) want {
	return want{verdict: coordinator.VerdictPending, pending: stores, committed: true, record: journal.StateDone}
}

func call(actor string, op trace.Op, n int) fake.Call {
	return fake.Call{Proc: "app", Actor: actor, Op: op, N: n}
}

// fault is a script of one fault: of the first request of its kind.
func fault(actor string, op trace.Op, kind fake.FaultKind) fake.Script {
	return fake.Script{call(actor, op, 1): {Kind: kind}}
}

func TestTraces(t *testing.T) {
	known := map[string]bool{}
	for _, st := range stories() {
		if known[st.name+".txt"] {
			t.Fatalf("two stories are called %s", st.name)
		}
		known[st.name+".txt"] = true
		t.Run(st.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				t.Helper()
				compare(t, st.name, play(t, st))
			})
		})
	}
	files, err := os.ReadDir(filepath.Join("testdata", "traces"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("testdata/traces/%s belongs to no story", f.Name())
		}
	}
}

// play runs a story to its end and judges it. It returns the trace.
func play(t *testing.T, st story) string {
	t.Helper()
	s, p := stage(t, st)
	if p.out == nil {
		p.out = &coordinator.Outcome{} // of a program that was killed
	}
	checkEnd(t, s, p, st.want)
	for _, v := range s.violations() {
		t.Errorf("violation %v", v)
	}
	if took := s.ended[0].Took; st.within > 0 && took > st.within {
		t.Errorf("Commit took %s, want at most %s", took, st.within)
	}
	if st.check != nil {
		st.check(t, s)
	}
	return trace.Text(s.world.Log.Events())
}

// stage runs a story and recovery after it, and judges nothing.
func stage(t *testing.T, st story) (*scene, *played) {
	t.Helper()
	var names []string
	for _, p := range st.parts {
		names = append(names, p.store)
	}
	s := newScene(t.Context(), names, st.config, 1)
	s.world.Play(st.script)
	for point, f := range st.on {
		s.on(point, f)
	}
	p := s.begin(1, st.parts)
	if st.set != nil {
		st.set(s, p)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	switch st.cancel {
	case "":
	case "now":
		cancel(nil)
	default:
		s.on(st.cancel, func(s *scene) {
			s.tell("the caller gives up")
			cancel(s.giveUp)
		})
	}
	if s.patience > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, s.patience)
		defer done()
	}
	s.commit(ctx, p)
	if st.after != nil {
		st.after(s)
	}
	if err := s.settle(); err != nil {
		t.Errorf("recovery: %v", err)
	}
	return s, p
}

func checkEnd(t *testing.T, s *scene, p *played, w want) {
	t.Helper()
	got := want{verdict: p.out.Verdict, pending: strings.Join(p.out.Pending, " ")}
	if a, ok := p.out.Err.(*coordinator.Aborted); ok { //nolint:errorlint // Commit's error is the outcome itself
		got.kind, got.store = a.Kind, a.Store
	}
	f := s.fate(p)
	for _, done := range f.Writers {
		got.committed = got.committed || done
	}
	got.record = f.Record
	if diff := cmp.Diff(w, got, cmp.AllowUnexported(want{})); diff != "" {
		t.Errorf("end of the story (-want +got):\n%s%v", diff, p.out.Err)
	}
	if p.out.Committed() != (w.verdict == coordinator.VerdictCommitted || w.verdict == coordinator.VerdictPending) {
		t.Errorf("Committed() is %t", p.out.Committed())
	}
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "traces", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test -run TestTraces -update", err)
	}
	if diff := cmp.Diff(strings.Split(string(golden), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("trace differs (-golden +got):\n%s", diff)
	}
}

func stories() []story {
	return slices.Concat(
		happyStories(), stageStories(), activeStories(), prepareStories(),
		decideStories(), finishStories(), doneStories(), onePhaseStories(),
		readerStories(), heuristicStories(), callerStories(), refusedStories(), leaseStories(), stepStories())
}
