package main

import (
	"context"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// piece is a program that is shown, and what its stores must hold.
type piece struct {
	name    string // stands before its figures; empty for the first
	title   string
	program string // its package
	share   int    // of the kills asked for: one in so many
	stores  []string
	// companions are the stores of other kinds.
	companions []kind
	// journal opens one that is not in PostgreSQL; nil: it is.
	journal func(context.Context, *stack) (rig.OtherJournal, error)
	// total is a number of what no unit changes, summed over the stores.
	what, total string
	// ledger is the dat_txn of each unit, and in how many stores it writes, for
	// which {stores} stands.
	ledger string
	// book is what the units have left in a store, for which {store} stands.
	book string
}

// kind is a store of another kind than PostgreSQL.
type kind struct {
	name   string // in the DSN
	engine string // for people
	open   func(context.Context, *stack) (rig.Companion, error)
	// slow: its rows come so long after the decision that kills have to come
	// between.
	slow bool
}

// pieces in the order in which they are shown.
func pieces() []piece {
	transfers := piece{
		title:      "transfers between two banks, with events",
		program:    "examples/transfer",
		share:      1,
		stores:     []string{"bank_a", "bank_b"},
		companions: []kind{{"events", "ClickHouse", openEvents("bank", "amount"), true}},
		what:       "money",
		total:      `SELECT sum(balance)::bigint FROM accounts`,
		ledger:     `SELECT dat_txn::text, '{stores}' FROM transfers`,
		book:       `SELECT dat_txn::text, '{store}', count(*), sum(amount)::bigint FROM transfers GROUP BY 1`,
	}
	orders := piece{
		name:    "orders_",
		title:   "orders, each in every store",
		program: "examples/orders",
		share:   2,
		stores:  []string{"shop"},
		companions: []kind{
			{"events", "ClickHouse", openEvents("product", "quantity"), true},
			{"history", "Iceberg", openHistory, false},
			{"relations", "drevo", openRelations, false},
		},
		what:   "pieces",
		total:  `SELECT (SELECT sum(pieces) FROM stock)::bigint + (SELECT coalesce(sum(quantity), 0) FROM orders)::bigint`,
		ledger: `SELECT dat_txn::text, '{stores}' FROM orders`,
		book:   `SELECT dat_txn::text, product::text, count(*), sum(quantity)::bigint FROM orders GROUP BY 1, 2`,
	}
	inDrevo := orders
	inDrevo.name, inDrevo.title = "orders_drevo_journal_", "the same with the journal in drevo"
	inDrevo.share, inDrevo.journal = 3, openDrevoJournal
	return []piece{transfers, orders, inDrevo}
}
