package rig

import "context"

// Other is a store of a Deployment that is not a PostgreSQL database.
type Other interface {
	// Way leads to the store: its URL in a DSN.
	Way() string
	// Effects are the dat_txn of each unit that left anything in the store, with
	// the number of stores in which such a unit writes, as text.
	Effects(ctx context.Context) (map[string]string, error)
	// Inexact says, one line each, of which units the store does not hold exactly
	// what it should.
	Inexact(ctx context.Context) ([]string, error)
	// Prepared lists the gids prepared there. Nil where nothing can be.
	Prepared(ctx context.Context) ([]string, error)
	// Busy reports whether the server still works on somebody's request.
	Busy(ctx context.Context) (bool, error)
}

// OtherJournal is a journal of a Deployment that is not in PostgreSQL.
type OtherJournal interface {
	// Way leads to the journal: its URL in a DSN.
	Way() string
	// States are its records, dat_txn to state.
	States(ctx context.Context) (map[string]string, error)
}
