package clickhouse_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

// attempt runs an insert of a unit's rows as another worker's, one block a row,
// for about n × 50 ms. It returns when some rows are there; done when it ends.
func (p place) attempt(t *testing.T, table string, ref branches.Ref, n int) (done <-chan error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := p.cluster.TryAs(t.Context(), string(ref.GID)+":0", fmt.Sprintf(
			`INSERT INTO %s.%s SELECT number + 0 * sleepEachRow(0.05), 'x', '%s', %d FROM numbers(%d) SETTINGS max_block_size=1,
			min_insert_block_size_rows=1, min_insert_block_size_bytes=1, max_insert_threads=1, max_threads=1`,
			p.database, table, ref.Txn, int64(txTime), n))
		ended <- err
	}()
	await.Until(t, "some rows of a running insert", func() bool {
		return p.cluster.Int(t, "SELECT count() FROM "+p.database+"."+table+" WHERE dat_txn='"+ref.Txn.String()+"'") >= 3
	})
	return ended
}

// An attempt that runs is waited for: its rows are all there in the end, and
// what was seen of them meanwhile was no torn insert.
func TestRunningIsWaitedFor(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.table(t, "r", 0)
	store := p.open(t, chtest.Native, clickhouse.Options{Patience: time.Minute})
	ref := p.staged(t, store, "r", 30)
	done := p.attempt(t, "r", ref, 30)
	mustFinish(t, store, ref)
	if err := <-done; err != nil {
		t.Errorf("the attempt that ran: %v", err)
	}
	p.holds(t, "r", ref, 30)
	if n := p.deletes(t, "r"); n != 0 {
		t.Errorf("%d DELETEs beside a running insert", n)
	}
}

// An attempt that begins after the server was found quiet is no torn insert
// either.
func TestRunningBeginsAfterQuiet(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.table(t, "r", 0)
	store := p.open(t, chtest.Native, clickhouse.Options{Patience: time.Minute})
	ref := p.staged(t, store, "r", 30)
	late := stopAt(t, store, ref, clickhouse.Quiet)
	done := p.attempt(t, "r", ref, 30)
	late.goOn(t)
	if err := <-done; err != nil {
		t.Errorf("the attempt that ran: %v", err)
	}
	p.holds(t, "r", ref, 30)
	if n := p.deletes(t, "r"); n != 0 {
		t.Errorf("%d DELETEs of an insert that had only begun", n)
	}
}

// One that runs too long is killed, and what it left is taken back.
func TestRunningIsKilled(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.table(t, "r", 0)
	store := p.open(t, chtest.HTTP, clickhouse.Options{Patience: 100 * time.Millisecond})
	ref := p.staged(t, store, "r", 200)
	done := p.attempt(t, "r", ref, 200)
	mustFinish(t, store, ref)
	if err := <-done; err == nil {
		t.Error("the attempt that was to be killed has ended well")
	}
	p.holds(t, "r", ref, 200)
}

// Settle of a commit that still runs: it is over before the answer, and nothing
// of it comes later.
func TestSettleEndsARunningInsert(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.table(t, "r", 0)
	store := p.open(t, chtest.Native, clickhouse.Options{Patience: 50 * time.Millisecond})
	ref := p.staged(t, store, "r", 800)
	done := p.attempt(t, "r", ref, 800)
	fate, err := store.Settle(t.Context(), ref.Txn)
	if fate != branches.FateNever || err != nil {
		t.Fatalf("settle = %s, %v", fate, err)
	}
	<-done
	p.holds(t, "r", ref, 0)
	p.fate(t, store, ref.Txn, branches.FateNever)
}

