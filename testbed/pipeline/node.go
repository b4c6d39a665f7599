package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/cutproxy"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// ttl is short, as are the times that follow, because nobody wants to watch for
// long. A stop must not last longer than commitTimeout: a commit that was stopped
// then gives up by itself, and not by its fence.
const (
	ttl           = 1500 * time.Millisecond
	every         = 500 * time.Millisecond
	commitTimeout = 5 * time.Second
	staleAfter    = 6 * time.Second
	longest       = 4 * time.Second // a holder is struck, at most
	randomSpan    = 300 * time.Millisecond
	mostAims      = 100
	aimSpan       = 30 * time.Millisecond
)

// node is a place where one process of the pipeline runs after the other, with a
// network to the journal that can be cut.
type node struct {
	trial *trial
	name  string // of its sessions
	net   *cutproxy.Proxy
	env   []string
	child *rig.Child
	ended chan struct{} // closed when all of the child's lines were read
	fatal bool          // the child is about to be ended by us
}

func (t *trial) newNode(ctx context.Context) (*node, error) {
	net, err := cutproxy.Listen(ctx, t.Journal.Addr())
	if err != nil {
		return nil, err
	}
	n := &node{trial: t, name: "node-" + strconv.Itoa(len(t.nodes)), net: net}
	ways := map[string]string{rig.JournalName: net.DSN(t.Journal.DSN)}
	n.env = append(n.env, "RHIZODAT_DSN="+t.DSNVia(ways, options+" application_name="+n.name))
	n.env = append(n.env, t.env...)
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, net.Close())
	}
	return n, nil
}

func (n *node) start(ctx context.Context) (err error) {
	n.fatal, n.ended = false, make(chan struct{})
	args := []string{
		"-source", n.trial.source.dir, "-ttl", ttl.String(), "-every", every.String(), "-workers", strconv.Itoa(workers), "-ack",
	}
	if n.child, err = rig.Start(ctx, n.trial.program, args, n.env...); err != nil {
		return err
	}
	go func(child *rig.Child, ended chan struct{}) {
		defer close(ended)
		for line := range child.Lines {
			n.trial.note(line)
			child.Go()
		}
	}(n.child, n.ended)
	return nil
}

// end waits for the child.
func (n *node) end() error {
	<-n.ended
	err := n.child.Wait()
	if n.fatal {
		return nil
	}
	return err
}

// held are the leases that the process holds, by the files they are for.
func (n *node) held(ctx context.Context) (map[string]string, error) {
	return n.trial.Journal.Pairs(ctx, `SELECT substr(name, 10), fence::text FROM dat_lease
		WHERE name LIKE 'pipeline/%' AND holder LIKE '%/'||$1::text||'/%'`, strconv.Itoa(n.child.Pid()))
}

// blow is what happens to a node, until it is over.
type blow struct {
	name   string
	strike func(ctx context.Context, n *node) error
	over   func(ctx context.Context, n *node) error
}

var (
	stopped = blow{
		"stopped",
		func(ctx context.Context, n *node) error { return n.stop(ctx) },
		func(_ context.Context, n *node) error { return n.child.Thaw() },
	}
	killed = blow{
		"killed",
		func(_ context.Context, n *node) error {
			n.fatal = true
			if err := n.child.Kill(); err != nil {
				return err
			}
			return n.end()
		},
		func(ctx context.Context, n *node) error { return n.start(ctx) },
	}
	cut = blow{
		"cut off",
		func(_ context.Context, n *node) error {
			n.net.Refuse(true)
			n.net.Drop()
			return nil
		},
		func(_ context.Context, n *node) error {
			n.net.Refuse(false)
			return nil
		},
	}
)

// stop stops the process while it has copied lines and not yet moved their file's
// progress, which nothing but the fence keeps it from doing when it goes on: from
// there on a row's lock keeps the others out. Where that is not met, any moment
// will do.
func (n *node) stop(ctx context.Context) error {
	for range mostAims {
		if err := n.child.Freeze(); err != nil {
			return err
		}
		amid, err := n.trial.Stores["main"].Int(ctx, `SELECT count(*) FROM pg_stat_activity a
			WHERE datname = current_database() AND application_name = $1
			AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.relation = 'readings'::regclass AND mode = 'RowExclusiveLock')
			AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.relation = 'progress'::regclass)`, n.name)
		if err != nil || amid > 0 {
			return err
		}
		if err := n.child.Thaw(); err != nil {
			return err
		}
		if err := rig.Pause(ctx, rand.N(aimSpan)); err != nil { //nolint:gosec // no secret
			return err
		}
	}
	return n.child.Freeze()
}

// note takes down what a process has told.
func (t *trial) note(line string) {
	words := strings.Fields(line)
	t.mu.Lock()
	defer t.mu.Unlock()
	if fenced := len(words) > 1 && words[len(words)-1] == "fenced"; fenced {
		t.fenced++
		line = strings.TrimSuffix(line, " fenced")
	}
	if txn, verdict, ok := strings.Cut(line, " "); ok {
		t.reported[txn] = verdict
	}
}
