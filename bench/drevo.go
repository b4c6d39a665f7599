package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/bench/floor"
	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/drevoserver"
)

// people are the nodes of a graph: drevo copies a graph that a transaction sees
// before it changes it, so a big one would measure that.
const people = 100

// Bounds of the full jitter between two attempts, of both: those of a Policy that
// says nothing, but for the last.
const (
	backoff     = 10 * time.Millisecond
	mostBackoff = 300 * time.Millisecond
)

// graphs measures PostgreSQL and drevo with a journal against the floor on the same
// servers. Each has a graph of its own, made anew for each number of clients: ours
// grows by a marker with every commit.
func graphs(ctx context.Context, r *rig, rounds int) error {
	server, err := drevoserver.Launch(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // it was thrown away
	for _, k := range []int{1, 4, 16} {
		d := newDuel(ctx, r, server, k)
		d.show(rounds)
		if k > 1 {
			d.close()
			continue
		}
		d.fence(rounds)
		d.forced()
	}
	return nil
}

// duel is both of them with k clients.
type duel struct {
	ctx       context.Context //nolint:containedctx // of one call
	rig       *rig
	k         int
	dsn       string // of ours
	bolt      string
	theirName string
	ours      *sql.DB
	theirs    *floor.Graph
	observer  *fences

	attempts, theirAttempts atomic.Int64
	mu                      sync.Mutex
	fences                  []floor.Fence // theirs
}

func newDuel(ctx context.Context, r *rig, server *drevoserver.Server, k int) *duel {
	ours, theirs := fmt.Sprintf("ours_%d", k), fmt.Sprintf("theirs_%d", k)
	for _, name := range []string{ours, theirs} {
		must(makeGraph(ctx, server, name))
	}
	d := &duel{ctx: ctx, rig: r, k: k, bolt: "bolt://" + server.Bolt(), theirName: theirs, observer: &fences{prepared: map[branches.TxnID]time.Time{}}}
	// A name stays with the graph that it was registered with.
	d.dsn = fmt.Sprintf("a=%s graph%d=%s/%s journal=%s", r.url("bank_a"), k, d.bolt, ours, r.url("coord"))
	install(ctx, d.dsn)
	d.open()
	return d
}

func (d *duel) open() {
	d.ours = openWith(d.dsn, d.k, d.observer)
	d.theirs = must1(floor.OpenGraph(d.ctx, d.rig.url("bank_a"), d.rig.url("coord"), d.bolt, d.theirName, d.k))
}

func (d *duel) close() {
	must(d.ours.Close())
	must(d.theirs.Close(d.ctx))
}

// makeGraph makes a graph of people with an account each.
func makeGraph(ctx context.Context, server *drevoserver.Server, name string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+server.HTTP()+"/databases", strings.NewReader(`{"name":"`+name+`"}`))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusCreated {
		return fmt.Errorf("make graph: %s %w", response.Status, err)
	}
	driver, err := neo4j.NewDriverWithContext("bolt://"+server.Bolt(), neo4j.NoAuth())
	if err != nil {
		return err
	}
	session := driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: name, FetchSize: neo4j.FetchAll})
	_, err = session.ExecuteWrite(ctx, func(tx neo4j.ManagedTransaction) (any, error) {
		for i := range people {
			if _, err := tx.Run(ctx, "CREATE (:Account {title: $title, balance: 0})", map[string]any{"title": person(i)}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return errors.Join(err, session.Close(ctx), driver.Close(ctx))
}

func person(n int) string { return fmt.Sprint("person ", n%people) }

// give is one commit of ours.
func (d *duel) give(c, i int) error {
	policy := rhizodat.Policy{Attempts: 1000, Deadline: time.Minute, Base: backoff, Max: mostBackoff}
	_, err := rhizodat.Run(d.ctx, d.ours, policy, func(ctx context.Context, tx *sql.Tx) error {
		d.attempts.Add(1)
		if _, err := tx.ExecContext(ctx, "store:a UPDATE account SET balance = balance - $1 WHERE id = $2", 1, account(c, i)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("store:graph%d MATCH (a:Account {title: $to}) SET a.balance = a.balance + $amount", d.k),
			sql.Named("to", person(c+i)), sql.Named("amount", 1))
		return err
	})
	return err
}

// theirGive is one of theirs.
func (d *duel) theirGive(c, i int) error {
	attempts, fence, err := d.theirs.Transfer(d.ctx, account(c, i), person(c+i), backoff, mostBackoff)
	d.theirAttempts.Add(int64(attempts))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fences = append(d.fences, fence)
	return err
}

// show prints commits per second and attempts per commit.
func (d *duel) show(rounds int) {
	n := max(1, 48/d.k)
	run := func() time.Duration { return clients(d.k, n, d.give) }
	opponent := func() time.Duration { return clients(d.k, n, d.theirGive) }
	run()
	opponent()
	d.attempts.Store(0)
	d.theirAttempts.Store(0)
	d.observer.take()
	d.theirFences()
	ratio, o, t := paired(rounds, run, opponent)
	tries := float64(d.attempts.Load()) / float64(rounds*d.k*n)
	theirTries := float64(d.theirAttempts.Load()) / float64(rounds*d.k*n)
	up := d.observer.take()
	theirUp, _, _ := d.theirFences()
	control, _, _ := paired(rounds, opponent, opponent)
	rate := func(took time.Duration) float64 { return float64(d.k*n) / took.Seconds() }
	fmt.Printf("PostgreSQL and drevo, %2d clients: floor : ours %s   control floor : floor %s   (commits per second %.0f : %.0f, attempts per commit %.2f : %.2f, fence up %.2f : %.2f ms)\n",
		d.k, ratio, control, rate(t), rate(o), theirTries, tries, theirUp, up)
	name := fmt.Sprintf("time_drevo_%d_", d.k)
	figure(name+"ratio", fmt.Sprintf("%.3f", ratio.median), ">=0", true)
	figure(name+"attempts_per_commit", fmt.Sprintf("%.2f", tries), ">=1", tries >= 1)
	figure(name+"fence_ms", fmt.Sprintf("%.3f", up), ">=0", true)
}
