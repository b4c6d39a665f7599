package drevo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

// onSmallDisk is a store on the default graph of a server whose disk can be filled.
func onSmallDisk(t *testing.T) (*drevotest.Cluster, drevotest.Disk, *drevotest.Graph, *drevo.Store) {
	t.Helper()
	cluster := drevotest.Stopped(t)
	disk := cluster.SmallDisk(t)
	cluster.Start(t)
	g := cluster.Named(t, "drevo")
	store := open(t, g, drevo.Options{})
	install(t, store)
	return cluster, disk, g, store
}

// big does not fit into what is left of the log's last page.
var big = strings.Repeat("x", 40_000)

// A disk that is full at prepare: nothing is proved, and it is the disk. Whoever
// comes next is told only that the log is broken, and this process knows why.
func TestDiskFullAtPrepare(t *testing.T) {
	cluster, disk, g, store := onSmallDisk(t)
	first := begin(t, connect(t, store)).exec("CREATE (:A {s: $1})", big).staged(false)
	second := begin(t, connect(t, store)).exec("CREATE (:B)").staged(true)
	disk.Fill(t)
	err := first.Prepare(t.Context(), first.gid)
	wantFull(t, store, "Prepare on a full disk", err)
	err = second.Commit(t.Context())
	wantFull(t, store, "Commit after it", err)
	if other := open(t, g, drevo.Options{}); branches.Classify(other, err) != branches.StoreFull {
		// Its own kind was decided where the error was met.
		t.Errorf("classified by another store it is %s", branches.Classify(other, err))
	}
	stranger := open(t, g, drevo.Options{})
	third := begin(t, connect(t, stranger)).exec("CREATE (:B)").staged(true)
	if err = third.Commit(t.Context()); !branches.IsUnknown(err) || branches.Classify(stranger, err) != branches.Permanent {
		t.Errorf("Commit of a process that has not seen the full disk = %v, want an unknown, permanent error", err)
	}
	if fate, err := store.Settle(t.Context(), second.txn); err == nil {
		t.Errorf("Settle on a broken log = %s: it has proved nothing", fate)
	}
	disk.Free(t)
	cluster.Restart(t)
	for _, u := range []*unit{second, third} {
		if fate, err := store.Settle(t.Context(), u.txn); err != nil || fate != branches.FateNever {
			t.Errorf("Settle after the restart = %s, %v", fate, err)
		}
	}
	if err := store.Abort(t.Context(), first.ref()); err != nil {
		t.Error(err)
	}
	wantCount(t, g, "A", 0)
	wantCount(t, g, "B", 0)
}

func wantFull(t *testing.T, store *drevo.Store, what string, err error) {
	t.Helper()
	if !branches.IsUnknown(err) || branches.Classify(store, err) != branches.StoreFull {
		t.Errorf("%s = %v (%s), want an unknown error, store full", what, err, branches.Classify(store, err))
	}
	if !strings.Contains(fmt.Sprint(err), "restart") {
		t.Errorf("%s does not say that drevo must be restarted: %v", what, err)
	}
}

// The disk is full one byte before the end of prepare's record: drevo refuses it,
// and a restart finds it prepared. Whoever took the refusal for "nothing happened"
// leaves the graph fenced for ever.
func TestRefusedPrepareIsPreparedAfterRestart(t *testing.T) {
	cluster, disk, g, store := onSmallDisk(t)
	log := filepath.Join(cluster.Data(), "native.wal")
	size := func() int {
		info, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		return int(info.Size())
	}
	// How long is the record of such a unit? All of them are as long, since none
	// makes a node: a node's random id is written with more digits or fewer.
	g.Exec(t, "CREATE (:A {title: 'a', s: ''})")
	try := func(pad int) *unit {
		u := begin(t, connect(t, store)).exec("MATCH (n:A) SET n.s = $1", strings.Repeat("x", pad))
		if _, err := u.Stage(t.Context(), branches.Unit{Txn: u.txn}); err != nil {
			t.Fatal(err)
		}
		return u
	}
	before := size()
	u := try(10)
	if err := u.Prepare(t.Context(), u.gid); err != nil {
		t.Fatal(err)
	}
	record := size() - before - 10
	if err := store.Abort(t.Context(), u.ref()); err != nil {
		t.Fatal(err)
	}
	const page = 4096
	u = try(page - (size()+record-1)%page)
	disk.Fill(t)
	err := u.Prepare(t.Context(), u.gid)
	if err == nil {
		t.Fatal("Prepare on a full disk = nil")
	}
	if got := g.Prepared(t); len(got) != 0 {
		t.Errorf("prepared before the restart: %v", got)
	}
	disk.Free(t)
	cluster.Restart(t)
	if got := g.Prepared(t); len(got) != 1 || got[0] != u.gid.String() {
		t.Fatalf("prepared after the restart: %v, want %s: the test has missed the page's end", got, u.gid)
	}
	// What a coordinator does: it aborts by the gid what is not known, and nothing
	// where an answer has proved that there is nothing.
	if branches.IsUnknown(err) {
		if err := store.Abort(t.Context(), u.ref()); err != nil {
			t.Error(err)
		}
	}
	if got := g.Prepared(t); len(got) != 0 {
		t.Errorf("left prepared, with nobody to resolve it: %v (Prepare = %v)", got, err)
	}
	if got := g.Int(t, "MATCH (n:A {s: ''}) RETURN count(n) AS n", nil); got != 1 {
		t.Error("the refused unit has taken effect")
	}
}

// Where no disk can be mounted a limit of the log's size stands in for a full one.
func TestLimitedLogAtPrepare(t *testing.T) {
	cluster := drevotest.Own(t)
	g, store := installed(t, cluster)
	u := begin(t, connect(t, store)).exec("CREATE (:A {s: $1})", big).staged(false)
	g.LimitLog(t, 100)
	err := u.Prepare(t.Context(), u.gid)
	wantFull(t, store, "Prepare beyond the limit", err)
	cluster.Restart(t)
	if err := store.Abort(t.Context(), u.ref()); err != nil {
		t.Error(err)
	}
	wantCount(t, g, "A", 0)
}

// After a restart a marker may stand in the log without its newline. Two records
// follow it before it is told to anybody, so that the loss of it is not silent.
func TestMarkerWithoutNewlineIsHardened(t *testing.T) {
	cluster := drevotest.Own(t)
	g, store := installed(t, cluster)
	u := begin(t, connect(t, store)).exec("CREATE (:A)").staged(true)
	if err := u.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster.Kill(t)
	log, err := os.ReadFile(g.Log())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.Log(), log[:len(log)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	cluster.Start(t)
	if fate, err := store.Settle(t.Context(), u.txn); err != nil || fate != branches.FateApplied {
		t.Fatalf("Settle = %s, %v", fate, err)
	}
	cluster.Kill(t)
	err = cluster.TryStart(t)
	if err == nil {
		t.Fatal("the server starts: the committed unit is lost in silence")
	}
	if !strings.Contains(err.Error(), "corrupt write-ahead-log record") {
		t.Errorf("start: %v", err)
	}
	if errors.Is(err, os.ErrNotExist) {
		t.Error("the log is gone")
	}
}
