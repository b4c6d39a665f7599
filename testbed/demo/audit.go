package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// companionResult is how a companion ended.
type companionResult struct {
	name     string
	rows     int
	finished []string // units whose rows recovery has brought
	audit    rig.Audit
	noticed  int // of what Meddle did, -1 where it was not asked to
	slow     bool
}

// meddlings is how much Meddle does: something of each kind that an audit tells
// apart.
const meddlings = 3

// audit compares what the units have left in a companion with what they have left
// in the PostgreSQL databases, of which count tells that it is right. states are
// the journal's.
func (t *trial) audit(ctx context.Context, name string, want rig.Book, states map[string]string) (companionResult, error) {
	c := t.companions[name]
	r := companionResult{name: name, noticed: -1, slow: c.kind.slow}
	got, err := c.Book(ctx)
	if err != nil {
		return r, err
	}
	r.rows, r.audit = got.Rows(), rig.Compare(want, got)
	var waited []string
	for txn := range t.waiting[name] {
		if states[txn] == "DONE" {
			waited = append(waited, txn)
		}
	}
	left, err := c.Unfinished(ctx, waited)
	if err != nil {
		return r, err
	}
	r.finished = without(waited, left)
	if m, ok := c.Companion.(rig.Meddler); ok && len(r.audit.All()) == 0 && len(want) >= meddlings {
		r.noticed, err = noticed(ctx, c, m, want)
	}
	return r, err
}

func without(all, some []string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return slices.Contains(some, s) })
}

// noticed proves the checker: rows are made wrong in every way, and it has to tell
// which.
func noticed(ctx context.Context, c rig.Companion, m rig.Meddler, want rig.Book) (int, error) {
	entries := want.Entries()
	lost, doubled, copied := entries[0], entries[1], entries[2]
	if err := m.Meddle(ctx, lost, doubled, copied); err != nil {
		return 0, err
	}
	got, err := c.Book(ctx)
	if err != nil {
		return 0, err
	}
	audit, n := rig.Compare(want, got), 0
	for _, found := range []bool{
		len(audit.Missing) == 1 && strings.HasPrefix(audit.Missing[0], lost.Txn),
		len(audit.Different) == 1 && strings.HasPrefix(audit.Different[0], doubled.Txn),
		len(audit.Unexpected) == 1,
	} {
		if found {
			n++
		}
	}
	return n, nil
}

func (r companionResult) lines() []row {
	return []row{
		{r.name + ": rows", r.rows},
		{r.name + ": units finished by recovery", len(r.finished)},
		{r.name + ": entries missing, unexpected, different", fmt.Sprintf("%d, %d, %d",
			len(r.audit.Missing), len(r.audit.Unexpected), len(r.audit.Different))},
	}
}

func (r companionResult) figures(board *rig.Board, prefix string) {
	board.AtLeast(prefix+r.name+"_rows", r.rows, 1)
	if r.slow {
		board.AtLeast(prefix+r.name+"_finished_by_recovery", len(r.finished), 1)
	}
	board.Exactly(prefix+r.name+"_missing", len(r.audit.Missing), 0)
	board.Exactly(prefix+r.name+"_unexpected", len(r.audit.Unexpected), 0)
	board.Exactly(prefix+r.name+"_different", len(r.audit.Different), 0)
	if r.noticed >= 0 {
		board.Exactly(prefix+r.name+"_meddlings_noticed", r.noticed, meddlings)
	}
}
