package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"

	rhizodat "github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// The first ids of the peers in a race; ours begin at 1.
const (
	firstOfPython = 1_000_000
	firstOfJava   = 2_000_000
)

// race lets all three commit to one table at once: each appends rows, a commit a
// row, and this library also counts in another row, all in transactions of two stores.
func race(ctx context.Context, s *venue) error {
	rounds, n := 3, 30
	if s.plan.short {
		rounds, n = 1, 12
	}
	for round := range rounds {
		name := fmt.Sprintf("race%d", round+1)
		if err := s.exec(ctx, "CREATE TABLE "+name+citiesColumns+" TBLPROPERTIES ('commit.retry.num-retries'='4')"); err != nil {
			return err
		}
		if err := s.exec(ctx, "INSERT INTO "+name+" VALUES (0, 'counter', 0)"); err != nil {
			return err
		}
		if err := s.run(ctx, name, n); err != nil {
			return err
		}
		r, err := s.count(ctx, name, n)
		if err != nil {
			return err
		}
		for _, line := range r.rows {
			fmt.Printf("wrong: %s: %s\n", name, line)
		}
		prefix := s.prefix + name + "_"
		// A row of each, three times n appends and our n updates, and the first row.
		s.board.Exactly(prefix+"rows_lost_or_doubled", len(r.rows), 0)
		s.board.Exactly(prefix+"snapshots", r.snapshots, 4*n+1)
		s.board.Exactly(prefix+"dat_txn", r.txns, 4*n+1)
	}
	return nil
}

func (s *venue) run(ctx context.Context, name string, n int) error {
	errs := make([]error, 3)
	var all sync.WaitGroup
	for i, base := range []int{firstOfPython, firstOfJava} {
		all.Go(func() {
			var a answer
			a, errs[i] = s.peers[i].ask(question{Do: "race", Table: name, N: n, Base: base})
			fmt.Printf("   %s: %d of its commits were refused and done again\n", s.peers[i].name, a.Lost)
		})
	}
	all.Go(func() {
		retried := 0
		for i := 1; i <= n && errs[2] == nil; i++ {
			var tries int
			tries, errs[2] = s.appendAndCount(ctx, name, i)
			retried += tries
		}
		fmt.Printf("   rhizodat: %d of its transactions were refused before the decision and done again, %d left to recovery\n", retried, s.pending)
	})
	all.Wait()
	s.pending = 0
	return errors.Join(append(errs, s.recover(ctx))...)
}

// appendAndCount commits a row, and then an addition to the counter.
func (s *venue) appendAndCount(ctx context.Context, name string, i int) (retried int, err error) {
	for _, text := range []string{
		"INSERT INTO " + name + " VALUES (" + strconv.Itoa(i) + ", 'go', 0)",
		"UPDATE " + name + " SET n = n + 1 WHERE id = 0",
	} {
		for {
			err := s.inBoth(ctx, name, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, text)
				return err
			})
			if err == nil {
				break
			}
			if !rhizodat.IsRetryable(err) || retried > 1000 {
				return retried, err
			}
			retried++
		}
	}
	return retried, nil
}

// raced is what is in a table after a race.
type raced struct {
	rows      []string // what is missing or not expected
	snapshots int      // in one chain from the head
	txns      int      // different ones, each in one snapshot
}

// count looks at the table as we and both peers read it.
func (s *venue) count(ctx context.Context, name string, n int) (raced, error) {
	want := []canon.Row{{"id": "0", "city": "counter", "n": strconv.Itoa(n)}}
	for i := range n {
		want = append(want,
			canon.Row{"id": strconv.Itoa(i + 1), "city": "go", "n": "0"},
			canon.Row{"id": strconv.Itoa(firstOfPython + i), "city": "py", "n": strconv.Itoa(i)},
			canon.Row{"id": strconv.Itoa(firstOfJava + i), "city": "java", "n": strconv.Itoa(i)})
	}
	tbl, err := s.load(ctx, name)
	if err != nil {
		return raced{}, err
	}
	r := raced{}
	seen := map[string]int{}
	for at := tbl.CurrentSnapshot(); at != nil; r.snapshots++ {
		if at.Summary != nil {
			seen[at.Summary.Properties[txnKey]]++
		}
		if at.ParentSnapshotID == nil {
			r.snapshots++
			break
		}
		at = tbl.Metadata().SnapshotByID(*at.ParentSnapshotID)
	}
	for txn, times := range seen {
		if txn != "" && times == 1 {
			r.txns++
		}
	}
	ours, err := s.read(ctx, name)
	if err != nil {
		return raced{}, err
	}
	r.rows = canon.Differences(want, ours.Rows)
	for _, p := range s.peers {
		a, err := p.ask(question{Do: "read", Table: name})
		if err != nil {
			return raced{}, err
		}
		r.rows = append(r.rows, differences(want, &ours, a.state)...)
	}
	return r, nil
}

// twins lets two workers finish each decided change at once.
func twins(ctx context.Context, s *venue) error {
	rounds := 20
	if s.plan.short {
		rounds = 5
	}
	if err := s.exec(ctx, "CREATE TABLE twins"+citiesColumns+" TBLPROPERTIES ('commit.retry.num-retries'='4')"); err != nil {
		return err
	}
	once := 0
	for i := range rounds {
		ref, err := s.stage(ctx, fmt.Sprintf("INSERT INTO twins VALUES (%d, 'twin', 0)", i))
		if err != nil {
			return err
		}
		errs := make([]error, 2)
		var both sync.WaitGroup
		both.Go(func() { errs[0] = s.store.Finish(ctx, ref) })
		both.Go(func() { errs[1] = s.another.Finish(ctx, ref) })
		both.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		state, err := s.read(ctx, "twins")
		if err != nil {
			return err
		}
		rows, snapshots := 0, 0
		for _, r := range state.Rows {
			if r["id"] == strconv.Itoa(i) {
				rows++
			}
		}
		for _, r := range state.Snapshots {
			if r[txnKey] == ref.Txn.String() {
				snapshots++
			}
		}
		if rows == 1 && snapshots == 1 {
			once++
		}
	}
	s.board.Exactly(s.prefix+"two_workers_once", once, rounds)
	return nil
}
