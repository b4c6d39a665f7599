package drevo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

// The server is killed again and again under units of both kinds. Whatever answers
// were lost: what was decided or acknowledged is there as a whole, once, with its
// marker, and nothing of the rest is.
func TestKilledAtRandom(t *testing.T) {
	const writers, kills, between = 4, 8, 4
	cluster := drevotest.Own(t)
	g, store := installed(t, cluster)
	w := &world{t: t, store: store, took: map[branches.TxnID]bool{}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var over atomic.Bool
	for n := range writers {
		all.Go(func() {
			dice := rand.New(rand.NewPCG(7, uint64(n)))
			for !over.Load() && ctx.Err() == nil {
				w.unit(ctx, dice)
			}
		})
	}
	for n := range kills {
		await.Until(t, "units took effect since the last kill", func() bool { return w.done.Load() >= int64(between*(n+1)) })
		cluster.Restart(t)
	}
	over.Store(true)
	all.Wait()
	took := 0
	for txn, want := range w.took {
		nodes := g.Int(t, "MATCH (n:U {txn: $txn}) RETURN count(n) AS n", map[string]any{"txn": txn.String()})
		if nodes != map[bool]int{true: 2}[want] {
			t.Errorf("unit %s: %d nodes, took effect %t", txn, nodes, want)
		}
		fate, err := store.Applied(t.Context(), txn)
		if err != nil || (fate == branches.FateApplied) != want {
			t.Errorf("unit %s: marker %s, %v, took effect %t", txn, fate, err, want)
		}
		if want {
			took++
		}
	}
	if got := g.Prepared(t); len(got) > 0 {
		t.Errorf("left prepared: %v", got)
	}
	t.Logf("%d units, %d took effect, %d answers lost", len(w.took), took, w.lost.Load())
}

// world is what the coordinators know.
type world struct {
	t     *testing.T
	store *drevo.Store
	lost  atomic.Int64
	done  atomic.Int64 // units that took effect

	mu   sync.Mutex
	took map[branches.TxnID]bool
}

// unit is one unit and its coordinator, who does not give up.
func (w *world) unit(ctx context.Context, dice *rand.Rand) {
	txn, err := branches.NewTxnID()
	if err != nil {
		w.t.Error(err)
		return
	}
	took := false
	if twoPhase := dice.IntN(3) > 0; twoPhase {
		took = w.twoPhase(ctx, txn, dice.IntN(4) > 0)
	} else {
		took = w.onePhase(ctx, txn)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took[txn] = took
	if took {
		w.done.Add(1)
	}
}

// write opens the branch, writes and stages it; nil where that failed, and nothing
// has happened.
func (w *world) write(ctx context.Context, txn branches.TxnID, onePhase bool) (branches.Branch, branches.Session) {
	session, err := w.store.Connect(ctx)
	if err != nil {
		return nil, nil
	}
	b, err := session.Begin(ctx, branches.BeginOptions{Txn: txn})
	if err == nil {
		_, err = session.Exec(ctx, fmt.Sprintf("CREATE (:U {txn: '%s'})-[:R]->(:U {txn: '%[1]s'})", txn), nil)
	}
	if err == nil {
		_, err = b.Stage(ctx, branches.Unit{Txn: txn, TxTime: hlc.FromMillis(txn.Time().UnixMilli()) + 1, OnePhase: onePhase, Marker: true})
	}
	if err != nil {
		_ = session.Close()
		return nil, nil
	}
	return b, session
}

func (w *world) twoPhase(ctx context.Context, txn branches.TxnID, commit bool) bool {
	gid := branches.NewGID(txn, "s")
	b, session := w.write(ctx, txn, false)
	if b == nil {
		return false
	}
	defer session.Close()
	err := b.Prepare(ctx, gid)
	if err != nil && !branches.IsUnknown(err) {
		return false
	}
	if err != nil {
		w.lost.Add(1)
		commit = false
	}
	end := w.store.Abort
	if commit {
		end = w.store.Finish
	}
	w.insist(ctx, func() error { return end(ctx, branches.Ref{Txn: txn, Store: "s", GID: gid, TwoPhase: true}) })
	return commit
}

func (w *world) onePhase(ctx context.Context, txn branches.TxnID) bool {
	b, session := w.write(ctx, txn, true)
	if b == nil {
		return false
	}
	defer session.Close()
	err := b.Commit(ctx)
	if !branches.IsUnknown(err) {
		return err == nil
	}
	w.lost.Add(1)
	fate := branches.FateUnknown
	w.insist(ctx, func() (err error) {
		fate, err = w.store.Settle(ctx, txn)
		return err
	})
	return fate == branches.FateApplied
}

// insist calls until it is answered. The server is soon back.
func (w *world) insist(ctx context.Context, f func() error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for err := f(); err != nil; err = f() {
		if branches.Classify(w.store, err) != branches.Transient || ctx.Err() != nil {
			w.t.Errorf("it never ends: %v", err)
			return
		}
		<-tick.C
	}
}
