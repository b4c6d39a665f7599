package rig

import (
	"context"
	"strconv"
)

// Companion is a store of another kind beside the PostgreSQL databases of a
// deployment. Every unit that writes in those writes there too, in its own form.
type Companion interface {
	// Way leads to the store: its URL in a DSN.
	Way() string
	// Book is what the units have left there.
	Book(ctx context.Context) (Book, error)
	// Unfinished lists, of the units that are given, those that have not taken
	// effect there.
	Unfinished(ctx context.Context, txns []string) ([]string, error)
	// Busy reports whether the server still works on somebody's request.
	Busy(ctx context.Context) (bool, error)
}

// Preparer is a companion whose branches are prepared.
type Preparer interface {
	// Prepared lists the gids that are prepared there.
	Prepared(ctx context.Context) ([]string, error)
}

// Beside makes a companion a store of a deployment whose units write in that many
// stores. What it holds is audited apart; see Compare.
func Beside(c Companion, stores int) Other { return beside{c, strconv.Itoa(stores)} }

type beside struct {
	Companion

	stores string
}

// Effects are the units of the book.
func (b beside) Effects(ctx context.Context) (map[string]string, error) {
	book, err := b.Book(ctx)
	if err != nil {
		return nil, err
	}
	effects := make(map[string]string, len(book))
	for entry := range book {
		effects[entry.Txn] = b.stores
	}
	return effects, nil
}

// Inexact: see Compare.
func (b beside) Inexact(context.Context) ([]string, error) { return nil, nil }

// Prepared lists what a companion has prepared that can.
func (b beside) Prepared(ctx context.Context) ([]string, error) {
	if p, ok := b.Companion.(Preparer); ok {
		return p.Prepared(ctx)
	}
	return nil, nil
}
