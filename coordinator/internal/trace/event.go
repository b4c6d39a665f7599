// Package trace records what a commit did, in the order it happened, and
// judges it: the invariants of the protocol are checked on every trace of every
// test, whatever the test itself asks.
package trace

import (
	"sync"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Journal is the Actor of the journal's events; any other name is a store's.
const Journal = "journal"

// Op is a request to a store or to the journal, as the trace calls it.
type Op = string

// The requests to a store.
const (
	Stage    Op = "STAGE"
	Prepare  Op = "PREPARE"  // of a branch that wrote
	Ping     Op = "PING"     // Prepare of a branch that wrote nothing
	Finish   Op = "FINISH"   // COMMIT PREPARED, or the payload's insert
	Abort    Op = "ABORT"    // ROLLBACK PREPARED, or the staged files' removal
	Commit   Op = "COMMIT"   // one phase
	Rollback Op = "ROLLBACK" // of a branch that is not prepared
	Settle   Op = "SETTLE"
	List     Op = "LIST"
)

// The requests to the journal, named after the state they write.
const (
	Create   Op = "ACTIVE"
	Prepared Op = "PREPARED"
	Decide   Op = "COMMITTED"
	Forbid   Op = "ABORTED"
	Done     Op = "DONE"
	Read     Op = "READ"
	Scan     Op = "SCAN"
	Annotate Op = "ANNOTATE"
	Harden   Op = "HARDEN"
)

// What an Event is.
type What int

// The events.
const (
	Sent    What = iota + 1 // a request has left
	Took                    // it has taken effect
	Replied                 // its sender has an answer, or knows that none will come
	Point                   // an observer was called
	Ended                   // Commit has returned
	Crashed                 // the journal's server has lost what was not forced
	Granted                 // a lease was granted
	Told                    // a remark of the test, for the reader
)

// Event is one thing that happened.
type Event struct {
	What  What
	Proc  string // the process it happened in
	Actor string // the store, or Journal
	Op    Op
	Call  int // ties Sent, Took and Replied together
	Txn   branches.TxnID

	Lease   string           // of Granted, and of S7 under one
	Fence   journal.Fence    // of that lease
	Forced  bool             // a write of the journal
	Soft    bool             // of a forced write: visible, and not durable
	Own     bool             // over the branch's own session
	State   journal.State    // what the journal has told or taken on
	Decided []branches.TxnID // of Scan: the records that are
	Vote    branches.Vote    // of Stage
	Wrote   bool             // the branch took a change with it: it prepared, committed or rolled back one
	Err     error
	Step    coordinator.StepEvent
	End     coordinator.Outcome
	Text    string // of Told; of a request, how to call it
}

// Log is a trace that grows. It is safe for concurrent use.
type Log struct {
	mu     sync.Mutex
	events []Event
	calls  int
}

// Add appends e.
func (l *Log) Add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// Send appends a request and numbers it.
func (l *Log) Send(e Event) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	e.What, e.Call = Sent, l.calls
	l.events = append(l.events, e)
	return l.calls
}

// Events returns what has happened so far.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Event(nil), l.events...)
}
