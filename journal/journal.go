// Package journal holds the durable record of every meta-transaction of several
// branches: who takes part, and what was decided.
//
// The journal is a coordination role, not a data master. Every change of a
// record is one conditional write whose affected-row count is the answer
// (compare-and-set from the expected state). Three results are never mixed:
//
//	nil        the write was acknowledged
//	*Conflict  the write was refused: the record is in another state
//	any other  the answer is not known; read back, or abort by proof
//
// INVARIANT J1: of two conditional writes that expect the same state, at most
// one is acknowledged.
// INVARIANT J2: a forced write that was acknowledged survives a crash of the
// journal's server.
// INVARIANT J3: a final record (DONE, ABORTED) never changes its state.
//
// The closed list of operations that need a single writer, of which this
// package serves all but the third, the fifth and the last: a record's change of state; a lease;
// the commit of one Iceberg table; a step's claim and record; an archive's
// manifest; the registration of a store, its sweep counter, the compaction
// horizon; the read fence. An addition to the list needs an ADR.
//
// The suite journal/journaltest holds every journal to this page.
package journal

import (
	"context"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Journal is an opened journal. Opening must not connect. It is safe for
// concurrent use.
type Journal interface {
	// Session takes one of the journal's places and keeps it until Release, so
	// that a prepared branch never waits in a queue for the decision. It waits
	// for a place as long as ctx allows.
	Session(ctx context.Context) (Session, error)

	// Finish is S10: COMMITTED -> DONE for each of txns, each its own
	// compare-and-set, in one unforced write. It returns how many changed.
	Finish(ctx context.Context, txns []branches.TxnID) (int, error)

	// Scan calls f for every record that filter names, oldest first, without
	// payloads. f must not call the journal.
	Scan(ctx context.Context, filter Filter, f func(Record) error) error

	// Annotate replaces the branches' outcomes and the note of a record in the
	// version that was read (rec.State and rec.UpdatedMS), as a forced write.
	// *Conflict when the record has changed since. It never changes the state.
	Annotate(ctx context.Context, rec Record) error

	// Harden makes every write that was visible before the call durable, by one
	// forced write. Whoever acts on a COMMITTED or ABORTED that it has only
	// read calls it first: what was read may not have reached the disk.
	Harden(ctx context.Context) error

	// Close ends the sessions.
	Close() error
}

// Session is one place in the journal, held by one commit. It is not safe for
// concurrent use. A connection of it that dies is replaced in place by the next
// call.
type Session interface {
	// Create is S4: it inserts the record as ACTIVE, not forced. It stamps
	// rec.TxTime with the greater of itself and the read fence + 1, and
	// rec.CreatedMS, rec.UpdatedMS. *Conflict when the id exists, *Drift when
	// the caller's clock is too far from the journal's.
	Create(ctx context.Context, rec *Record) error

	// Prepare is S6: ACTIVE -> PREPARED with the final dat_tx_time, not forced.
	Prepare(ctx context.Context, d Decision) error

	// Decide is S7, forced: PREPARED -> COMMITTED, on d.Lease's fence if there
	// is one. With d.WithPrepare S6 goes before it in the same request.
	Decide(ctx context.Context, d Decision) error

	// Abort makes sure that txn is never committed: ACTIVE or PREPARED ->
	// ABORTED, or ABORTED inserted when there is no record. It blocks behind a
	// lost request that may still be deciding. It returns the state that
	// stands: StateAborted is acknowledged (and durable if forced, also when it
	// was only found), StateCommitted or StateDone mean that it came too late.
	Abort(ctx context.Context, txn branches.TxnID, durability Durability) (State, error)

	// Read returns the record with its payloads. ErrNotFound when there is none.
	Read(ctx context.Context, txn branches.TxnID) (Record, error)

	// Release gives the place back. A second call does nothing, and any other
	// call after it is an error.
	Release()
}

// Durability of a write.
type Durability int

// A write is either forced to the disk before it is acknowledged, or may be
// lost in a crash of the journal's server (presumed abort makes that safe).
const (
	Unforced Durability = iota
	Forced
)

// Decision is what S6 and S7 write.
type Decision struct {
	Txn         branches.TxnID
	TxTime      hlc.Time
	WithPrepare bool
	// Lease is the name of the lease that the commit stands under, empty for none.
	// S7 applies only while the lease's row carries Fence, checked and locked in
	// the same statement; else *Fenced.
	Lease string
	Fence Fence
	// Step is recorded by S7: both apply or neither does; else *Superseded. nil
	// for none.
	Step *StepRecord
}

// Filter selects records for Scan. The zero Filter selects none.
type Filter struct {
	States        []State
	UpdatedBefore time.Time // by the journal's clock; zero for any
	After         branches.TxnID
	TxTimeAbove   hlc.Time
	Limit         int // 0 is no limit
}

// Identity is what a journal says of itself.
type Identity struct {
	ID     string         // random, made by init
	Place  branches.Place // where init or adopt found it
	Here   branches.Place // where its server says that it is now
	Layout int            // version of its tables
}

// Moved reports whether the journal is not where it was made or adopted: a
// dump restored elsewhere, a copy, or a server that was upgraded. Nobody may
// sweep with it before a person has adopted it.
func (i Identity) Moved() bool { return i.Place != i.Here }

// Registered is a store's entry: the name is bound to one place.
type Registered struct {
	Name    string
	Place   branches.Place
	StoreID string
	Sweeps  int64
}

// Registry binds store names to places, and counts sweeps, so that a copied or
// restored journal is found out before it rolls anything back.
type Registry interface {
	// Identify reads the journal's own row. branches.ErrNotInstalled when there is none.
	Identify(ctx context.Context) (Identity, error)
	// Stores lists the registered stores.
	Stores(ctx context.Context) ([]Registered, error)
	// Register inserts the entry if the name is free, and returns the one that
	// now stands.
	Register(ctx context.Context, r Registered) (Registered, error)
	// Rebind replaces old by r where old still stands, and reports whether it
	// did (rhizorecover adopt).
	Rebind(ctx context.Context, old, r Registered) (bool, error)
	// RaiseSweeps raises a store's counter from the value read to one more,
	// forced; *Conflict when another worker was first.
	RaiseSweeps(ctx context.Context, name string, from int64) (int64, error)
}

// Adopter is a journal that can be given a new place by a person's decision.
type Adopter interface {
	// Adopt records place as the journal's own.
	Adopt(ctx context.Context, place branches.Place) error
}

// Compactor removes final records.
type Compactor interface {
	// Removable lists at most limit final records unchanged since before,
	// oldest first, without payloads.
	Removable(ctx context.Context, before time.Time, limit int) ([]Record, error)
	// Remove deletes the final ones among txns, after raising the horizon to
	// the newest of them, in one forced write. It returns how many it deleted.
	Remove(ctx context.Context, txns []branches.TxnID) (int, error)
	// Horizon is the newest dat_txn time that compaction ever removed; the zero
	// time when it never did.
	Horizon(ctx context.Context) (time.Time, error)
}

// Timekeeper is a journal that keeps the clock's high-water mark and can tell
// its own time.
type Timekeeper interface {
	// HighWater returns the highest dat_tx_time the journal knows of.
	HighWater(ctx context.Context) (hlc.Time, error)
	// Clock returns the journal's own wall clock.
	Clock(ctx context.Context) (time.Time, error)
}
