package main

import (
	"context"
	"fmt"
	"strings"
)

// statistics lets the peers look for every value of every column with a filter, so
// that bounds, row group statistics and partition values hide no row, and compare
// the partition values with their own transforms. It is of the long form, and needs one catalog.
func statistics(_ context.Context, s *venue) error {
	if s.plan.short || s.place.name != full {
		return nil
	}
	return s.together(func(p *peer) error {
		var t tally
		for _, table := range s.tables {
			for _, q := range []question{{Do: filters}, {Do: parts}} {
				if q.Do == parts && (table.name == evolved || strings.HasPrefix(table.name, "types_")) {
					continue // more than one partition field, or none
				}
				q.Table = table.name
				a, err := p.ask(q)
				if err := s.judge(&t, s.subject(p.name, q.Do, table.name), err, a.Bad, nil); err != nil {
					return err
				}
			}
		}
		s.board.AtLeast(s.prefix+p.name+"_statistics_right", t.equal, len(s.tables))
		s.board.Exactly(s.prefix+p.name+"_statistics_wrong", t.wrong, 0)
		return nil
	})
}

// proof damages tables, and what was read of them, on purpose: the comparisons of
// this run must find it.
func proof(ctx context.Context, s *venue) error {
	if s.proved {
		return nil
	}
	s.proved = true
	for _, damage := range []struct {
		name string
		do   func(context.Context, *venue) (found int, err error)
	}{
		{"altered_row", alteredRow},
		{"lost_row", lostRow},
		{"doubled_row", doubledRow},
		{"lost_dat_txn", lostTxn},
		{"row_lost_on_disk", lostOnDisk},
		{"race_doubled_commit", doubledCommit},
		{"second_finish", secondFinish},
	} {
		found, err := damage.do(ctx, s)
		if err != nil {
			return fmt.Errorf("damage %s: %w", damage.name, err)
		}
		s.board.AtLeast("proof_"+damage.name+"_found", found, 1)
	}
	return nil
}
