package journaltest_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/journaltest"
)

// A suite that a journal without any function passes would test nothing.
func TestEveryItemFailsAgainstAJournalThatOnlyAnswersNil(t *testing.T) {
	items := journaltest.Items()
	if len(items) < 60 {
		t.Fatalf("the suite has %d items", len(items))
	}
	for _, item := range items {
		if !fails(t, item) {
			t.Errorf("item %q passes against a journal that answers nil to everything", item.Name)
		}
	}
}

// fails runs an item in a goroutine of its own, as package testing does, and
// reports whether it failed.
func fails(t *testing.T, item journaltest.Item) bool {
	t.Helper()
	r := &recorder{TB: t}
	var wg sync.WaitGroup
	wg.Go(func() {
		item.Run(journaltest.NewBed(r, func(testing.TB) journaltest.Open {
			return func(journal.Options) journal.Journal { return stub{} }
		}))
	})
	wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// recorder takes failures instead of the test.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed bool
}

func (r *recorder) Errorf(string, ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// stub answers the zero values.
type stub struct{}

func (stub) Session(context.Context) (journal.Session, error) { return stubSession{}, nil }

func (stub) Finish(context.Context, []branches.TxnID) (int, error)                  { return 0, nil }
func (stub) Scan(context.Context, journal.Filter, func(journal.Record) error) error { return nil }
func (stub) Annotate(context.Context, journal.Record) error                         { return nil }
func (stub) Harden(context.Context) error                                           { return nil }
func (stub) Close() error                                                           { return nil }
func (stub) Install(context.Context) error                                          { return nil }
func (stub) InstallSQL() string                                                     { return "" }
func (stub) Identify(context.Context) (journal.Identity, error)                     { return journal.Identity{}, nil }

func (stub) Stores(context.Context) ([]journal.Registered, error)      { return nil, nil }
func (stub) Adopt(context.Context, branches.Place) error               { return nil }
func (stub) RaiseSweeps(context.Context, string, int64) (int64, error) { return 0, nil }

func (stub) Remove(context.Context, []branches.TxnID) (int, error) { return 0, nil }

func (stub) Horizon(context.Context) (time.Time, error) { return time.Time{}, nil }

func (stub) HighWater(context.Context) (hlc.Time, error) { return 0, nil }

func (stub) Clock(context.Context) (time.Time, error) { return time.Time{}, nil }

func (stub) Removable(context.Context, time.Time, int) ([]journal.Record, error) { return nil, nil }

func (stub) Rebind(context.Context, journal.Registered, journal.Registered) (bool, error) {
	return false, nil
}

func (stub) Register(context.Context, journal.Registered) (journal.Registered, error) {
	return journal.Registered{}, nil
}

type stubSession struct{}

func (stubSession) Create(context.Context, *journal.Record) error   { return nil }
func (stubSession) Prepare(context.Context, journal.Decision) error { return nil }
func (stubSession) Decide(context.Context, journal.Decision) error  { return nil }
func (stubSession) Release()                                        {}
func (stubSession) Read(context.Context, branches.TxnID) (journal.Record, error) {
	return journal.Record{}, nil
}

func (stubSession) Abort(context.Context, branches.TxnID, journal.Durability) (journal.State, error) {
	return "", nil
}
