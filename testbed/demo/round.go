package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

const (
	leastInside = 5 // kills inside a commit
	mostRounds  = 3 // times the kills asked for, until they have hit enough
	randomSpan  = 400 * time.Millisecond
	headStart   = 200 * time.Millisecond // of the program before recovery
	aimFor      = time.Second            // how long a kill waits for a prepared unit
)

// wants reports whether another kill is needed.
func (t *trial) wants() bool {
	if t.kills < t.plan.kills {
		return true
	}
	decided, undecided := 0, 0
	for _, state := range t.open {
		if state == "COMMITTED" {
			decided++
		} else {
			undecided++
		}
	}
	enough := t.inside >= leastInside && undecided > 0
	for _, name := range t.names() {
		enough = enough && (!t.companions[name].kind.slow || len(t.waiting[name]) > 0)
		decided += len(t.waiting[name])
	}
	missed := !enough || decided == 0
	return missed && t.kills < mostRounds*max(t.plan.kills, leastInside)
}

// round starts the program when what the last kill left has become stale, or nearly,
// recovers that beside it, and kills it at a random moment.
func (t *trial) round(ctx context.Context) error {
	if err := rig.Pause(ctx, t.stale()-headStart); err != nil {
		return err
	}
	child, err := t.start(ctx)
	if err != nil {
		return err
	}
	recovered := make(chan error, 1)
	go func() { recovered <- t.recover(ctx) }()
	var moment, aimed <-chan time.Time
	for alive := true; alive; {
		select {
		case line, ok := <-child.Lines:
			if alive = ok; ok {
				t.note(line)
				child.Go()
			}
		case err := <-recovered:
			if err != nil {
				return err
			}
			moment = time.After(rand.N(randomSpan)) //nolint:gosec // no secret
		case <-moment:
			if aimed == nil && t.aims() {
				aimed = t.seen(ctx)
				moment = aimed
				continue
			}
			if err := child.Kill(); err != nil {
				return err
			}
			t.kills++
			t.killed = time.Now()
			for line := range child.Lines { // told before the kill
				t.note(line)
			}
			_ = child.Wait() // "signal: killed"
			return t.look(ctx)
		}
	}
	t.crashes = append(t.crashes, child.Wait())
	return <-recovered
}

// aims reports whether the next kill waits, after its random moment, until some
// unit is prepared: of the time of a unit with rows in ClickHouse that is a
// small part, and a random moment alone seldom meets it.
func (t *trial) aims() bool { return t.kills%2 == 1 }

// seen fires when a prepared transaction is there, or none has come for long.
func (t *trial) seen(ctx context.Context) <-chan time.Time {
	fired := make(chan time.Time, 1)
	go func() {
		defer func() { fired <- time.Now() }()
		for over := time.Now().Add(aimFor); time.Now().Before(over); {
			for _, db := range t.Stores {
				if gids, err := db.Prepared(ctx); err != nil || len(gids) > 0 {
					return // a kill at another moment is one too
				}
			}
		}
	}()
	return fired
}

func (t *trial) note(line string) {
	if txn, verdict, ok := strings.Cut(line, " "); ok {
		t.reported[txn] = verdict
	}
}

// stale is how long what the last kill left takes to become stale.
func (t *trial) stale() time.Duration {
	if t.killed.IsZero() {
		return 0
	}
	return staleAfter + drift - time.Since(t.killed)
}

// recover runs one pass of recovery.
func (t *trial) recover(ctx context.Context) error {
	if err := rig.Pause(ctx, max(headStart, t.stale())); err != nil {
		return err
	}
	if err := t.wait(ctx); err != nil {
		return err
	}
	_, _, err := t.recovery.Run(ctx, "once")
	return err
}

// wait takes down which of the units that the last kill left decided have no rows
// in a companion yet. What the killed program had sent has ended by now.
func (t *trial) wait(ctx context.Context) error {
	for _, name := range t.names() {
		left, err := t.companions[name].Unfinished(ctx, t.owed[name])
		if err != nil {
			return err
		}
		for _, txn := range left {
			t.waiting[name][txn] = true
		}
	}
	return nil
}

// look takes stock of what a kill has left, once the program's last requests
// have ended. A backend that waits for a row of another unfinished transfer goes
// on waiting for a client that is gone; it has prepared nothing.
func (t *trial) look(ctx context.Context) error {
	err := rig.Await(ctx, "end of the killed program's requests", func() (bool, error) {
		databases := slices.Collect(maps.Values(t.Stores))
		if t.Journal != nil {
			databases = append(databases, t.Journal)
		}
		for _, db := range databases {
			n, err := db.Int(ctx, `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
				AND NOT (state = 'active' AND wait_event_type IS NOT DISTINCT FROM 'Lock')`)
			if err != nil || n > 0 {
				return false, err
			}
		}
		for _, c := range t.companions {
			if busy, err := c.Busy(ctx); err != nil || busy {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	states, err := t.States(ctx)
	if err != nil {
		return err
	}
	gids, err := t.Prepared(ctx)
	if err != nil {
		return err
	}
	open, counts := map[string]string{}, map[string]int{}
	for _, gid := range gids {
		txn := branches.GID(gid).Txn().String()
		if _, known := t.open[txn]; known {
			continue // left by an earlier kill
		}
		if open[txn] == "" {
			open[txn] = states[txn]
			counts[states[txn]]++
		}
	}
	maps.Copy(t.open, open)
	fmt.Printf("kill %2d: %2d units left prepared, undecided %d, decided %d", t.kills, len(open), len(open)-counts["COMMITTED"], counts["COMMITTED"])
	inside, err := t.owe(ctx, states)
	if inside || len(open) > 0 {
		t.inside++
	}
	return err
}

// owe takes down which decided units have no rows in a companion, and reports
// whether the last kill is why.
func (t *trial) owe(ctx context.Context, states map[string]string) (inside bool, err error) {
	var decided []string
	for txn, state := range states {
		if state == "COMMITTED" {
			decided = append(decided, txn)
		}
	}
	for _, name := range t.names() {
		left, err := t.companions[name].Unfinished(ctx, decided)
		if err != nil {
			return false, err
		}
		fmt.Printf("; %d pending in %s", len(left), name)
		inside = inside || slices.ContainsFunc(left, func(txn string) bool { return !t.waiting[name][txn] })
		t.owed[name] = left
	}
	fmt.Println()
	return inside, nil
}

// settle lets the program end in order once, and then recovery finish.
func (t *trial) settle(ctx context.Context) error {
	child, err := t.start(ctx)
	if err != nil {
		return err
	}
	end := time.After(time.Second)
	for alive := true; alive; {
		select {
		case line, ok := <-child.Lines:
			if alive = ok; ok {
				t.note(line)
				child.Go()
			}
		case <-end:
			if err := child.Terminate(); err != nil {
				return err
			}
		}
	}
	if err := child.Wait(); err != nil {
		t.crashes = append(t.crashes, err)
	}
	if err := t.wait(ctx); err != nil {
		return err
	}
	_, output, err := t.recovery.UntilClean(ctx, time.Minute)
	fmt.Printf("\nthe last pass of rhizorecover:\n%.1500s\n", output)
	return err
}
