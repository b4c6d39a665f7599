package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// mode is what happens at a point.
type mode string

// The modes.
const (
	modeKill    mode = "killed"
	modeFreeze  mode = "frozen"
	modeBackend mode = "backend lost"
	modeJournal mode = "journal lost"
	modeOutage  mode = "journal down" // until the unit has ended: the doubt that only recovery ends
	modeStore   mode = "store lost"   // the third store's server, which comes back at once
	modeAbsent  mode = "store down"   // the same, until the unit has ended
)

// modes are those of every step.
var modes = []mode{modeKill, modeFreeze, modeBackend, modeJournal}

// allModes are the columns of a table.
var allModes = append(slices.Clone(modes), modeOutage, modeStore, modeAbsent)

// outagePoints are where a journal that stays away makes a difference.
var outagePoints = []string{"S4.before", "S5.after", "S7.before", "S7.after", "S10.before"}

// deed of the mode. victim is the store whose backend is lost.
func (m mode) deed(victim string) deed {
	switch m {
	case modeKill:
		return kill
	case modeFreeze:
		return freeze
	case modeBackend:
		return func(ctx context.Context, l *lane, _ *rig.Child, _ *sight) error {
			_, err := l.Stores[victim].Disconnect(ctx)
			return err
		}
	case modeJournal:
		return crashJournal
	case modeOutage:
		return func(ctx context.Context, l *lane, _ *rig.Child, _ *sight) error { return l.crashes.Crash(ctx) }
	case modeStore:
		return func(ctx context.Context, l *lane, _ *rig.Child, _ *sight) error {
			return errors.Join(l.server.Crash(ctx), l.server.Start(ctx))
		}
	case modeAbsent:
		return func(ctx context.Context, l *lane, _ *rig.Child, _ *sight) error { return l.server.Crash(ctx) }
	}
	panic("no such mode: " + string(m))
}

// kill ends the child by SIGKILL.
func kill(_ context.Context, _ *lane, child *rig.Child, s *sight) error {
	s.killed = true
	return child.Kill()
}

// freeze stops the child until recovery, which takes it for dead, has finished.
func freeze(ctx context.Context, l *lane, child *rig.Child, _ *sight) error {
	if err := child.Freeze(); err != nil {
		return err
	}
	if err := rig.Pause(ctx, 2*staleAfter); err != nil {
		return err
	}
	// What it leaves because the child is there, it finishes when that has ended.
	if _, _, err := l.recovery.UntilClean(ctx, l.bound); err != nil {
		return err
	}
	return child.Thaw()
}

// crashJournal kills the journal's server with what it has not flushed, and
// starts it again.
func crashJournal(ctx context.Context, l *lane, _ *rig.Child, s *sight) error {
	before, err := l.States(ctx)
	if err != nil {
		return err
	}
	if err := l.crashes.Crash(ctx); err != nil {
		return fmt.Errorf("crash journal: %w", err)
	}
	if err := l.crashes.Start(ctx); err != nil {
		return err
	}
	after, err := l.States(ctx)
	s.lost = before[s.txn] != after[s.txn]
	return err
}