// A late statement of a commit that was settled inserts nothing, nor does one
// that had asked before the tombstone stood.
func TestSettledNeverInserts(t *testing.T) {
	for _, protocol := range chtest.Protocols {
		p := newPlace(t, chtest.Server(t))
		p.table(t, "r", 0)
		store := p.open(t, protocol, clickhouse.Options{})
		session := connect(t, store)
		u := begin(t, session)
		execute(t, session, "INSERT INTO r (k, s) VALUES (1, 'x'), (2, 'y')")
		u.stage(t, true)
		ref := u.ref()
		clickhouse.Hold(store, func(m string) {
			if m != clickhouse.Inserted {
				return
			}
			p.holds(t, "r", ref, 2)
			other := p.open(t, protocol, clickhouse.Options{})
			if fate, err := other.Settle(t.Context(), u.txn); fate != branches.FateNever || err != nil {
				t.Errorf("settle = %s, %v", fate, err)
			}
		})
		if err := u.Commit(t.Context()); err == nil || branches.IsUnknown(err) {
			t.Errorf("commit of what was settled = %v", err)
		}
		p.holds(t, "r", ref, 0)
		p.fate(t, store, u.txn, branches.FateNever)
	}
}

// Section 4, 2 and 3: the client gives up, the server goes on. A slow
// materialized view keeps the insert at work.
func TestClientTimeout(t *testing.T) {
	for _, protocol := range chtest.Protocols {
		for _, window := range windows {
			t.Run(fmt.Sprintf("%s, window %d", protocol, window), func(t *testing.T) {
				p := newPlace(t, chtest.Server(t))
				p.table(t, "r", window)
				p.cluster.Exec(t, "CREATE TABLE "+p.database+".seen (n UInt8) ENGINE = MergeTree ORDER BY n")
				p.cluster.Exec(t, "CREATE MATERIALIZED VIEW "+p.database+".slow TO "+p.database+".seen AS SELECT sleepEachRow(0.1) AS n FROM "+p.database+".r")
				store := p.open(t, protocol, clickhouse.Options{})
				ref := p.staged(t, store, "r", 12)
				ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
				defer cancel()
				if err := store.Finish(ctx, ref); err == nil {
					t.Fatal("finish within less time than it takes = nil")
				}
				mustFinish(t, p.open(t, protocol, clickhouse.Options{}), ref)
				p.holds(t, "r", ref, 12)
			})
		}
	}
}

// slowTable makes a table of which every row takes 50 ms before any is there.
func (p place) slowTable(t *testing.T, name string) {
	t.Helper()
	p.cluster.Exec(t, "CREATE TABLE "+p.database+"."+name+` (k UInt64, s String, dat_txn UUID, dat_tx_time Int64, slow UInt8 DEFAULT sleepEachRow(0.05))
		ENGINE = MergeTree ORDER BY k PARTITION BY k % 4`)
}

// An insert that takes longer than any call may comes to its end all the same:
// the end of a call does not cut it off.
func TestInsertOutlivesItsCalls(t *testing.T) {
	for _, protocol := range chtest.Protocols {
		t.Run(string(protocol), func(t *testing.T) {
			p := newPlace(t, chtest.Server(t))
			p.slowTable(t, "r")
			store := p.open(t, protocol, clickhouse.Options{})
			ref := p.staged(t, store, "r", 30)
			calls := 0
			await.Until(t, "finished", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				calls++
				err := store.Finish(ctx, ref)
				if err != nil && branches.Classify(store, err) != branches.Transient {
					t.Fatalf("finish: %v", err)
				}
				return err == nil
			})
			if calls == 1 {
				t.Error("the first call took no longer than it may: nothing was tried")
			}
			p.holds(t, "r", ref, 30)
			if n := p.deletes(t, "r"); n != 0 {
				t.Errorf("%d DELETEs of an insert that was running", n)
			}
		})
	}
}

// A process that ends lets such an insert come to its end.
func TestCloseWaitsForInserts(t *testing.T) {
	for _, protocol := range chtest.Protocols {
		t.Run(string(protocol), func(t *testing.T) {
			p := newPlace(t, chtest.Server(t))
			p.slowTable(t, "r")
			store := p.open(t, protocol, clickhouse.Options{})
			ref := p.staged(t, store, "r", 30)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if err := store.Finish(ctx, ref); err == nil {
				t.Fatal("finish within less time than it takes = nil")
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			p.holds(t, "r", ref, 30)
			if err := store.Finish(t.Context(), ref); err == nil {
				t.Error("finish after Close = nil")
			}
		})
	}
}
