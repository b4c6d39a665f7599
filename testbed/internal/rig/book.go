package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Meddler is a companion whose rows can be made wrong, to see whether that is
// noticed.
type Meddler interface {
	// Meddle takes the rows of one entry away, doubles those of another, and gives
	// those of a third to a unit that never was.
	Meddle(ctx context.Context, lost, doubled, copied Entry) error
}

// Entry is the part of a unit that a book sums up: its dat_txn, and whatever
// tells the parts of one unit apart.
type Entry struct{ Txn, Part string }

// Sum is how many rows an entry has, and the sum of the number in them.
type Sum struct{ Rows, Total int }

// Book is what units have left in one store, or in several.
type Book map[Entry]Sum

// Add adds the rows of another book.
func (b Book) Add(other Book) {
	for entry, sum := range other {
		mine := b[entry]
		b[entry] = Sum{mine.Rows + sum.Rows, mine.Total + sum.Total}
	}
}

// Rows is the number of all rows.
func (b Book) Rows() int {
	rows := 0
	for _, sum := range b {
		rows += sum.Rows
	}
	return rows
}

// Entries of the book, sorted.
func (b Book) Entries() []Entry {
	return slices.SortedFunc(maps.Keys(b), func(x, y Entry) int {
		return strings.Compare(x.Txn+x.Part, y.Txn+y.Part)
	})
}

// Audit is how one book differs from what it should be. Each difference is one
// line.
type Audit struct {
	Missing    []string // entries that are not there
	Unexpected []string // entries of units that should have none
	Different  []string // entries with other rows or another sum
}

// Compare holds got against want.
func Compare(want, got Book) Audit {
	var a Audit
	for _, e := range want.Entries() {
		switch w, g := want[e], got[e]; {
		case g.Rows == 0:
			a.Missing = append(a.Missing, fmt.Sprintf("%s %s: no row, want %s", e.Txn, e.Part, w))
		case g != w:
			a.Different = append(a.Different, fmt.Sprintf("%s %s: %s, want %s", e.Txn, e.Part, g, w))
		}
	}
	for _, e := range got.Entries() {
		if want[e].Rows == 0 {
			a.Unexpected = append(a.Unexpected, fmt.Sprintf("%s %s: %s, want no row", e.Txn, e.Part, got[e]))
		}
	}
	return a
}

// All are the differences of every kind.
func (a Audit) All() []string { return slices.Concat(a.Missing, a.Unexpected, a.Different) }

func (s Sum) String() string { return fmt.Sprintf("%d rows of %d in all", s.Rows, s.Total) }

// Book reads one: a query's columns are dat_txn and part as text, rows and sum as
// bigint.
func (d *Database) Book(ctx context.Context, query string) (Book, error) {
	book := Book{}
	err := d.with(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, query)
		if err != nil {
			return err
		}
		var entry Entry
		var sum Sum
		_, err = pgx.ForEachRow(rows, []any{&entry.Txn, &entry.Part, &sum.Rows, &sum.Total}, func() error {
			book[entry] = sum
			return nil
		})
		return err
	})
	return book, err
}

// Book reads one: a query's columns are dat_txn, part, rows and sum.
func (d *ClickHouseDatabase) Book(ctx context.Context, query string) (Book, error) {
	rows, err := d.Ask(ctx, query)
	if err != nil {
		return nil, err
	}
	book := make(Book, len(rows))
	for _, row := range rows {
		if len(row) != 4 {
			return nil, fmt.Errorf("read book of %s: %d columns, want 4", d.Name, len(row))
		}
		count, countErr := strconv.Atoi(row[2])
		total, totalErr := strconv.Atoi(row[3])
		if err := errors.Join(countErr, totalErr); err != nil {
			return nil, fmt.Errorf("read book of %s: %w", d.Name, err)
		}
		book[Entry{row[0], row[1]}] = Sum{count, total}
	}
	return book, nil
}
