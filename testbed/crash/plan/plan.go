// Package plan is what the crash tests tell their child program to do, and what
// it tells them.
package plan

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Env names the environment variable that holds a Plan; RHIZODAT_DSN has the DSN.
const Env = "RHIZODAT_CRASH_PLAN"

// Txn stands for the unit's dat_txn in a statement of Work.
const Txn = "{txn}"

// Plan of one child: one unit.
type Plan struct {
	// Before are statements of the session, run before the unit begins.
	Before []string
	// Work are the unit's statements; with none there is no unit. "book STORE N" books in a payload store a
	// row of a unit that writes in N stores; "append STORE N ROWS" appends rows of
	// such a unit to the ledger of a store that takes them in bulk, and one more
	// word names a column for the dat_txn.
	Work []string
	// Then is the work of a second unit of the same session.
	Then []string
	// Point is where the child says "at" and waits. Empty: nowhere.
	Point string
	// Split writes S6 and S7 as two requests.
	Split bool
	// Spoil names a store whose transaction fails behind the driver's back at
	// S5.before:STORE, so that PREPARE TRANSACTION answers ROLLBACK, or raises
	// where the work of S3 goes with it.
	Spoil string
	// Lease is acquired before the unit begins, which is then under it. Empty: none.
	Lease string
	// Step is the execution of a once-only step, whose effect is the unit; or, with
	// Asks, a request there. Empty: none.
	Step string
	Asks string
}

// The points of Lease and Step, beside those of the unit's own steps.
const (
	PointGranted  = "lease.after"  // before S1
	PointClaimed  = "claim.after"  // the first thing in the effect
	PointEffect   = "effect.after" // the last thing in it
	PointRecorded = "record.after"
)

// Encode makes the environment entry.
func (p Plan) Encode() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and booleans always have a JSON form
	}
	return Env + "=" + string(text)
}

// Read is what the child was told.
func Read() (p Plan, err error) {
	if err := json.Unmarshal([]byte(os.Getenv(Env)), &p); err != nil {
		return p, fmt.Errorf("read %s: %w", Env, err)
	}
	return p, nil
}

// The words that a line of the child begins with.
const (
	WordTxn     = "txn"     // its dat_txn
	WordAt      = "at"      // the point
	WordOutcome = "outcome" // an Outcome
)

// Outcome is what the child's Commit told it.
type Outcome struct {
	Verdict  string
	Conflict bool // the journal refused a write of the child's coordinator
	Error    string

	Fence      int64  // of its lease
	Fenced     bool   // the lease was another's when it was to be decided
	Value      string // of its step
	Superseded bool   // another owner had the step
}

// Line is the outcome as a line.
func (o Outcome) Line() string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // as above
	}
	return WordOutcome + " " + string(text)
}

// ParseOutcome reads what stands behind WordOutcome.
func ParseOutcome(text string) (o Outcome, err error) {
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return o, fmt.Errorf("read outcome: %w", err)
	}
	o.Error = strings.ReplaceAll(o.Error, "\n", " ")
	return o, nil
}
