package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

const (
	leastInside = 5 // kills inside a commit
	mostRounds  = 3 // times the kills asked for, until they have hit enough
	randomSpan  = 400 * time.Millisecond
)

// wants reports whether another kill is needed.
func (b *banks) wants() bool {
	if b.kills < b.plan.kills {
		return true
	}
	var decided, undecided int
	for _, state := range b.open {
		if state == "COMMITTED" {
			decided++
		} else {
			undecided++
		}
	}
	enough := b.inside >= leastInside && decided > 0 && undecided > 0
	return !enough && b.kills < mostRounds*b.plan.kills
}

// round starts the program, recovers beside it what the last kill left, and
// kills it at a random moment.
func (b *banks) round(ctx context.Context) error {
	child, err := b.start(ctx)
	if err != nil {
		return err
	}
	recovered := make(chan error, 1)
	go func() { recovered <- b.recover(ctx) }()
	var moment <-chan time.Time
	for alive := true; alive; {
		select {
		case line, ok := <-child.Lines:
			if alive = ok; ok {
				b.note(line)
				child.Go()
			}
		case err := <-recovered:
			if err != nil {
				return err
			}
			moment = time.After(rand.N(randomSpan)) //nolint:gosec // no secret
		case <-moment:
			if err := child.Kill(); err != nil {
				return err
			}
			b.kills++
			b.killed = time.Now()
			for line := range child.Lines { // told before the kill
				b.note(line)
			}
			_ = child.Wait() // "signal: killed"
			return b.look(ctx)
		}
	}
	b.crashes = append(b.crashes, child.Wait())
	return <-recovered
}

func (b *banks) note(line string) {
	if txn, verdict, ok := strings.Cut(line, " "); ok {
		b.reported[txn] = verdict
	}
}

// recover runs one pass of recovery when what the last kill left is stale.
func (b *banks) recover(ctx context.Context) error {
	wait := 200 * time.Millisecond // the first round: let the program begin
	if !b.killed.IsZero() {
		wait += staleAfter + drift - time.Since(b.killed)
	}
	if err := rig.Pause(ctx, wait); err != nil {
		return err
	}
	_, _, err := b.recovery.Run(ctx, "once")
	return err
}

// look takes stock of what a kill has left, once the program's last requests
// have ended. A backend that waits for a row of another unfinished transfer goes
// on waiting for a client that is gone; it has prepared nothing.
func (b *banks) look(ctx context.Context) error {
	err := rig.Await(ctx, "end of the killed program's requests", func() (bool, error) {
		for _, db := range []*rig.Database{b.Stores["bank_a"], b.Stores["bank_b"], b.Journal} {
			n, err := db.Int(ctx, `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
				AND NOT (state = 'active' AND wait_event_type IS NOT DISTINCT FROM 'Lock')`)
			if err != nil || n > 0 {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	states, err := b.States(ctx)
	if err != nil {
		return err
	}
	gids, err := b.Prepared(ctx)
	if err != nil {
		return err
	}
	open, counts := map[string]string{}, map[string]int{}
	for _, gid := range gids {
		txn := branches.GID(gid).Txn().String()
		if _, known := b.open[txn]; known {
			continue // left by an earlier kill
		}
		if open[txn] == "" {
			open[txn] = states[txn]
			counts[states[txn]]++
		}
	}
	maps.Copy(b.open, open)
	if len(open) > 0 {
		b.inside++
	}
	fmt.Printf("kill %2d: %2d transfers left open, undecided %d, decided %d; %d branches prepared\n",
		b.kills, len(open), len(open)-counts["COMMITTED"], counts["COMMITTED"], len(gids))
	return nil
}

// settle lets the program end in order once, and then recovery finish.
func (b *banks) settle(ctx context.Context) error {
	child, err := b.start(ctx)
	if err != nil {
		return err
	}
	end := time.After(time.Second)
	for alive := true; alive; {
		select {
		case line, ok := <-child.Lines:
			if alive = ok; ok {
				b.note(line)
				child.Go()
			}
		case <-end:
			if err := child.Terminate(); err != nil {
				return err
			}
		}
	}
	if err := child.Wait(); err != nil {
		b.crashes = append(b.crashes, err)
	}
	_, output, err := b.recovery.UntilClean(ctx, 20*time.Second)
	fmt.Printf("\nthe last pass of rhizorecover:\n%.1500s\n", output)
	return err
}
