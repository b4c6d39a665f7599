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
	finished, rolledBack               int // by recovery, of what the kills left prepared
	before, after                      int // money
	left                               int // dat: transactions
	violations                         []string
}

// count compares what was reported with what is there.
func (b *banks) count(ctx context.Context) (result, error) {
	r := result{kills: b.kills, inside: b.inside}
	for _, verdict := range b.reported {
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
	states, err := b.States(ctx)
	if err != nil {
		return r, err
	}
	for txn, state := range b.open {
		switch {
		case state == "COMMITTED" && states[txn] == "DONE":
			r.finished++
		case state != "COMMITTED" && states[txn] == "ABORTED":
			r.rolledBack++
		}
	}
	gids, err := b.Prepared(ctx)
	if err != nil {
		return r, err
	}
	r.left = len(gids)
	if r.after, err = b.money(ctx); err != nil {
		return r, err
	}
	r.violations, err = b.Judge(ctx, b.reported)
	for _, crash := range b.crashes {
		r.violations = append(r.violations, fmt.Sprintf("the program ended by itself: %v", crash))
	}
	return r, err
}

func (r result) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, row := range []struct {
		name  string
		value any
	}{
		{"kills", fmt.Sprintf("%d, of which inside a commit %d", r.kills, r.inside)},
		{"reported committed", r.committed},
		{"reported aborted", r.aborted},
		{"reported pending", r.pending},
		{"reported in doubt", r.doubt},
		{"pending, finished by recovery", r.finished},
		{"undecided, rolled back by recovery", r.rolledBack},
		{"money before", r.before},
		{"money after", r.after},
		{"dat: transactions left", r.left},
		{"violations", len(r.violations)},
	} {
		_, _ = fmt.Fprintf(w, "%s\t%v\n", row.name, row.value) // to memory
	}
	_ = w.Flush() // a broken pipe ends the program by itself
	for i, v := range r.violations {
		if i == 10 {
			fmt.Printf("... and %d more\n", len(r.violations)-i)
			break
		}
		fmt.Println("violation:", v)
	}
}

func (r result) figures(board *rig.Board, plan plan) {
	if plan.guardOff != "" {
		board.AtLeast("proof_"+plan.guardOff+"_violations", len(r.violations), 1)
		return
	}
	board.AtLeast("kills", r.kills, plan.kills)
	board.AtLeast("kills_inside_commit", r.inside, leastInside)
	board.AtLeast("reported_committed", r.committed, 1)
	board.AtLeast("finished_by_recovery", r.finished, 1)
	board.AtLeast("rolled_back_by_recovery", r.rolledBack, 1)
	board.Exactly("money_moved", r.after-r.before, 0)
	board.Exactly("dat_transactions_left", r.left, 0)
	board.Exactly("violations", len(r.violations), 0)
}
