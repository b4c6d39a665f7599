package trace

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Rule is what a Violation breaks. The first four are the invariants of the
// package comment in protocol.go.
type Rule string

// The rules.
const (
	I1       Rule = "I1"       // ACTIVE acknowledged before the first PREPARE is sent
	I2       Rule = "I2"       // COMMITTED acknowledged, or read, hardened and read, before the first release
	I3       Rule = "I3"       // no branch is touched after InDoubt
	I4       Rule = "I4"       // nothing is rolled back after the decision, and nothing looks worth re-running
	AllReady Rule = "ready"    // S7 is sent only when every branch has answered S5
	Presumed Rule = "presumed" // who did not run the unit, or has sent S7, rolls back on a forced ABORTED only
	Guarded  Rule = "guarded"  // a branch that wrote nothing is ended last
	Finished Rule = "finished" // DONE only when every branch has committed
	Late     Rule = "late"     // no S7 applies with a fence below the highest that was granted
	Truth    Rule = "truth"    // the reported outcome is what happened
	Whole    Rule = "whole"    // all branches or none
)

// Violation is one broken rule.
type Violation struct {
	Rule Rule
	Txn  branches.TxnID
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Rule, v.Txn, v.Text) }

// Check judges a trace. skipped are the stores whose branches a person has
// given up: they alone may be rolled back after the decision.
func Check(events []Event, skipped ...string) []Violation {
	c := checker{units: map[branches.TxnID]*unit{}, hardens: map[int][]*view{}, skipped: map[string]bool{}, fences: map[string]journal.Fence{}}
	for _, store := range skipped {
		c.skipped[store] = true
	}
	for _, e := range events {
		c.event(e)
	}
	return c.found
}

type checker struct {
	units   map[branches.TxnID]*unit
	hardens map[int][]*view // what each HARDEN under way will make durable
	skipped map[string]bool
	fences  map[string]journal.Fence // the highest granted
	found   []Violation
}

// unit is what the trace has shown of one meta-transaction.
type unit struct {
	owner     string // the process that runs it
	votes     map[string]branches.Vote
	ready     map[string]bool // has answered S5
	released  map[string]bool // its S8 is over, whatever it said
	committed map[string]bool // in fact
	byItself  map[string]bool // the store has committed it by itself
	settled   bool            // the one writer's COMMIT is known to have happened
	decided   bool            // in fact, and durable
	soft      bool            // in fact, and a crash may still take it back
	sentS7    bool
	views     map[string]*view
	end       *coordinator.Outcome
}

// view is what one process knows of a unit.
type view struct {
	active    bool // its ACTIVE was acknowledged
	read      bool // COMMITTED was read
	hardened  bool // the journal was hardened after that
	committed bool // COMMITTED was acknowledged to it, or read after that again
	aborted   bool // ABORTED was acknowledged to it, forced
}

func (c *checker) unit(e Event) *unit {
	u := c.units[e.Txn]
	if u == nil {
		u = &unit{
			votes: map[string]branches.Vote{}, ready: map[string]bool{}, released: map[string]bool{},
			committed: map[string]bool{}, byItself: map[string]bool{}, views: map[string]*view{},
		}
		c.units[e.Txn] = u
	}
	return u
}

func (u *unit) view(proc string) *view {
	if u.views[proc] == nil {
		u.views[proc] = &view{}
	}
	return u.views[proc]
}

func (u *unit) writers() []string {
	var names []string
	for store, vote := range u.votes {
		if vote != branches.VoteReadOnly {
			names = append(names, store)
		}
	}
	return names
}

