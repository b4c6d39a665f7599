package clickhouse_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

// Section 3, way 1, and section 4, 1: the engine is killed inside of an insert
// over many partitions, until some rows were in and some were not. What recovery
// makes of it is every row once.
func TestKilledInsideInsert(t *testing.T) {
	for _, window := range windows {
		t.Run(fmt.Sprintf("window %d", window), func(t *testing.T) {
			p := newPlace(t, chtest.Own(t, ""))
			p.cluster.Exec(t, fmt.Sprintf("CREATE TABLE %s.wide (k UInt64, s String, dat_txn UUID, dat_tx_time Int64)"+
				" ENGINE = MergeTree ORDER BY k PARTITION BY k %% 90"+
				" SETTINGS fsync_after_insert=1, non_replicated_deduplication_window=%d", p.database, window))
			wanted, tries := 1, 25
			if long() {
				wanted, tries = 5, 100
			}
			torn := 0
			for try := 0; torn < wanted; try++ {
				if try == tries {
					t.Fatalf("%d kills left %d torn inserts, want %d", tries, torn, wanted)
				}
				torn += p.killInside(t, protocolOf(try))
			}
			t.Logf("torn inserts: %d", torn)
		})
	}
}

func protocolOf(try int) chtest.Protocol { return chtest.Protocols[try%len(chtest.Protocols)] }

// killInside kills the engine at a random moment of an insert, starts it again
// and finishes. It returns 1 if the insert was torn.
func (p place) killInside(t *testing.T, protocol chtest.Protocol) int {
	t.Helper()
	const rows = 20_000
	p.cluster.Exec(t, "TRUNCATE TABLE "+p.database+".wide")
	store := p.open(t, protocol, clickhouse.Options{})
	ref := p.staged(t, store, "wide", rows)
	done := make(chan error, 1)
	go func() { done <- store.Finish(t.Context(), ref) }()
	timer := time.NewTimer(time.Duration(rand.IntN(400)) * time.Millisecond)
	<-timer.C
	p.cluster.Kill(t)
	<-done
	p.cluster.Start(t)
	found := p.cluster.Int(t, "SELECT count() FROM "+p.database+".wide")
	mustFinish(t, p.open(t, protocol, clickhouse.Options{}), ref)
	p.holds(t, "wide", ref, rows)
	if found == 0 || found == rows {
		return 0
	}
	return 1
}

// What was acknowledged survives a kill, and so does its marker.
func TestKilledAfterFinish(t *testing.T) {
	p := newPlace(t, chtest.Own(t, ""))
	p.table(t, "r", 0)
	var refs []branches.Ref
	for i := range 6 {
		store := p.open(t, protocolOf(i), clickhouse.Options{})
		ref := p.staged(t, store, "r", 100)
		mustFinish(t, store, ref)
		refs = append(refs, ref)
		p.cluster.Kill(t)
		p.cluster.Start(t)
		for _, ref := range refs {
			again := p.open(t, protocolOf(i), clickhouse.Options{})
			p.fate(t, again, ref.Txn, branches.FateApplied)
			mustFinish(t, again, ref)
			p.holds(t, "r", ref, 100)
		}
	}
}

// disks has a disk without room beside the default one.
const disks = `<storage_configuration><disks>
<small><type>local</type><path>DIR/small/</path><keep_free_space_bytes>%d</keep_free_space_bytes></small></disks>
<policies><small><volumes><main><disk>small</disk></main></volumes></small></policies></storage_configuration>`

