package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// peersWrite lets each peer make every table anew with its own writer. We read it,
// and where this library can, delete a row of it, which the peer must then miss.
func peersWrite(ctx context.Context, s *venue) error {
	return s.together(func(p *peer) error {
		var t, after tally
		for _, table := range s.tables {
			if err := s.mirror(ctx, p, table, &t, &after); err != nil {
				return err
			}
		}
		s.board.AtLeast(s.prefix+p.name+"_writes_equal", t.equal, len(s.tables)*2/5)
		s.board.Exactly(s.prefix+p.name+"_writes_wrong", t.wrong, 0)
		s.board.AtLeast(s.prefix+p.name+"_misses_deleted", after.equal, len(s.tables)/4)
		s.board.Exactly(s.prefix+p.name+"_misses_deleted_wrong", after.wrong, 0)
		return nil
	})
}

func (s *venue) mirror(ctx context.Context, p *peer, of *shown, t, after *tally) error {
	name := p.name + "_" + of.name
	subject := s.subject(p.name, writes, of.name)
	if err := p.write(name, of); err != nil {
		return s.judge(t, subject, err, nil, nil)
	}
	got, err := s.read(ctx, name)
	if err != nil {
		return s.judge(t, subject, nil, []string{err.Error(), s.second(p, name)}, nil)
	}
	again := func(mend func(canon.Row)) []string { return canon.Differences(mended(of.want, mend), got.Rows) }
	if err := s.judge(t, subject, nil, canon.Differences(of.want, got.Rows), again); err != nil || got.Version == "3" {
		return err
	}
	gone := got.Rows[0]["id"]
	if err := s.exec(ctx, "DELETE FROM "+name+" WHERE id = ?", gone); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(got.Rows), func(r canon.Row) bool { return r["id"] == gone })
	a, err := p.ask(question{Do: "read", Table: name})
	again = func(mend func(canon.Row)) []string { return canon.Differences(mended(left, mend), a.Rows) }
	return s.judge(after, s.subject(p.name, rereads, of.name), err, canon.Differences(left, a.Rows), again)
}

// nobodyElse is what second says where it is not this library that is wrong.
const nobodyElse = "cannot read it either"

// second is what the other peer says about a table that we cannot read.
func (s *venue) second(writer *peer, name string) string {
	other := s.python()
	if writer == other {
		other = s.java()
	}
	if _, err := other.ask(question{Do: "read", Table: name}); err != nil {
		return other.name + " " + nobodyElse + ": " + err.Error()
	}
	return other.name + " reads it"
}

// write makes a table of the same schema and partitions, and appends the rows in two
// commits. Nothing stays of one that it cannot write.
func (p *peer) write(name string, of *shown) error {
	if _, err := p.ask(question{Do: "create", Table: name, Schema: of.ours.Schema, Spec: of.ours.Spec, Version: of.ours.Version}); err != nil {
		return err
	}
	half := len(of.want) / 2
	for _, rows := range [][]canon.Row{of.want[:half], of.want[half:]} {
		if _, err := p.ask(question{Do: "append", Table: name, Rows: rows, Txn: rand.Text()}); err != nil {
			if _, dropErr := p.ask(question{Do: "drop", Table: name}); dropErr != nil {
				return fmt.Errorf("%w; and to drop it: %w", err, dropErr)
			}
			return err
		}
	}
	return nil
}
