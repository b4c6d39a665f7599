package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/bench/floor"
)

// What is scanned.
const (
	scanFiles = 20
	scanRows  = 2_000_000
)

// read is what a scan came to: both have to see the same.
type read struct {
	rows int64
	sum  float64
}

var allRows = read{scanRows, scanFiles * (scanRows / scanFiles) * (scanRows/scanFiles - 1) / 4.}

// scans measures a scan of 2 million rows in 20 files, which both read: one that
// counts and adds up, and one that hands every value out.
func (l *lakes) scans(rounds int) {
	name := l.fresh()
	for range scanFiles {
		must(l.appendTo(name, scanRows/scanFiles))
	}
	theirs := must1(floor.OpenTables(l.ctx, l.ourDir, namespace, false, nil))
	tbl := must1(theirs.Load(l.ctx, name))
	timed := func(scan func() (read, error)) func() time.Duration {
		return func() time.Duration {
			return clients(1, 1, func(int, int) error {
				got, err := scan()
				if err == nil && got != allRows {
					err = fmt.Errorf("scan: %v, not %v", got, allRows)
				}
				return err
			})
		}
	}
	for _, w := range []struct {
		name           string
		ours, opponent func() time.Duration
	}{
		{
			"sum", timed(func() (read, error) { return l.sum(name) }),
			timed(func() (read, error) { return l.theirScan(tbl, "id", "amount") }),
		},
		{
			"rows", timed(func() (read, error) { return l.everyRow(name) }),
			timed(func() (read, error) { return l.theirScan(tbl, columns...) }),
		},
	} {
		ratio, o, t := paired(rounds, w.ours, w.opponent)
		control, _, _ := paired(rounds, w.opponent, w.opponent)
		fmt.Printf("scan of %d rows, %-4s: iceberg-go : ours %s   control %s   (medians %s : %s)\n", scanRows, w.name, ratio, control, t, o)
		figure("time_iceberg_scan_"+w.name+"_ratio", fmt.Sprintf("%.3f", ratio.median), ">=0", true)
	}
	must(theirs.Close())
}

// sum is the scan that counts and adds up, by SQL.
func (l *lakes) sum(name string) (got read, err error) {
	err = l.ours.QueryRowContext(l.ctx, "SELECT count(*), sum(amount) FROM "+name+" WHERE id > 0").Scan(&got.rows, &got.sum)
	return got, err
}

// everyRow is the scan that hands every value out.
func (l *lakes) everyRow(name string) (got read, err error) {
	rows, err := l.ours.QueryContext(l.ctx, "SELECT id, city, amount FROM "+name) //nolint:gosec // a name of our own
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r floor.Row
		if err := rows.Scan(&r.ID, &r.City, &r.Amount); err != nil {
			return got, err
		}
		if r.ID > 0 && r.City != "" {
			got.rows++
			got.sum += r.Amount
		}
	}
	return got, rows.Err()
}

// theirScan is both scans by hand: it looks at every value of the columns read.
func (l *lakes) theirScan(tbl *table.Table, columns ...string) (got read, err error) {
	err = floor.Scan(l.ctx, tbl, func(batch arrow.RecordBatch) error {
		id, isLong := batch.Column(0).(*array.Int64)
		amount, isDouble := batch.Column(len(columns) - 1).(*array.Float64)
		if !isLong || !isDouble {
			return fmt.Errorf("scan: columns of other types: %s", batch.Schema())
		}
		var city *array.String
		if len(columns) > 2 {
			city, _ = batch.Column(1).(*array.String)
		}
		for i := range int(batch.NumRows()) {
			if id.Value(i) > 0 && (city == nil || city.Value(i) != "") {
				got.rows++
				got.sum += amount.Value(i)
			}
		}
		return nil
	}, columns...)
	return got, err
}
