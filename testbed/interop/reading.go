package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// shown is a table with the rows that it must have, and as this library reads it.
type shown struct {
	name string
	want []canon.Row
	ours state
}

// writeAll makes every table of the run, and reads it back.
func writeAll(ctx context.Context, s *venue) error {
	size := s.extent()
	for _, d := range designs(size) {
		rows, err := s.tell(ctx, d)
		if err != nil {
			return fmt.Errorf("table %s: %w", d.name, err)
		}
		s.tables = append(s.tables, &shown{name: d.name, want: rows})
	}
	rows, err := s.tellEvolved(ctx)
	if err != nil {
		return fmt.Errorf("table %s: %w", evolved, err)
	}
	s.tables = append(s.tables, &shown{name: evolved, want: rows})
	var t tally
	for _, table := range s.tables {
		if table.ours, err = s.read(ctx, table.name); err != nil {
			return err
		}
		if err := s.judge(&t, s.subject("rhizodat", reads, table.name), nil, differences(table.want, nil, table.ours), nil); err != nil {
			return err
		}
	}
	s.board.AtLeast(s.prefix+"tables", len(s.tables), size.least())
	s.board.Exactly(s.prefix+"rhizodat_reads_wrong", t.wrong, 0)
	return nil
}

func (s *venue) extent() extent {
	switch {
	case s.plan.short:
		return few
	case s.place.name == full:
		return every
	}
	return oneVersion
}

func (s *venue) subject(peer, doing, table string) subject {
	return subject{peer, doing, table, s.place.name}
}

// together runs f for each peer at once.
func (s *venue) together(f func(p *peer) error) error {
	errs := make([]error, len(s.peers))
	var all sync.WaitGroup
	for i, p := range s.peers {
		all.Go(func() { errs[i] = f(p) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// peersRead lets each peer read every table: its rows, its schema, its snapshots.
func peersRead(_ context.Context, s *venue) error {
	return s.together(func(p *peer) error {
		var t tally
		for _, table := range s.tables {
			a, err := p.ask(question{Do: "read", Table: table.name})
			var lines []string
			if err == nil {
				lines = differences(table.want, &table.ours, a.state)
			}
			again := func(mend func(canon.Row)) []string {
				return differences(mended(table.want, mend), &table.ours, a.state)
			}
			if err := s.judge(&t, s.subject(p.name, reads, table.name), err, lines, again); err != nil {
				return err
			}
		}
		s.board.AtLeast(s.prefix+p.name+"_reads_equal", t.equal, len(s.tables)*4/5)
		s.board.Exactly(s.prefix+p.name+"_reads_wrong", t.wrong, 0)
		return nil
	})
}

// mended are copies of rows after a change to each.
func mended(rows []canon.Row, mend func(canon.Row)) []canon.Row {
	out := make([]canon.Row, len(rows))
	for i, r := range rows {
		out[i] = with(r, "id", r["id"])
		mend(out[i])
	}
	return out
}
