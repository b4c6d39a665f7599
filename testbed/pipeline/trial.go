package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

const (
	nodes   = 3
	workers = 4 // units of a process at a time
	drift   = 100 * time.Millisecond
	// patience is for a machine that others use too; alone it takes a second.
	patience = 2 * time.Minute
	// mostBlows are dealt, at most, until one of them has met what it is about.
	mostBlows = 15
)

var options = fmt.Sprintf("commit_timeout=%s stale_after=%s max_clock_drift=%s lock_timeout=5s", commitTimeout, staleAfter, drift)

// trial is one deployment, the processes of one pipeline on it, and what was seen.
type trial struct {
	*rig.Deployment

	off      guard.Name // taken out; empty: none
	source   *source
	events   *rig.ClickHouseDatabase
	program  string
	env      []string
	recovery rig.Recovery
	daemon   *rig.Child // rhizorecover
	nodes    []*node
	struck   map[string]int // blows by their names, of those that hit a holder
	crashes  []string

	mu       sync.Mutex
	reported map[string]string // dat_txn -> verdict, as the processes told it
	fenced   int
}

func (t *trial) open(ctx context.Context, s *stack) (err error) {
	if t.source, err = newSource(); err != nil {
		return err
	}
	t.Deployment = &rig.Deployment{
		Stores: map[string]*rig.Database{}, Others: map[string]rig.Other{},
		Ledger: `SELECT DISTINCT dat_txn::text, '2' FROM readings`,
	}
	if t.Stores["main"], err = s.pg.Database(ctx, "main"); err != nil {
		return err
	}
	if t.Journal, err = s.pg.Database(ctx, "coord"); err != nil {
		return err
	}
	if t.events, err = s.ch.Database(ctx, "events"); err != nil {
		return err
	}
	t.Others["events"] = rig.Beside(events{t.events}, 2)
	if err := t.build(ctx, s.shop); err != nil {
		return err
	}
	if err := t.install(ctx); err != nil {
		return err
	}
	for range nodes {
		n, err := t.newNode(ctx)
		if err != nil {
			return err
		}
		t.nodes = append(t.nodes, n)
	}
	return nil
}

func (t *trial) build(ctx context.Context, shop *rig.Shop) (err error) {
	if t.off != "" {
		t.env = []string{"RHIZODAT_GUARD_OFF=" + string(t.off)}
	}
	if t.program, err = shop.Build(ctx, "examples/pipeline", t.off != ""); err != nil {
		return err
	}
	t.recovery.DSN, t.recovery.Env = t.DSN(options), t.env
	t.recovery.Program, err = shop.Build(ctx, "cmd/rhizorecover", t.off != "")
	return err
}

// install makes the tables, and begins to recover.
func (t *trial) install(ctx context.Context) error {
	if _, _, err := t.recovery.Run(ctx, "init"); err != nil {
		return err
	}
	env := append([]string{"RHIZODAT_DSN=" + t.recovery.DSN}, t.env...)
	child, err := rig.Start(ctx, t.program, []string{"-init"}, env...)
	if err != nil {
		return err
	}
	drain(child)
	if err := errors.Join(child.Wait(), t.watch(ctx)); err != nil {
		return err
	}
	t.daemon, err = rig.Start(ctx, t.recovery.Program, []string{"run", "--interval=500ms", "--listen="}, env...)
	if err == nil {
		go drain(t.daemon)
	}
	return err
}

func drain(child *rig.Child) {
	for range child.Lines {
		continue
	}
}

// progress of the files, as main knows it.
func (t *trial) progress(ctx context.Context) (map[string]int64, error) {
	pairs, err := t.Stores["main"].Pairs(ctx, `SELECT source, next_at::text FROM progress`)
	progress := make(map[string]int64, len(pairs))
	for source, at := range pairs {
		if progress[source], err = strconv.ParseInt(at, 10, 64); err != nil {
			return nil, fmt.Errorf("read progress: %w", err)
		}
	}
	return progress, err
}

// strike strikes one node after the other while all of them have work: rounds
// times in each way, or without the check of the fence until that has done harm.
func (t *trial) strike(ctx context.Context, rounds int) (err error) {
	growing, stop := context.WithCancel(ctx)
	grown := make(chan error, 1)
	go func() { grown <- t.source.grow(growing, t.progress) }()
	defer func() {
		stop()
		err = errors.Join(err, <-grown)
	}()
	if t.off == "" {
		for i := range 3 * rounds {
			if err := t.hit(ctx, t.nodes[i%nodes], []blow{killed, stopped, cut}[(i+i/nodes)%3]); err != nil {
				return err
			}
		}
		return t.strikeMore(ctx)
	}
	for i := range mostBlows {
		if err := t.hit(ctx, t.nodes[i%nodes], stopped); err != nil {
			return err
		}
		if found, err := t.harm(ctx); err != nil || found.late > 0 && found.fallen > 0 {
			return err
		}
	}
	return nil
}

