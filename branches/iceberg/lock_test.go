package iceberg_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
)

// locker is a commit lock that does as it is told and notes what it was asked.
type locker struct {
	answer func(ctx context.Context) error // nil grants
	ask    func()                          // may be nil
	done   func()                          // may be nil

	mu    sync.Mutex
	names []string
	waits []time.Duration // how long each was ready to wait
	open  int             // granted and not given back
}

func (l *locker) Lock(ctx context.Context, name string) (func(), error) {
	until, _ := ctx.Deadline()
	l.mu.Lock()
	l.names, l.waits = append(l.names, name), append(l.waits, time.Until(until))
	l.mu.Unlock()
	if l.ask != nil {
		l.ask()
	}
	if l.answer != nil {
		if err := l.answer(ctx); err != nil {
			return nil, err
		}
	}
	l.count(1)
	return func() {
		l.count(-1)
		if l.done != nil {
			l.done()
		}
	}, nil
}

func (l *locker) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open += n
}

// within checks how long the askers were ready to wait, the last first.
func (l *locker) within(t *testing.T, want ...time.Duration) {
	t.Helper()
	if len(l.waits) != len(want) || l.open != 0 {
		t.Fatalf("asked for %q, each ready to wait %v, %d not given back, want waits of %v", l.names, l.waits, l.open, want)
	}
	for i, wait := range l.waits {
		if wait > want[i] || wait < want[i]-want[i]/2 {
			t.Errorf("lock %d was ready to wait %s, want %s", i, wait, want[i])
		}
	}
}

// held is another that does not give the lock back.
func held(ctx context.Context) error {
	<-ctx.Done()
	return iceberg.ErrLocked
}

func beginWith(t *testing.T, b *bed, l *locker, statements ...string) *unit {
	t.Helper()
	u := b.begin(b.open(iceberg.Options{Locker: l, CommitWait: time.Minute}))
	for _, text := range statements {
		execOn(t, u.session, text)
	}
	if err := u.try(t.Context()); err != nil {
		t.Fatal(err)
	}
	return u
}

// The commit sequence is under the table's lock, and the data files are written
// outside of it. Once the first of several tables is committed the unit is decided.
func TestCommitLock(t *testing.T) {
	for _, kind := range icetest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			b := newBed(t, kind.Make, retrying, "CREATE TABLE other (k string)")
			var files, snapshots []int
			note := func() {
				files = append(files, len(b.glob("t/data/*.parquet"))+len(b.glob("other/data/*.parquet")))
				snapshots = append(snapshots, len(b.load("t").Metadata().Snapshots())+len(b.load("other").Metadata().Snapshots()))
			}
			l := &locker{ask: note, done: note}
			u := beginWith(t, b, l, "INSERT INTO t (k) VALUES ('a')", "INSERT INTO other (k) VALUES ('a')")
			if len(l.names) != 0 {
				t.Errorf("S3 has asked for %q", l.names)
			}
			if err := u.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.within(t, time.Minute, time.Second)
			if !strings.HasPrefix(l.names[0], "iceberg:") || !strings.HasSuffix(l.names[0], "/ns.other") || !strings.HasSuffix(l.names[1], "/ns.t") {
				t.Errorf("locks %q, want iceberg:<catalog>/ns.other, then ns.t", l.names)
			}
			if want := []int{0, 1, 1, 2}; !slices.Equal(snapshots, want) {
				t.Errorf("snapshots at each lock and unlock: %v, want %v", snapshots, want)
			}
			if want := 2; b.place.Dir != "" && slices.ContainsFunc(files, func(n int) bool { return n != want }) {
				t.Errorf("data files at each lock and unlock: %v, want %d, written before", files, want)
			}
			again := &locker{}
			if err := beginWith(t, b, again, "INSERT INTO t (k) VALUES ('b')").Commit(t.Context()); err != nil || again.names[0] != l.names[1] {
				t.Errorf("another process locks %q, %v, want %q", again.names, err, l.names[1])
			}
			b.want("SELECT k FROM t", "a", "b")
		})
	}
}