func (c *checker) fail(e Event, rule Rule, format string, args ...any) {
	c.found = append(c.found, Violation{Rule: rule, Txn: e.Txn, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) event(e Event) {
	u := c.unit(e)
	switch e.What {
	case Sent:
		if e.Actor == Journal {
			c.sentToJournal(e, u)
		} else {
			c.sentToStore(e, u)
		}
	case Took:
		c.took(e, u)
	case Replied:
		if e.Actor == Journal {
			c.journalReplied(e, u)
		} else {
			c.storeReplied(e, u)
		}
	case Ended:
		c.ended(e, u)
	case Crashed:
		for _, other := range c.units {
			other.soft = false
		}
	case Point: // S8 of a stopped program may be over without having been sent
		if e.Step.Step == coordinator.S8 && e.Step.Moment == coordinator.After && e.Step.Store != "" {
			u.released[e.Step.Store] = true
		}
	case Granted:
		c.fences[e.Lease] = max(c.fences[e.Lease], e.Fence)
	case Told:
	}
}

func (c *checker) sentToJournal(e Event, u *unit) {
	switch e.Op {
	case Create:
		u.owner = e.Proc
	case Decide:
		u.sentS7 = true
		for store, vote := range u.votes {
			if vote != branches.VoteApply && !u.ready[store] {
				c.fail(e, AllReady, "S7 was sent before %s had answered S5", store)
			}
		}
	case Harden:
		for _, other := range c.units {
			if v := other.view(e.Proc); v.read {
				c.hardens[e.Call] = append(c.hardens[e.Call], v)
			}
		}
	}
}

func (c *checker) journalReplied(e Event, u *unit) {
	if e.Err != nil {
		return
	}
	v := u.view(e.Proc)
	switch e.Op {
	case Create:
		v.active = true
	case Decide:
		v.committed = true
	case Forbid, Read:
		v.saw(e.State)
		v.aborted = v.aborted || e.Op == Forbid && e.Forced && e.State == journal.StateAborted
	case Scan:
		for _, txn := range e.Decided {
			c.unit(Event{Txn: txn}).view(e.Proc).saw(journal.StateCommitted)
		}
	case Harden:
		for _, v := range c.hardens[e.Call] {
			v.hardened = true
		}
	}
}

func (v *view) saw(state journal.State) {
	if state.Decided() {
		v.committed = v.committed || v.hardened
		v.read = true
	}
}

func (c *checker) sentToStore(e Event, u *unit) {
	v := u.view(e.Proc)
	if u.owner == "" && e.Own {
		u.owner = e.Proc
	}
	if u.end != nil && u.end.Verdict == coordinator.VerdictInDoubt && e.Proc == u.owner {
		c.fail(e, I3, "%s %s was sent after InDoubt", e.Actor, e.Op)
		return
	}
	switch e.Op {
	case Prepare:
		if !v.active {
			c.fail(e, I1, "PREPARE was sent to %s before ACTIVE was acknowledged", e.Actor)
		}
	case Finish:
		if !v.committed {
			c.fail(e, I2, "%s was released before COMMITTED was acknowledged", e.Actor)
		}
	case Abort, Rollback:
		c.takenBack(e, u, v)
	case Commit:
		c.committedInOnePhase(e, u, v)
	}
}

func (c *checker) takenBack(e Event, u *unit, v *view) {
	switch {
	case c.skipped[e.Actor]:
	case v.committed || v.read && !v.aborted: // a decision that was only read may be lost in a crash
		c.fail(e, I4, "%s %s was sent after the decision was known", e.Actor, e.Op)
	case e.Proc == u.owner && !u.sentS7: // nobody can decide it any more
	case !v.aborted:
		c.fail(e, Presumed, "%s %s was sent without a forced ABORTED", e.Actor, e.Op)
	}
}

func (c *checker) committedInOnePhase(e Event, u *unit, v *view) {
	writers := u.writers()
	switch {
	case u.votes[e.Actor] != branches.VoteReadOnly:
		if len(writers) > 1 {
			c.fail(e, I2, "%s was committed in one phase beside other writers", e.Actor)
		}
	case len(writers) == 1 && !v.active && !u.settled:
		c.fail(e, Guarded, "%s was ended before the writer was", e.Actor)
	case len(writers) > 1, len(writers) == 1 && v.active:
		if !v.committed {
			c.fail(e, Guarded, "%s was ended before the decision", e.Actor)
		}
		for _, store := range writers {
			if u.votes[store] == branches.VotePrepare && !u.released[store] {
				c.fail(e, Guarded, "%s was ended before %s had answered S8", e.Actor, store)
			}
		}
	}
}

func (c *checker) storeReplied(e Event, u *unit) {
	switch e.Op {
	case Stage:
		if e.Err == nil {
			u.votes[e.Actor] = e.Vote
		}
	case Prepare, Ping:
		u.ready[e.Actor] = u.ready[e.Actor] || e.Err == nil
	case Commit:
		u.settled = u.settled || e.Err == nil && u.votes[e.Actor] != branches.VoteReadOnly
	case Settle:
		u.settled = u.settled || e.Err == nil && u.committed[e.Actor]
	}
}

func (c *checker) took(e Event, u *unit) {
	if e.Err != nil {
		return
	}
	if e.Op == Decide && e.Fence < c.fences[e.Lease] {
		c.fail(e, Late, "S7 applied with fence %d of %s, and %d was granted", e.Fence, e.Lease, c.fences[e.Lease])
	}
	if e.Actor == Journal && e.Forced && !e.Soft && (e.Op != Forbid || !e.State.Decided()) {
		for _, other := range c.units { // a forced write takes along what was written before it
			other.decided = other.decided || other.soft
		}
	}
	switch {
	case e.Op == Decide && e.Soft:
		u.soft = true
	case e.Op == Decide:
		u.decided = true
		if u.end != nil && u.end.Verdict == coordinator.VerdictAborted {
			c.fail(e, Truth, "it was decided after it had been reported aborted")
		}
	case e.Op == Done && e.State == journal.StateDone:
		for _, store := range u.writers() {
			if !u.committed[store] && !c.skipped[store] {
				c.fail(e, Finished, "DONE was written and %s has not committed", store)
			}
		}
	case !e.Wrote:
	case e.Op == Finish || e.Op == Commit:
		u.committed[e.Actor], u.byItself[e.Actor] = true, e.Proc == ""
		if u.end != nil && u.end.Verdict == coordinator.VerdictAborted && e.Proc != "" {
			c.fail(e, Truth, "%s committed after the unit had been reported aborted", e.Actor)
		}
	case e.Op == Abort || e.Op == Rollback:
		if u.decided && e.Proc != "" && !c.skipped[e.Actor] {
			c.fail(e, I4, "%s was rolled back after the decision", e.Actor)
		}
	}
}

func (c *checker) ended(e Event, u *unit) {
	u.end = &e.End
	committed, byItself := 0, 0
	for _, store := range u.writers() {
		if u.committed[store] {
			committed++
		}
		if u.byItself[store] {
			byItself++
		}
	}
	switch e.End.Verdict {
	case coordinator.VerdictCommitted:
		if committed != len(u.writers()) {
			c.fail(e, Truth, "reported committed with %d of %d branches committed", committed, len(u.writers()))
		}
	case coordinator.VerdictPending:
		if !u.decided {
			c.fail(e, Truth, "reported pending and nothing was decided")
		}
	case coordinator.VerdictAborted:
		if u.decided || committed > byItself { // a store that does not answer may have, unseen
			c.fail(e, Truth, "reported aborted, decided %t, branches committed %d", u.decided, committed)
		}
	case coordinator.VerdictNone:
		c.fail(e, Truth, "no outcome was reported")
	case coordinator.VerdictInDoubt, coordinator.VerdictHeuristic:
	}
	if looks := looksRetryable(e.End.Err); e.End.Verdict != coordinator.VerdictAborted && looks != "" {
		c.fail(e, I4, "reported %s with an error that looks like %s", e.End.Verdict, looks)
	}
	if errors.Is(e.End.Err, driver.ErrBadConn) {
		c.fail(e, I4, "reported driver.ErrBadConn")
	}
}

// looksRetryable names what a loop that knows nothing of us would run err again for.
func looksRetryable(err error) string {
	var network net.Error
	var state interface{ SQLState() string }
	switch {
	case coordinator.IsRetryable(err):
		return "IsRetryable"
	case errors.Is(err, driver.ErrBadConn):
		return "driver.ErrBadConn"
	case errors.Is(err, context.DeadlineExceeded):
		return "context.DeadlineExceeded"
	case errors.As(err, &network):
		return "net.Error"
	case errors.As(err, &state):
		return "SQLState"
	}
	return ""
}
