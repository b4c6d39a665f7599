package iceberg_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
)

// retrying is a table whose properties tell writers to retry.
const retrying = "CREATE TABLE t (k string, n long) TBLPROPERTIES ('commit.retry.num-retries'='4','commit.retry.min-wait-ms'='1')"

// insist calls again, as recovery does, what may answer "busy".
func insist(ctx context.Context, call func() error) error {
	for {
		err := call()
		if _, final := errors.AsType[*branches.Heuristic](err); err == nil || final || ctx.Err() != nil {
			return err
		}
	}
}

// Two workers finish one decided change at once. Both have looked, and found
// nothing, before either commits (ICE1).
func TestTwoWorkers(t *testing.T) {
	t.Parallel()
	for _, kind := range icetest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, kind.Make, retrying)
			workers := [2]*iceberg.Store{b.open(iceberg.Options{}), b.open(iceberg.Options{})}
			rounds, doubled := 30, 0
			if strings.HasSuffix(kind.Name, "s3") {
				rounds = 4 // each takes twenty requests to an object store
			}
			for range rounds {
				u := b.staged("INSERT INTO t (k) VALUES ('a')")
				meet := meeting(len(workers))
				var wg sync.WaitGroup
				for _, worker := range workers {
					worker.SetInspected(meet())
					wg.Go(func() {
						if err := insist(t.Context(), func() error { return worker.Finish(t.Context(), u.ref()) }); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if b.snapshotsOf("t", u.txn) != 1 {
					doubled++
				}
			}
			if doubled > 0 {
				t.Errorf("%d of %d changes are not in exactly one snapshot", doubled, rounds)
			}
			b.want("SELECT count(*) FROM t", strconv.Itoa(rounds))
		})
	}
}

// meeting makes functions that wait for each other, the first time they are called.
func meeting(n int) func() func() {
	var all sync.WaitGroup
	all.Add(n)
	return func() func() {
		var once sync.Once
		return func() {
			once.Do(func() {
				all.Done()
				all.Wait()
			})
		}
	}
}

// A worker sleeps between its look and its commit, and another one does all the work
// meanwhile.
func TestSleeper(t *testing.T) {
	t.Parallel()
	for _, kind := range icetest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, kind.Make, retrying)
			u := b.staged("INSERT INTO t (k) VALUES ('a')")
			sleeper, other := b.open(iceberg.Options{}), b.open(iceberg.Options{})
			var once sync.Once
			sleeper.SetInspected(func() {
				once.Do(func() {
					if err := other.Finish(t.Context(), u.ref()); err != nil {
						t.Error(err)
					}
				})
			})
			if err := sleeper.Finish(t.Context(), u.ref()); err != nil {
				t.Error(err)
			}
			if n := b.snapshotsOf("t", u.txn); n != 1 {
				t.Errorf("%d snapshots carry the unit, want 1", n)
			}
			b.want("SELECT k FROM t", "a")
		})
	}
}

// A commit that was refused leaves no manifest of its own behind.
func TestRefusedCommitIsCleared(t *testing.T) {
	b := newBed(t, icetest.SQLite, retrying)
	u, peer := b.staged("INSERT INTO t (k) VALUES ('a')"), b.staged("INSERT INTO t (k) VALUES ('b')")
	store := b.open(iceberg.Options{})
	var once sync.Once
	store.SetInspected(func() {
		once.Do(func() {
			if err := b.store.Finish(t.Context(), peer.ref()); err != nil {
				t.Error(err)
			}
		})
	})
	if err := store.Finish(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	lists, manifests := b.glob("t/metadata/snap-*.avro"), b.glob("t/metadata/*-m*.avro")
	if len(lists) != 2 || len(manifests) != 2 {
		t.Errorf("%d manifest lists and %d manifests of two commits: %q %q", len(lists), len(manifests), lists, manifests)
	}
	b.want("SELECT k FROM t", "a", "b")
}

// The catalog applies a commit and its answer is lost: the next call finds it.
func TestLostAnswer(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusInternalServerError} {
		for _, after := range []bool{false, true} {
			b := newBed(t, icetest.RESTPlace, retrying)
			u := b.staged("INSERT INTO t (k) VALUES ('a')")
			b.place.REST.Fail(func(now bool) int {
				if now == after {
					return status
				}
				return 0
			})
			err := b.store.Finish(t.Context(), u.ref())
			if err == nil || !branches.IsUnknown(err) {
				t.Errorf("status %d, after=%t: finish = %v, want an unknown outcome", status, after, err)
			}
			if kind := branches.Classify(b.store, err); kind != branches.Transient {
				t.Errorf("status %d: %s, want transient", status, kind)
			}
			b.place.REST.Fail(nil)
			if err := b.store.Finish(t.Context(), u.ref()); err != nil {
				t.Fatal(err)
			}
			if n := b.snapshotsOf("t", u.txn); n != 1 {
				t.Errorf("status %d, after=%t: %d snapshots, want 1", status, after, n)
			}
		}
	}
}