// Before the decision a wait in vain is an answer: TRANSIENT, and nothing is left.
func TestLockedBeforeTheDecision(t *testing.T) {
	b := newBed(t, icetest.SQLite, retrying)
	l := &locker{answer: func(context.Context) error { return iceberg.ErrLocked }}
	u := beginWith(t, b, l, "INSERT INTO t (k) VALUES ('a')")
	err := u.Commit(t.Context())
	if !errors.Is(err, iceberg.ErrLocked) || branches.IsUnknown(err) || branches.Classify(b.store, err) != branches.Transient ||
		!strings.Contains(err.Error(), "table ns.t: others were committing to it for 1m0s, which is commit_wait") {
		t.Errorf("commit = %v", err)
	}
	l.within(t, time.Minute)
	if files := b.glob("t/data/*.parquet"); len(files) != 0 {
		t.Errorf("it leaves %q", files)
	}
	b.want("SELECT k FROM t")
	if _, err := b.session(b.open(iceberg.Options{Locker: l})).Exec(t.Context(), "INSERT INTO t (k) VALUES ('a')", nil); !errors.Is(err, iceberg.ErrLocked) {
		t.Errorf("a statement of its own = %v", err)
	}
	b.want("SELECT k FROM t")
	l.waits = l.waits[1:]
	l.within(t, 45*time.Second)
}

// A caller that gives up while it waits has an answer, too.
func TestGivenUpWhileWaiting(t *testing.T) {
	b := newBed(t, icetest.SQLite, retrying)
	ctx, cancel := context.WithCancel(t.Context())
	u := beginWith(t, b, &locker{ask: cancel, answer: held}, "INSERT INTO t (k) VALUES ('a')")
	if err := u.Commit(ctx); !errors.Is(err, context.Canceled) || branches.IsUnknown(err) {
		t.Errorf("commit = %v", err)
	}
	b.want("SELECT k FROM t")
}

// After the decision nobody waits for a holder that may be dead.
func TestLockedAfterTheDecision(t *testing.T) {
	b := newBed(t, icetest.SQLite, retrying, "CREATE TABLE other (k string)")
	l := &locker{answer: held}
	u := beginWith(t, b, l, "INSERT INTO t (k) VALUES ('a')", "DELETE FROM other WHERE k = 'z'", "INSERT INTO other (k) VALUES ('b')")
	if err := u.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	l.within(t, time.Second, time.Second)
	b.want("SELECT k FROM t", "a")
	b.want("SELECT k FROM other", "b")
}

// Where no lock can be had, commits go on without.
func TestWithoutALock(t *testing.T) {
	b := newBed(t, icetest.SQLite, retrying)
	l := &locker{answer: func(context.Context) error { return errors.New("the journal is down") }}
	for _, end := range []func(*unit) error{
		func(u *unit) error { return u.Commit(t.Context()) },
		func(u *unit) error { return u.Finish(t.Context(), u.ref()) },
	} {
		if err := end(beginWith(t, b, l, "INSERT INTO t (k) VALUES ('a')")); err != nil {
			t.Error(err)
		}
	}
	l.within(t, time.Minute, time.Second)
	b.want("SELECT k FROM t", "a", "a")
}

// A lock that was lost before the commit has spared nothing and cost nothing: two
// that hold it at once are both committed, once each.
func TestLockThatWasLost(t *testing.T) {
	for _, kind := range icetest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			b := newBed(t, kind.Make, retrying)
			meet := meeting(2)
			var wg sync.WaitGroup
			for range 2 {
				l := &locker{} // grants it to each
				store := b.open(iceberg.Options{Locker: l})
				store.SetInspected(meet())
				u := b.begin(store)
				execOn(t, u.session, "INSERT INTO t (k) VALUES ('a')")
				if err := u.try(t.Context()); err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					if err := u.Commit(t.Context()); err != nil {
						t.Error(err)
					}
				})
				defer func() {
					if n := b.snapshotsOf("t", u.txn); n != 1 {
						t.Errorf("%d snapshots carry a unit, want 1", n)
					}
				}()
			}
			wg.Wait()
			b.want("SELECT k FROM t", "a", "a")
		})
	}
}
