package recovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	store := func(s Standing) []StoreReport { return []StoreReport{{Standing: s}} }
	for _, c := range []struct {
		name string
		r    Report
		want int
	}{
		{"nothing left", Report{Stores: store(StandingOK), RolledBack: 3}, ExitClean},
		{"foreign ones are nobody's work here", Report{Foreign: 5}, ExitClean},
		{"an unfinished record", Report{Left: map[journal.State]int{journal.StateActive: 1}}, ExitWorkLeft},
		{"pending", Report{Pending: 1}, ExitWorkLeft},
		{"not configured", Report{NotConfigured: 1}, ExitWorkLeft},
		{"no right", Report{NoRight: 1}, ExitWorkLeft},
		{"a store that is down was not swept", Report{Stores: store(StandingDown)}, ExitWorkLeft},
		{"stuck", Report{Stuck: 1, Pending: 1}, ExitPerson},
		{"heuristic", Report{Heuristic: 1}, ExitPerson},
		{"unexplained", Report{Unexplained: 1}, ExitPerson},
		{"restored", Report{Restored: 1}, ExitPerson},
		{"damaged", Report{Damaged: 1}, ExitPerson},
		{"refused", Report{Stores: store(StandingRefused), Pending: 1}, ExitPerson},
	} {
		if got := c.r.ExitCode(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestEveryKindIsCounted(t *testing.T) {
	t.Parallel()
	var r Report
	for _, k := range Kinds {
		r.add(Item{Kind: k})
	}
	sum := r.Stuck + r.Heuristic + r.Unexplained + r.Restored + r.Pending + r.NotConfigured + r.NoRight + r.Foreign + r.Damaged
	if sum != len(Kinds) || len(r.Items) != len(Kinds) {
		t.Errorf("%d kinds, counted %d, listed %d", len(Kinds), sum, len(r.Items))
	}
}

func TestBackoffAndJitter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "interval"))
		failures := rapid.IntRange(0, 1000).Draw(t, "failures")
		d := backoff(interval, failures)
		if d < interval || d > max(interval, slowest) {
			t.Fatalf("backoff(%s, %d) = %s", interval, failures, d)
		}
		if more := backoff(interval, failures+1); more < d {
			t.Fatalf("backoff falls from %s to %s", d, more)
		}
		if j := jitter(d); j < d-d/5 || j > d+d/5 {
			t.Fatalf("jitter(%s) = %s", d, j)
		}
	})
}

// The bytes held never exceed the budget but for the last record read.
func TestPayloadBudget(t *testing.T) {
	t.Parallel()
	const limit, size = 1000, 300
	b := newBudget(limit)
	var mu sync.Mutex
	held, most := 0, 0
	err := fan(16, 200, func(int) error {
		_, free, err := b.read(t.Context(), func() (journal.Record, error) {
			return journal.Record{Branches: []journal.Branch{{Payload: make([]byte, size)}}}, nil
		})
		if err != nil {
			return err
		}
		mu.Lock()
		held += size
		most = max(most, held)
		mu.Unlock()
		mu.Lock()
		held -= size
		mu.Unlock()
		free()
		return nil
	})
	if err != nil || most > limit+size || b.used != 0 {
		t.Errorf("%v: %d bytes held at most, %d at the end", err, most, b.used)
	}
	// One that is larger than the budget is read when nothing else is held.
	_, free, err := b.read(t.Context(), func() (journal.Record, error) {
		return journal.Record{Branches: []journal.Branch{{Payload: make([]byte, 10*limit)}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := b.read(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a full budget: %v", err)
	}
	free()
}

func TestDamagedIn(t *testing.T) {
	t.Parallel()
	bad := &journal.Damaged{Text: "x", Err: errors.New("torn")}
	for _, c := range []struct {
		name     string
		err      error
		damaged  int
		complete bool
	}{
		{"no error", nil, 0, true},
		{"one", fmt.Errorf("list: %w", bad), 1, true},
		{"two", fmt.Errorf("list: %w", errors.Join(bad, bad)), 2, true},
		{"and the connection", fmt.Errorf("list: %w", errors.Join(errors.New("lost"), bad)), 1, false},
		{"the connection", errors.New("lost"), 0, false},
	} {
		damaged, complete := damagedIn(c.err)
		if len(damaged) != c.damaged || complete != c.complete {
			t.Errorf("%s: %d damaged, complete %v", c.name, len(damaged), complete)
		}
	}
}

// The refusals, one by one.
func TestRefusal(t *testing.T) {
	t.Parallel()
	j := journal.Identity{ID: "j", Place: "here", Here: "here"}
	sound := identity{
		meta: branches.Meta{StoreID: "s", JournalID: "j", JournalPlace: "here", Sweeps: 7}, keeper: keeper{},
		place: "p", known: true, entry: journal.Registered{Name: "a", Place: "p", StoreID: "s", Sweeps: 7},
	}
	for _, c := range []struct {
		name   string
		change func(*journal.Identity, *identity)
		want   Reason
	}{
		{"sound", func(*journal.Identity, *identity) {}, reasonNone},
		{"store behind", func(_ *journal.Identity, id *identity) { id.meta.Sweeps = 3 }, reasonNone},
		{"new to both", func(_ *journal.Identity, id *identity) {
			*id = identity{keeper: keeper{}, meta: branches.Meta{StoreID: "s"}, place: "p"}
		}, reasonNone},
		{"keeps nothing", func(_ *journal.Identity, id *identity) { *id = identity{} }, reasonNone},
		{"moved", func(j *journal.Identity, _ *identity) { j.Here = "there" }, ReasonMoved},
		{"other journal", func(j *journal.Identity, _ *identity) { j.ID = "k" }, ReasonOtherJournal},
		{"copy of the journal", func(_ *journal.Identity, id *identity) { id.meta.JournalPlace = "there" }, ReasonOtherJournal},
		{"other place", func(_ *journal.Identity, id *identity) { id.place = "q" }, ReasonOtherPlace},
		{"other store at the place", func(_ *journal.Identity, id *identity) { id.meta.StoreID = "t" }, ReasonOtherPlace},
		{"ahead", func(_ *journal.Identity, id *identity) { id.meta.Sweeps = 8 }, ReasonAhead},
		{"bound here, and not registered: the journal is older than the store", func(_ *journal.Identity, id *identity) {
			id.known, id.entry = false, journal.Registered{Name: "a"}
		}, ReasonAhead},
	} {
		j, id := j, sound
		c.change(&j, &id)
		refused := id.refusal("a", j)
		got := reasonNone
		if refused != nil {
			got = refused.Reason
			if refused.Detail == "" || refused.Way == "" || refused.Store != "a" {
				t.Errorf("%s: incomplete: %+v", c.name, refused)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// keeper is a Keeper that is never asked.
type keeper struct{ branches.Keeper }
