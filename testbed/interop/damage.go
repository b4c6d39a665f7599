package main

import (
	"context"
	"slices"
	"strconv"

	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// inAnswer changes what a peer has answered about the first table, and compares.
func inAnswer(s *venue, change func(*state)) (int, error) {
	of := s.tables[len(s.tables)-1] // the evolved one, which both read right
	found := 0
	for _, p := range s.peers {
		a, err := p.ask(question{Do: "read", Table: of.name})
		if err != nil {
			return 0, err
		}
		if len(differences(of.want, &of.ours, a.state)) > 0 {
			return 0, nil // it was different before
		}
		change(&a.state)
		if len(differences(of.want, &of.ours, a.state)) > 0 {
			found++
		}
	}
	if found < len(s.peers) {
		return 0, nil
	}
	return found, nil
}

func alteredRow(_ context.Context, s *venue) (int, error) {
	return inAnswer(s, func(a *state) { a.Rows[1]["d"] = "1.51" })
}

func lostRow(_ context.Context, s *venue) (int, error) {
	return inAnswer(s, func(a *state) { a.Rows = a.Rows[1:] })
}

func doubledRow(_ context.Context, s *venue) (int, error) {
	return inAnswer(s, func(a *state) { a.Rows = append(slices.Clone(a.Rows), a.Rows[0]) })
}

func lostTxn(_ context.Context, s *venue) (int, error) {
	return inAnswer(s, func(a *state) { delete(a.Snapshots[0], txnKey) })
}

// lostOnDisk has Java delete a row of a table behind everybody's back.
func lostOnDisk(ctx context.Context, s *venue) (int, error) {
	c, err := s.newCities(ctx, "damaged", "")
	if err != nil {
		return 0, err
	}
	rows := c.add("oslo", "riga", "bern")
	if err := c.exec(ctx, c.insertion(rows)); err != nil {
		return 0, err
	}
	if err := c.ask(c.java(), question{Do: "posdelete", ID: "2"}); err != nil {
		return 0, err
	}
	ours, err := c.read(ctx, c.name)
	if err != nil {
		return 0, err
	}
	found := 0
	for _, p := range c.peers {
		a, err := p.ask(question{Do: "read", Table: c.name})
		if err != nil {
			return 0, err
		}
		found += len(differences(rows, nil, a.state))
	}
	if len(differences(rows, nil, ours)) == 0 {
		return 0, nil
	}
	return found, nil
}

// doubledCommit appends the row of a race a second time, under its own dat.txn: what a
// commit that is done twice leaves.
func doubledCommit(ctx context.Context, s *venue) (int, error) {
	const name, n = "doubled", 1
	if err := s.exec(ctx, "CREATE TABLE "+name+citiesColumns); err != nil {
		return 0, err
	}
	if err := s.exec(ctx, "INSERT INTO "+name+" VALUES (0, 'counter', 0)"); err != nil {
		return 0, err
	}
	if err := s.run(ctx, name, n); err != nil {
		return 0, err
	}
	before, err := s.count(ctx, name, n)
	if err != nil || len(before.rows) > 0 || before.snapshots != 4*n+1 || before.txns != 4*n+1 {
		return 0, err // it was damaged before
	}
	again := question{
		Do: "append", Table: name, Txn: "java-" + strconv.Itoa(firstOfJava),
		Rows: []canon.Row{{"id": strconv.Itoa(firstOfJava), "city": "java", "n": "0"}},
	}
	if _, err := s.java().ask(again); err != nil {
		return 0, err
	}
	after, err := s.count(ctx, name, n)
	if len(after.rows) == 0 || after.snapshots == before.snapshots || after.txns == before.txns {
		return 0, err
	}
	return len(after.rows), err
}

// secondFinish takes a unit that was never finished for one that was: its commit
// must be noticed as a second one would be.
func secondFinish(ctx context.Context, s *venue) (int, error) {
	c, err := s.newCities(ctx, "unfinished", "")
	if err != nil {
		return 0, err
	}
	ref, err := c.stage(ctx, c.insertion(c.add("oslo")))
	if err != nil {
		return 0, err
	}
	err = c.finishAgain(ctx, ref)
	return c.moved, err
}
