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
	stores  []string
	// companions are the stores of other kinds.
	companions []kind
	// total is a number that no unit changes, summed over the stores.
	total string
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
}

// pieces in the order in which they are shown.
var pieces = []piece{{
	title:      "transfers between two banks, with events",
	program:    "examples/transfer",
	stores:     []string{"bank_a", "bank_b"},
	companions: []kind{{name: "events", engine: "ClickHouse", open: openEvents}},
	total:      `SELECT sum(balance)::bigint FROM accounts`,
	ledger:     `SELECT dat_txn::text, '{stores}' FROM transfers`,
	book:       `SELECT dat_txn::text, '{store}', count(*), sum(amount)::bigint FROM transfers GROUP BY 1`,
}}
