package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go"
	"github.com/rhizodat/rhizodat-go/bench/floor"
)

const namespace = "bench"

// merging is what a table that we make is given, since a commit otherwise costs the
// more the more there were before it. The opponent's tables get it, too.
var merging = map[string]string{"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "20"}

var columns = []string{"id", "city", "amount"}

func rowOf(i int) floor.Row {
	return floor.Row{ID: int64(i) + 1, City: "oslo", Amount: float64(i) / 2}
}

// lakes are the same catalog and warehouse thrice, each in a SQLite file and a
// directory of its own.
type lakes struct {
	ctx           context.Context //nolint:containedctx // of one call
	dir           string
	ours          *sql.DB
	theirs, plain *floor.Tables // plain forces no file
	made          int
	ourDir        string
}

func openLakes(ctx context.Context) *lakes {
	l := &lakes{ctx: ctx, dir: must1(os.MkdirTemp("", "rhizodat-bench-"))}
	for _, name := range []string{"ours", "theirs", "plain"} {
		must(os.Mkdir(l.dir+"/"+name, 0o750))
	}
	l.ourDir = l.dir + "/ours"
	dsn := "lake=iceberg+sqlite://" + l.ourDir + "/catalog.db?warehouse=file://" + l.ourDir + "/wh&namespace=" + namespace
	install(ctx, dsn)
	l.ours = open("rhizodat", dsn)
	l.theirs = must1(floor.OpenTables(ctx, l.dir+"/theirs", namespace, true, merging))
	l.plain = must1(floor.OpenTables(ctx, l.dir+"/plain", namespace, false, merging))
	return l
}

func (l *lakes) close() {
	must(errors.Join(l.ours.Close(), l.theirs.Close(), l.plain.Close(), os.RemoveAll(l.dir)))
}

// tables measures Iceberg against iceberg-go's own append, scan and commit. The
// opponent's files are forced, as ours are; beside it stands iceberg-go as it comes,
// which forces none.
func tables(ctx context.Context, rounds int) error {
	l := openLakes(ctx)
	for _, n := range []int{1, 100, 10_000, 100_000} {
		l.insert(n, rounds)
	}
	l.commits(rounds)
	l.scans(rounds)
	l.close()
	return nil
}

// fresh makes a table of ours.
func (l *lakes) fresh() string {
	l.made++
	name := fmt.Sprint("t", l.made)
	_, err := l.ours.ExecContext(l.ctx, "CREATE TABLE "+name+" (id long, city string, amount double)")
	must(err)
	return name
}

func (l *lakes) theirFresh(of *floor.Tables) *table.Table {
	l.made++
	return must1(of.Make(l.ctx, fmt.Sprint("t", l.made)))
}

// unit is one transaction of ours.
func (l *lakes) unit(work func(tx *sql.Tx) error) error {
	tx, err := l.ours.BeginTx(l.ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// appendTo writes n rows by the bulk path.
func (l *lakes) appendTo(name string, n int) error {
	return l.unit(func(tx *sql.Tx) error {
		i := 0
		_, err := rhizodat.Append(l.ctx, tx, "lake", name, columns, func() ([]any, error) {
			if i == n {
				return nil, nil
			}
			r := rowOf(i)
			i++
			return []any{r.ID, r.City, r.Amount}, nil
		})
		return err
	})
}

// insertInto writes n rows by as many executions of one statement.
func (l *lakes) insertInto(name string, n int) error {
	return l.unit(func(tx *sql.Tx) error {
		statement, err := tx.PrepareContext(l.ctx, "INSERT INTO "+name+" (id, city, amount) VALUES (?, ?, ?)") //nolint:gosec // a name of our own
		if err != nil {
			return err
		}
		defer func() { _ = statement.Close() }() // it ends with the transaction
		for i := range n {
			r := rowOf(i)
			if _, err := statement.ExecContext(l.ctx, r.ID, r.City, r.Amount); err != nil {
				return err
			}
		}
		return nil
	})
}

// insert prints rows per second of units of n rows, in a new table each round: the
// cost of what a table holds already is commits' to tell.
func (l *lakes) insert(n, rounds int) {
	times := max(1, min(10, 20_000/n))
	ours := func(write func(string, int) error) func() time.Duration {
		return func() time.Duration {
			name := l.fresh()
			return clients(1, times, func(int, int) error { return write(name, n) })
		}
	}
	theirs := func(of *floor.Tables) func() time.Duration {
		return func() time.Duration {
			tbl := l.theirFresh(of)
			return clients(1, times, func(int, int) (err error) {
				tbl, err = floor.Append(l.ctx, tbl, n, rowOf)
				return err
			})
		}
	}
	for _, run := range []func() time.Duration{ours(l.appendTo), ours(l.insertInto), theirs(l.theirs), theirs(l.plain)} {
		run()
	}
	ratio, o, t := paired(rounds, ours(l.appendTo), theirs(l.theirs))
	control, _, _ := paired(rounds, theirs(l.theirs), theirs(l.theirs))
	byStatement, s, _ := paired(rounds, ours(l.insertInto), theirs(l.theirs))
	unforced, _, u := paired(rounds, ours(l.appendTo), theirs(l.plain))
	rate := func(d time.Duration) float64 { return float64(n*times) / d.Seconds() }
	fmt.Printf("%6d rows a unit: iceberg-go : Append %s   control %s   iceberg-go : INSERT %s   iceberg-go that forces nothing : Append %s   (rows per second %.0f : %.0f, by INSERT %.0f, unforced %.0f)\n",
		n, ratio, control, byStatement, unforced, rate(t), rate(o), rate(s), rate(u))
	name := fmt.Sprintf("time_iceberg_%d_", n)
	figure(name+"append_ratio", fmt.Sprintf("%.3f", ratio.median), ">=0", true)
	figure(name+"insert_ratio", fmt.Sprintf("%.3f", byStatement.median), ">=0", true)
	figure(name+"append_to_unforced_ratio", fmt.Sprintf("%.3f", unforced.median), ">=0", true)
}

// commits prints commits per second of one row each, after so many earlier ones.
func (l *lakes) commits(rounds int) {
	name, tbl := l.fresh(), l.theirFresh(l.theirs)
	one := func(int, int) error { return l.appendTo(name, 1) }
	theirOne := func(int, int) (err error) {
		tbl, err = floor.Append(l.ctx, tbl, 1, rowOf)
		return err
	}
	run := func() time.Duration { return clients(1, 1, one) }
	opponent := func() time.Duration { return clients(1, 1, theirOne) }
	var first, theirFirst time.Duration
	done := 0
	for _, earlier := range []int{1, 100, 500} {
		for ; done < earlier; done++ {
			run()
			opponent()
		}
		ratio, o, t := paired(rounds, run, opponent)
		done += rounds
		if first == 0 {
			first, theirFirst = o, t
		}
		fmt.Printf("after %3d commits: iceberg-go : ours %s   (commits per second %.1f : %.1f, of those at first %.3f : %.3f)\n",
			earlier, ratio, 1/t.Seconds(), 1/o.Seconds(), float64(theirFirst)/float64(t), float64(first)/float64(o))
		figure(fmt.Sprintf("time_iceberg_commit_after_%d_ratio", earlier), fmt.Sprintf("%.3f", ratio.median), ">=0", true)
		if earlier > 1 {
			figure(fmt.Sprintf("time_iceberg_commit_after_%d_of_first", earlier), fmt.Sprintf("%.3f", float64(first)/float64(o)), ">=0", true)
		}
	}
}