// strikeMore stops more holders where no stop has met a commit yet.
func (t *trial) strikeMore(ctx context.Context) error {
	for i := range mostBlows {
		if t.sawFenced() {
			break
		}
		if err := t.hit(ctx, t.nodes[i%nodes], stopped); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) sawFenced() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fenced > 0
}

// hit strikes a node that holds leases, and lets go when others have them.
func (t *trial) hit(ctx context.Context, n *node, b blow) error {
	began := time.Now()
	err := rig.AwaitWithin(ctx, patience, "leases", func() (bool, error) {
		select {
		case <-n.ended:
			return false, errors.Join(errors.New("a process ended by itself"), n.end())
		default:
		}
		held, err := n.held(ctx)
		// As many as it works at, unless the others leave it fewer.
		return len(held) >= workers || len(held) > 0 && time.Since(began) > longest, err
	})
	if err != nil {
		return err
	}
	if err := rig.Pause(ctx, rand.N(randomSpan)); err != nil { //nolint:gosec // no secret
		return err
	}
	if err := b.strike(ctx, n); err != nil {
		return err
	}
	held, err := n.held(ctx)
	if err != nil {
		return err
	}
	began = time.Now()
	granted, passed := 0, 0
	for (granted < len(held) || passed < min(len(held), workers)) && time.Since(began) < longest {
		if granted, passed, err = t.overtaken(ctx, held); err != nil {
			return err
		}
		if err := rig.Pause(ctx, glance); err != nil {
			return err
		}
	}
	fmt.Printf("%s, holding %d files: within %s %d were granted to others, and %d copied on\n",
		b.name, len(held), time.Since(began).Round(glance), granted, passed)
	if granted > 0 {
		t.struck[b.name]++
	}
	return b.over(ctx, n)
}

// overtaken counts the files of which others have got the lease, and of which
// they have copied something.
func (t *trial) overtaken(ctx context.Context, held map[string]string) (granted, passed int, err error) {
	leases, err := t.Journal.Pairs(ctx, `SELECT substr(name, 10), fence::text FROM dat_lease WHERE name LIKE 'pipeline/%'`)
	if err != nil {
		return 0, 0, err
	}
	fences, err := t.Stores["main"].Pairs(ctx, `SELECT source, fence::text FROM progress`)
	if err != nil {
		return 0, 0, err
	}
	for source, fence := range held {
		if above(leases[source], fence) {
			granted++
		}
		if above(fences[source], fence) {
			passed++
		}
	}
	return granted, passed, nil
}

// above compares fences as text.
func above(a, b string) bool {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x > y
}

// settle lets the processes copy what is left, ends them, and lets recovery finish.
func (t *trial) settle(ctx context.Context) error {
	err := rig.AwaitWithin(ctx, patience, "end of the files", func() (bool, error) {
		progress, err := t.progress(ctx)
		if err != nil || t.source.copied(progress) {
			return true, err
		}
		return false, rig.Pause(ctx, glance)
	})
	if err != nil {
		return err
	}
	for _, n := range t.nodes {
		if err := n.child.Terminate(); err != nil {
			return err
		}
		if err := n.end(); err != nil {
			t.crashes = append(t.crashes, "a process ended by itself: "+err.Error())
		}
	}
	if err := errors.Join(t.daemon.Terminate(), t.daemon.Wait()); err != nil {
		return err
	}
	_, output, err := t.recovery.UntilClean(ctx, time.Minute)
	fmt.Printf("\nthe last pass of rhizorecover:\n%.600s\n", output)
	return err
}

func (t *trial) close(ctx context.Context) error {
	var errs []error
	for _, n := range t.nodes {
		n.fatal = true
		_ = n.child.Kill() // unless it has ended, as it should have
		errs = append(errs, n.end(), n.net.Close())
	}
	if t.daemon != nil {
		_ = t.daemon.Kill() // the same
	}
	for _, db := range t.Stores {
		db.Close(ctx)
	}
	if t.Journal != nil {
		t.Journal.Close(ctx)
	}
	if t.source != nil {
		errs = append(errs, t.source.close())
	}
	return errors.Join(errs...)
}
