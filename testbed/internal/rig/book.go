package rig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Companion is a store of another kind beside the PostgreSQL databases of a
// deployment. What a unit writes in those it writes there too, in its own form.
type Companion interface {
	// DSN of the store, as it stands behind its name.
	DSN() string
	// Book is what the units have left there.
	Book(ctx context.Context) (Book, error)
	// Unfinished lists, of the units that are given, those that have not taken
	// effect there.
	Unfinished(ctx context.Context, txns []string) ([]string, error)
}

// Preparer is a companion whose branches are prepared.
type Preparer interface {
	// Prepared lists the gids that are prepared there.
	Prepared(ctx context.Context) ([]string, error)
}

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
