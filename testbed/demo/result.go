package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// result is the table.
type result struct {
	kills, inside                      int
	committed, aborted, pending, doubt int // as they were reported
	finished, rolledBack               int // by recovery, of what the kills left
	what                               string
	before, after                      int // the number that no unit changes
	left                               int // dat: transactions
	companions                         []companionResult
	violations                         []string
}

// count compares what was reported with what is there.
func (t *trial) count(ctx context.Context) (result, error) {
	r := result{kills: t.kills, inside: t.inside, what: t.piece.what}
	for _, verdict := range t.reported {
		switch verdict {
		case "committed":
			r.committed++
		case "pending":
			r.pending++
		case "aborted":
			r.aborted++
		default:
			r.doubt++
		}
	}
	states, err := t.States(ctx)
	if err != nil {
		return r, err
	}
	finished := map[string]bool{}
	for txn, state := range t.open {
		switch {
		case state == "COMMITTED" && states[txn] == "DONE":
			finished[txn] = true
		case state != "COMMITTED" && states[txn] == "ABORTED":
			r.rolledBack++
		}
	}
	gids, err := t.Prepared(ctx)
	if err != nil {
		return r, err
	}
	r.left = len(gids)
	if r.after, err = t.total(ctx); err != nil {
		return r, err
	}
	if r.violations, err = t.Judge(ctx, t.reported); err != nil {
		return r, err
	}
	for _, crash := range t.crashes {
		r.violations = append(r.violations, fmt.Sprintf("the program ended by itself: %v", crash))
	}
	err = t.countCompanions(ctx, &r, states)
	for _, c := range r.companions {
		for _, txn := range c.finished {
			finished[txn] = true
		}
	}
	r.finished = len(finished)
	return r, err
}

func (t *trial) countCompanions(ctx context.Context, r *result, states map[string]string) error {
	want, err := t.book(ctx)
	if err != nil {
		return err
	}
	for _, name := range t.names() {
		c, err := t.audit(ctx, name, want, states)
		if err != nil {
			return fmt.Errorf("audit %s: %w", name, err)
		}
		r.companions = append(r.companions, c)
		for _, line := range c.audit.All() {
			r.violations = append(r.violations, name+": "+line)
		}
	}
	return nil
}

// row of the table.
type row struct {
	name  string
	value any
}

func (r result) print() {
	rows := []row{
		{"kills", fmt.Sprintf("%d, of which inside a commit %d", r.kills, r.inside)},
		{"reported committed", r.committed},
		{"reported aborted", r.aborted},
		{"reported pending", r.pending},
		{"reported in doubt", r.doubt},
		{"decided, finished by recovery", r.finished},
		{"undecided, rolled back by recovery", r.rolledBack},
		{r.what + " before", r.before},
		{r.what + " after", r.after},
		{"dat: transactions left", r.left},
	}
	for _, c := range r.companions {
		rows = append(rows, c.lines()...)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, row := range append(rows, row{"violations", len(r.violations)}) {
		_, _ = fmt.Fprintf(w, "%s\t%v\n", row.name, row.value) // to memory
	}
	_ = w.Flush() // a broken pipe ends the program by itself
	rig.List(r.violations)
}

func (r result) figures(board *rig.Board, p piece, plan plan) {
	if plan.guardOff != "" {
		board.AtLeast("proof_"+p.name+plan.guardOff+"_violations", len(r.violations), 1)
		return
	}
	board.AtLeast(p.name+"kills", r.kills, plan.kills)
	board.AtLeast(p.name+"kills_inside_commit", r.inside, leastInside)
	board.AtLeast(p.name+"reported_committed", r.committed, 1)
	board.AtLeast(p.name+"finished_by_recovery", r.finished, 1)
	board.AtLeast(p.name+"rolled_back_by_recovery", r.rolledBack, 1)
	board.Exactly(p.name+p.what+"_moved", r.after-r.before, 0)
	board.Exactly(p.name+"dat_transactions_left", r.left, 0)
	for _, c := range r.companions {
		c.figures(board, p.name)
	}
	board.Exactly(p.name+"violations", len(r.violations), 0)
}
