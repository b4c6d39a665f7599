package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// cell is one unit and what happens to it.
type cell struct {
	name string // for violations
	plan plan.Plan
	// deed is done when the child is at its point, and holds still. Nil: nothing.
	deed deed
	// beside is done while the child runs, from its dat_txn on, and waited for.
	// Nil: nothing.
	beside func(ctx context.Context, l *lane, child *rig.Child, s *sight) error
	// after is done when the child has ended. Nil: nothing.
	after func(ctx context.Context, l *lane) error
	// ways lead to databases through proxies.
	ways map[string]string
	// options stand in the child's DSN. Empty: the usual ones.
	options string
}

// deed is what happens to a child, or to its servers, at its point.
type deed func(ctx context.Context, l *lane, child *rig.Child, s *sight) error

// sight is what was seen of a cell.
type sight struct {
	hit        bool // the point was reached
	killed     bool // the child was, there
	txn        string
	outcome    *plan.Outcome // nil: the child told none
	state      string        // of the record, when recovery is over; empty: none
	fate       rig.Fate
	lost       bool // a crash of the journal took the record
	violations []string
}

// verdict is what the child told, or "-".
func (s *sight) verdict() string {
	switch {
	case s.outcome == nil:
		return "-"
	case s.outcome.Conflict:
		return s.outcome.Verdict + " (fenced)"
	}
	return s.outcome.Verdict
}

// run runs a cell, then recovery, then the checks.
func (l *lane) run(ctx context.Context, c cell) (*sight, error) {
	ctx, cancel := context.WithTimeout(ctx, cellBound)
	defer cancel()
	s := &sight{}
	for _, step := range []func(context.Context, cell, *sight) error{l.act, l.heal, l.inspect} {
		if err := step(ctx, c, s); err != nil {
			return s, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	s.violations = l.fresh(s.violations)
	for i, v := range s.violations {
		s.violations[i] = c.name + ": " + v
	}
	return s, nil
}

// act runs the child, and waits until nothing of it is under way.
func (l *lane) act(ctx context.Context, c cell, s *sight) error {
	if err := l.begin(ctx, c, s); err != nil {
		return err
	}
	return l.quiet(ctx)
}

// begin runs the child.
func (l *lane) begin(ctx context.Context, c cell, s *sight) error {
	ways := l.ways
	if c.ways != nil {
		ways = c.ways
	}
	options := optionsOfUnit
	if c.options != "" {
		options = c.options
	}
	env := append([]string{c.plan.Encode(), "RHIZODAT_DSN=" + l.DSNVia(ways, options)}, l.env...)
	child, err := rig.Start(ctx, l.unit, nil, env...)
	if err != nil {
		return err
	}
	var beside chan error // nil: nothing was begun
	for line := range child.Lines {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case plan.WordTxn:
			s.txn = rest
			if c.beside != nil && beside == nil {
				beside = make(chan error, 1)
				go func() { beside <- c.beside(ctx, l, child, s) }()
			}
		case plan.WordAt:
			s.hit = true
			if err := c.deed(ctx, l, child, s); err != nil {
				return err
			}
		case plan.WordOutcome:
			told, err := plan.ParseOutcome(rest)
			if err != nil {
				return err
			}
			s.outcome = &told
			l.reported[s.txn] = told.Verdict
		}
		child.Go()
	}
	ended := child.Wait()
	if beside != nil {
		if err := <-beside; err != nil {
			return err
		}
	}
	if ended != nil && !s.killed {
		s.violations = append(s.violations, ended.Error())
	}
	if c.after != nil {
		return c.after(ctx, l)
	}
	return nil
}

// heal lets other processes recover until nothing is left. What they leave is
// a violation.
func (l *lane) heal(ctx context.Context, _ cell, s *sight) error {
	if err := rig.Pause(ctx, staleAfter+clockDrift); err != nil {
		return err
	}
	code, output, err := l.recovery.UntilClean(ctx, l.bound)
	if err == nil && code != rig.ExitClean {
		said := strings.Join(strings.Fields(output), " ")
		s.violations = append(s.violations, fmt.Sprintf("recovery ends with %d: %.250s", code, said))
	}
	return err
}

// inspect looks at what became of the unit, and asks whether all is well.
func (l *lane) inspect(ctx context.Context, _ cell, s *sight) error {
	states, err := l.States(ctx)
	if err != nil {
		return err
	}
	fates, err := l.Fates(ctx)
	if err != nil {
		return err
	}
	s.state, s.fate = states[s.txn], fates[s.txn]
	found, err := l.Judge(ctx, l.reported)
	s.violations = append(s.violations, found...)
	return err
}
