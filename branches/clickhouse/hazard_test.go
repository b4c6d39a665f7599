package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

// windows are the deduplication windows of a table: none, which is the default of
// a MergeTree, and one, as every replicated table has.
var windows = []int{0, 100}

// table makes a table of the application. more goes into its settings.
func (p place) table(t *testing.T, name string, window int, more ...string) {
	t.Helper()
	settings := append([]string{fmt.Sprintf("non_replicated_deduplication_window=%d", window)}, more...)
	p.cluster.Exec(t, "CREATE TABLE "+p.database+"."+name+` (k UInt64, s String, dat_txn Nullable(UUID), dat_tx_time Nullable(Int64))
		ENGINE = MergeTree ORDER BY k PARTITION BY k % 4 SETTINGS `+strings.Join(settings, ","))
}

// staged is a decided unit of n rows in a table, with nobody at work on it.
func (p place) staged(t *testing.T, store *clickhouse.Store, table string, n int) branches.Ref {
	t.Helper()
	session := connect(t, store)
	u := begin(t, session)
	next := 0
	copied, err := session.(branches.Copier).CopyFrom(t.Context(), table, []string{"k", "s"}, func() ([]any, error) {
		if next++; next > n {
			return nil, nil
		}
		return []any{next - 1, strings.Repeat("x", 20)}, nil
	})
	if err != nil || copied != int64(n) {
		t.Fatalf("copied %d: %v", copied, err)
	}
	ref := u.stage(t, false).ref()
	if err := u.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ref
}

// holds expects exactly n rows of a unit, each once.
func (p place) holds(t *testing.T, table string, ref branches.Ref, n int) {
	t.Helper()
	got := p.cluster.Ask(t, "SELECT count(), uniqExact(k), countIf(dat_tx_time="+fmt.Sprint(int64(txTime))+") FROM "+p.database+"."+table+
		" WHERE dat_txn='"+ref.Txn.String()+"'")
	if want := fmt.Sprintf("%d\t%d\t%d", n, n, n); got != want {
		t.Errorf("rows, different rows, rows of the right time: %q, want %q", got, want)
	}
}

func (p place) fate(t *testing.T, store *clickhouse.Store, txn branches.TxnID, want branches.Fate) {
	t.Helper()
	if got, err := store.Applied(t.Context(), txn); got != want || err != nil {
		t.Errorf("fate %s, %v, want %s", got, err, want)
	}
}

// deletes counts the DELETEs that a table has seen.
func (p place) deletes(t *testing.T, table string) int {
	t.Helper()
	return p.cluster.Int(t, "SELECT count() FROM system.mutations WHERE database='"+p.database+"' AND table='"+table+"'")
}

func mustFinish(t *testing.T, store *clickhouse.Store, ref branches.Ref) {
	t.Helper()
	if err := insist(t, store, ref); err != nil {
		t.Fatalf("finish: %v", err)
	}
}

// insist calls again, as recovery does, what may answer "busy".
func insist(t *testing.T, store *clickhouse.Store, ref branches.Ref) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tries := 1; ; tries++ {
		err := store.Finish(ctx, ref)
		if err == nil || ctx.Err() != nil || tries == 5 || branches.Classify(store, err) != branches.Transient {
			return err
		}
	}
}

// worker is a finisher that stops at moments, as a process does that is stopped
// past its claim, and goes on when it is told to.
type worker struct {
	stopped chan string // the moment at which it has stopped
	hold    chan struct{}
	done    chan error
}

// stopAt starts a worker that stops at these moments, each once, in this order,
// and waits until it stops at the first.
func stopAt(t *testing.T, store *clickhouse.Store, ref branches.Ref, moments ...string) *worker {
	t.Helper()
	w := &worker{stopped: make(chan string, len(moments)), hold: make(chan struct{}, len(moments)), done: make(chan error, 1)}
	left := moments
	clickhouse.Hold(store, func(m string) { // by one goroutine
		if len(left) > 0 && left[0] == m {
			left = left[1:]
			w.stopped <- m
			<-w.hold
		}
	})
	t.Cleanup(func() {
		for range moments {
			w.resume()
		}
	})
	go func() { w.done <- insist(t, store, ref) }()
	w.await(t)
	return w
}

// await waits until the worker stops.
func (w *worker) await(t *testing.T) {
	t.Helper()
	select {
	case <-w.stopped:
	case err := <-w.done:
		t.Fatalf("worker has ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("worker does not stop where it should")
	}
}

func (w *worker) resume() {
	select {
	case w.hold <- struct{}{}:
	default:
	}
}

func (w *worker) goOn(t *testing.T) {
	t.Helper()
	w.resume()
	if err := <-w.done; err != nil {
		t.Errorf("worker that was stopped: %v", err)
	}
}

// eachWay runs a test with and without a window, over both protocols; in the
// short form over one protocol each.
func eachWay(t *testing.T, test func(t *testing.T, p place, table string, open func() *clickhouse.Store)) {
	t.Helper()
	for _, protocol := range chtest.Protocols {
		for _, window := range windows {
			if !long() && (protocol == chtest.HTTP) != (window > 0) && os.Getenv(envGuards) == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s, window %d", protocol, window), func(t *testing.T) {
				p := newPlace(t, chtest.Server(t))
				p.table(t, "r", window)
				test(t, p, "r", func() *clickhouse.Store { return p.open(t, protocol, clickhouse.Options{}) })
			})
		}
	}
}