// A disk fills up after the decision: nothing is lost, and as soon as there is
// room the branch is finished. Before the decision min_free would have refused.
func TestFullDisk(t *testing.T) {
	const none, all = 1 << 50, 0
	p := newPlace(t, chtest.Own(t, fmt.Sprintf(disks, all)))
	p.table(t, "roomy", 0)
	p.table(t, "r", 100, "storage_policy='small'")
	store := p.open(t, chtest.Native, clickhouse.Options{})
	whole, torn := p.staged(t, store, "r", 50), p.staged(t, store, "r", 50)
	p.tear(t, p.open(t, chtest.Native, clickhouse.Options{}), "r", torn)

	p.cluster.Configure(t, fmt.Sprintf(disks, none))
	p.cluster.Stop(t)
	p.cluster.Start(t)
	store = p.open(t, chtest.Native, clickhouse.Options{})
	err := store.Finish(t.Context(), whole)
	if kind := branches.Classify(store, err); err == nil || kind != branches.StoreFull {
		t.Errorf("finish on a full disk = %v (%s), want store full", err, kind)
	}
	p.holds(t, "r", whole, 0)
	p.free(t, store, "r", true)
	p.free(t, store, "roomy", false)
	began := time.Now()
	clickhouse.BoundDeletes(store, 2*time.Second)
	if err := store.Finish(t.Context(), torn); err == nil {
		t.Error("repair on a full disk = nil")
	}
	if took := time.Since(began); took > 3*time.Minute {
		t.Errorf("repair on a full disk took %s", took)
	}

	p.cluster.Configure(t, fmt.Sprintf(disks, all))
	p.cluster.Kill(t)
	p.cluster.Start(t)
	store = p.open(t, chtest.HTTP, clickhouse.Options{})
	mustFinish(t, store, whole)
	mustFinish(t, store, torn)
	p.holds(t, "r", whole, 50)
	p.holds(t, "r", torn, 50)
}

// free expects what a branch that has written to a table says of its disks.
func (p place) free(t *testing.T, store *clickhouse.Store, table string, full bool) {
	t.Helper()
	session := connect(t, store)
	u := begin(t, session)
	execute(t, session, "INSERT INTO "+table+" (k) VALUES (1)")
	free, ok, err := u.Branch.(branches.Capacity).Free(t.Context())
	if err != nil || !ok || (free == 0) != full {
		t.Errorf("free space of %s = %d, %t, %v", table, free, ok, err)
	}
	if err := u.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}

// Too many parts is a matter of time; too many partitions in one insert is one
// of the rows, which after the decision have to go in all the same.
func TestTooManyParts(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.table(t, "r", 0, "parts_to_delay_insert=0", "parts_to_throw_insert=2")
	p.cluster.Exec(t, "SYSTEM STOP MERGES "+p.database+".r")
	for range 3 {
		p.cluster.Exec(t, "INSERT INTO "+p.database+".r (k) SELECT number FROM numbers(4) SETTINGS max_partitions_per_insert_block=0")
		if p.cluster.Int(t, "SELECT count() FROM system.parts WHERE active AND database='"+p.database+"' AND table='r'") >= 8 {
			break
		}
	}
	store := p.open(t, chtest.Native, clickhouse.Options{})
	ref := p.staged(t, store, "r", 50)
	err := store.Finish(t.Context(), ref)
	if kind := branches.Classify(store, err); err == nil || kind != branches.Transient || !strings.Contains(err.Error(), "252") {
		t.Errorf("finish = %v (%s), want transient", err, kind)
	}
	p.cluster.Exec(t, "ALTER TABLE "+p.database+".r MODIFY SETTING parts_to_throw_insert=3000")
	mustFinish(t, store, ref)
	p.holds(t, "r", ref, 50)
}

func TestTooManyPartitions(t *testing.T) {
	p := newPlace(t, chtest.Server(t))
	p.cluster.Exec(t, "CREATE TABLE "+p.database+".many (k UInt64, s String, dat_txn UUID, dat_tx_time Int64) ENGINE = MergeTree ORDER BY k PARTITION BY k")
	store := p.open(t, chtest.Native, clickhouse.Options{})
	ref := p.staged(t, store, "many", 150)
	mustFinish(t, store, ref)
	p.holds(t, "many", ref, 150)

	session := connect(t, store)
	u := begin(t, session)
	for i := range 150 {
		execute(t, session, "INSERT INTO many (k) VALUES (?)", i)
	}
	u.stage(t, true)
	err := u.Commit(t.Context())
	if kind := branches.Classify(store, err); err == nil || branches.IsUnknown(err) || kind != branches.Permanent {
		t.Errorf("commit = %v (%s), want permanent", err, kind)
	}
	p.holds(t, "many", u.ref(), 0)
}