// A one-phase commit whose answer was lost is committed where the table shows it.
func TestLostAnswerInOnePhase(t *testing.T) {
	b := newBed(t, icetest.RESTPlace, retrying)
	u := b.begin(b.store)
	execOn(t, u.session, "INSERT INTO t (k) VALUES ('a')")
	if err := u.try(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.place.REST.Fail(func(after bool) int { return map[bool]int{true: http.StatusServiceUnavailable}[after] })
	if err := u.Commit(t.Context()); err != nil {
		t.Errorf("commit = %v, but the table holds it", err)
	}
	b.place.REST.Fail(nil)
	b.want("SELECT k FROM t", "a")
}

// A one-phase commit that never arrives is settled as never: its files go, and a
// late delivery is refused.
func TestSettleOfLostCommit(t *testing.T) {
	b := newBed(t, icetest.RESTPlace, retrying, "CREATE TABLE other (k string)")
	u := b.begin(b.store)
	execOn(t, u.session, "INSERT INTO t (k) VALUES ('a')")
	if err := u.try(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.place.REST.Fail(func(after bool) int { return map[bool]int{false: http.StatusServiceUnavailable}[after] })
	if err := u.Commit(t.Context()); !branches.IsUnknown(err) {
		t.Fatalf("commit = %v, want an unknown outcome", err)
	}
	b.place.REST.Fail(nil)
	if len(b.glob("t/data/*.parquet")) != 1 {
		t.Error("a staged file was removed while the outcome was unknown")
	}
	fate, err := b.store.Settle(t.Context(), u.txn)
	if err != nil || fate != branches.FateNever {
		t.Fatalf("settle = %s, %v, want never", fate, err)
	}
	if got := b.glob("t/data/*.parquet"); len(got) != 0 {
		t.Errorf("staged files stay behind: %q", got)
	}
	if n := len(b.load("other").Metadata().Snapshots()); n != 0 {
		t.Errorf("a table that the unit has not touched has %d snapshots", n)
	}
	err = b.store.Finish(t.Context(), u.ref())
	if _, ok := errors.AsType[*branches.Heuristic](err); !ok {
		t.Errorf("finish of a buried unit = %v, want a Heuristic", err)
	}
	b.want("SELECT k FROM t")
}

// An aborted unit's files go, by whatever process, and only its own.
func TestAbortRemovesFiles(t *testing.T) {
	b := newBed(t, icetest.SQLite, retrying, "INSERT INTO t (k) VALUES ('z')")
	u, other := b.staged("INSERT INTO t (k) VALUES ('a')", "DELETE FROM t WHERE k = 'z'"), b.staged("INSERT INTO t (k) VALUES ('b')")
	store := b.open(iceberg.Options{})
	for range 2 {
		if err := store.Abort(t.Context(), u.ref()); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.glob("t/data/*.parquet"); len(got) != 2 {
		t.Errorf("%d data files, want the table's and the other unit's: %q", len(got), got)
	}
	if err := store.Finish(t.Context(), other.ref()); err != nil {
		t.Fatal(err)
	}
	b.want("SELECT k FROM t", "b", "z")
}