// Section 4, 11: a worker that counted none, and was stopped while another
// finished.
func TestStoppedBeforeInsert(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		ref := p.staged(t, open(), table, 50)
		late := stopAt(t, open(), ref, clickhouse.Counted)
		mustFinish(t, open(), ref)
		late.goOn(t)
		p.holds(t, table, ref, 50)
	})
}

// Section 4, 12: the same, and the application has deleted the rows meanwhile.
func TestStoppedBeforeInsertOfDeletedRows(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		ref := p.staged(t, open(), table, 50)
		late := stopAt(t, open(), ref, clickhouse.Counted)
		mustFinish(t, open(), ref)
		p.cluster.Exec(t, "DELETE FROM "+p.database+"."+table+" WHERE 1")
		late.goOn(t)
		p.holds(t, table, ref, 0)
	})
}

// A worker counted a torn insert and was stopped before its DELETE; another has
// repaired it, and has not come to its marker yet.
func TestStoppedBeforeDelete(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		ref := p.staged(t, open(), table, 50)
		p.tear(t, open(), table, ref)
		late := stopAt(t, open(), ref, clickhouse.Counted, clickhouse.Deleted)
		other := stopAt(t, open(), ref, clickhouse.Inserted)
		p.holds(t, table, ref, 50)
		late.resume()
		late.await(t)
		// Its DELETE named parts that are gone. Whatever it would do next, the
		// other's marker now says that the rows are there.
		other.goOn(t)
		p.holds(t, table, ref, 50)
		late.goOn(t)
		p.holds(t, table, ref, 50)
	})
}

// The same, and the other is done with its marker too.
func TestStoppedBeforeDeleteOfFinishedRows(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		ref := p.staged(t, open(), table, 50)
		p.tear(t, open(), table, ref)
		late := stopAt(t, open(), ref, clickhouse.Counted)
		mustFinish(t, open(), ref)
		late.goOn(t)
		p.holds(t, table, ref, 50)
	})
}

// A crash between the insert and the marker: nothing is inserted or deleted again.
func TestCutBeforeMarker(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		ref := p.staged(t, open(), table, 50)
		cut := open()
		ctx, cancel := context.WithCancel(t.Context())
		clickhouse.Hold(cut, func(m string) {
			if m == clickhouse.Inserted {
				cancel()
			}
		})
		if err := cut.Finish(ctx, ref); err == nil {
			t.Fatal("finish without its marker = nil")
		}
		p.fate(t, open(), ref.Txn, branches.FateAbsent)
		mustFinish(t, open(), ref)
		p.holds(t, table, ref, 50)
		p.fate(t, open(), ref.Txn, branches.FateApplied)
		if n := p.deletes(t, table); n != 0 {
			t.Errorf("%d DELETEs, want none", n)
		}
	})
}

// Section 4, 12: DONE is lost, and the application has deleted some or all rows.
func TestDeletedRowsStayAway(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		for _, c := range []struct {
			where string
			left  int
		}{{"k < 20", 30}, {"1", 0}} {
			ref := p.staged(t, open(), table, 50)
			mustFinish(t, open(), ref)
			p.cluster.Exec(t, "DELETE FROM "+p.database+"."+table+" WHERE dat_txn='"+ref.Txn.String()+"' AND "+c.where)
			mustFinish(t, open(), ref)
			p.holds(t, table, ref, c.left)
		}
	})
}

// More rows than expected are taken for torn, too.
func TestTooManyRows(t *testing.T) {
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		ref := p.staged(t, open(), table, 50)
		p.cluster.Exec(t, "INSERT INTO "+p.database+"."+table+" SELECT number, 'x', '"+ref.Txn.String()+"', 1 FROM numbers(70)")
		mustFinish(t, open(), ref)
		p.holds(t, table, ref, 50)
	})
}

// Workers at once: every one answers, and every row is there once.
func TestWorkersAtOnce(t *testing.T) {
	rounds, workers, rows := 8, 3, 500
	if long() {
		rounds, workers, rows = 30, 4, 5000
	}
	eachWay(t, func(t *testing.T, p place, table string, open func() *clickhouse.Store) {
		t.Helper()
		stores := make([]*clickhouse.Store, workers)
		for i := range stores {
			stores[i] = open()
		}
		for range rounds {
			ref := p.staged(t, stores[0], table, rows)
			var all sync.WaitGroup
			errs := make([]error, workers)
			for i, store := range stores {
				all.Go(func() { errs[i] = insist(t, store, ref) })
			}
			all.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
			p.holds(t, table, ref, rows)
		}
	})
}

// Two tables, and two lists of columns in one of them: each list is in once,
// wherever the finisher was cut.
func TestSeveralLists(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.table(t, "a", 0)
	p.table(t, "b", 0)
	store := p.open(t, chtest.Native, clickhouse.Options{})
	session := connect(t, store)
	u := begin(t, session)
	for i := range 10 {
		execute(t, session, "INSERT INTO a (k, s) VALUES (?, ?)", i, "both")
		execute(t, session, "INSERT INTO a (k) VALUES (?)", 100+i)
		execute(t, session, "INSERT INTO b (s, k) VALUES (?, ?)", "b", i)
	}
	ref := u.stage(t, false).ref()
	if err := u.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The first list is in, the second is not.
	p.cluster.Exec(t, "INSERT INTO "+p.database+".a SELECT number, 'both', '"+ref.Txn.String()+"', "+fmt.Sprint(int64(txTime))+" FROM numbers(10)")
	mustFinish(t, store, ref)
	p.holds(t, "a", ref, 20)
	p.holds(t, "b", ref, 10)
	if n := p.deletes(t, "a"); n != 0 {
		t.Errorf("%d DELETEs of a prefix that was whole", n)
	}
}
