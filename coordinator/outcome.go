package coordinator

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Verdict is what is known of a meta-transaction when its Commit or Rollback
// has returned. The zero Verdict is a unit that has not ended.
type Verdict int

// The verdicts.
const (
	VerdictNone      Verdict = iota
	VerdictCommitted         // every branch has committed
	VerdictPending           // decided; recovery finishes the rest. Committed
	VerdictAborted           // nothing took effect and nothing will
	VerdictInDoubt           // unknown here; recovery decides from the journal
	VerdictHeuristic         // decided, but a store had resolved its branch the other way
)

func (v Verdict) String() string {
	switch v {
	case VerdictNone:
		return "none"
	case VerdictCommitted:
		return "committed"
	case VerdictPending:
		return "pending"
	case VerdictAborted:
		return "aborted"
	case VerdictInDoubt:
		return "in doubt"
	case VerdictHeuristic:
		return "heuristic"
	}
	return "none"
}

// Outcome is how one meta-transaction ended. Err is what Commit returns; it is
// nil for VerdictCommitted only.
type Outcome struct {
	DatTxn    branches.TxnID
	DatTxTime hlc.Time
	Verdict   Verdict
	Journaled bool     // the commit protocol ran; false for one phase
	Pending   []string // stores that recovery finishes
	Err       error
}

// Committed reports whether the meta-transaction is committed.
func (o Outcome) Committed() bool {
	return o.Verdict == VerdictCommitted || o.Verdict == VerdictPending
}

// ErrNoJournal says that a unit has written to several stores, and the DSN names no
// journal to coordinate them.
var ErrNoJournal = errors.New("rhizodat: commit several stores: no journal configured: add journal=postgres://… to the DSN (journal=file:///… for development) and run rhizorecover init")

// CommittedPending means that the unit is committed, and that recovery finishes
// the named stores. The unit must never be run again.
//
// It wraps nothing, so that no retry loop mistakes it for its cause; Cause has
// that.
type CommittedPending struct {
	DatTxn    branches.TxnID
	DatTxTime hlc.Time
	Stores    []string
	cause     error
}

func (e *CommittedPending) Error() string {
	return fmt.Sprintf("rhizodat: commit %s: committed; recovery finishes %s: do not run it again", e.DatTxn, strings.Join(e.Stores, ", "))
}

// Cause is what kept the first of the stores from being finished at once.
func (e *CommittedPending) Cause() error { return e.cause }

// InDoubt means that the outcome is unknown here. Recovery decides it from the
// journal (a unit with one writing branch has been decided by its store), and
// rhizodat.Lookup tells it then. The unit must not be run again.
//
// Like CommittedPending it wraps nothing.
type InDoubt struct {
	DatTxn branches.TxnID
	cause  error
}

func (e *InDoubt) Error() string {
	return fmt.Sprintf("rhizodat: commit %s: outcome unknown here, rhizodat.Lookup will tell it: do not run it again", e.DatTxn)
}

// Cause is what made the outcome unknown.
func (e *InDoubt) Cause() error { return e.cause }

// Aborted means that nothing took effect and nothing will. Kind says whether
// the unit may be run again; Err is the store's or journal's own error.
type Aborted struct {
	DatTxn branches.TxnID
	Store  string // the store that refused, empty when none did
	Kind   branches.Kind
	Err    error
}

func (e *Aborted) Error() string {
	if e.Store == "" {
		return fmt.Sprintf("rhizodat: commit %s: aborted (%s): %v", e.DatTxn, e.Kind, e.Err)
	}
	return fmt.Sprintf("rhizodat: commit %s: aborted by store %s (%s): %v", e.DatTxn, e.Store, e.Kind, e.Err)
}

// Unwrap gives the cause to errors.Is and errors.As; never driver.ErrBadConn,
// which would make a caller's loop run the unit again without asking.
func (e *Aborted) Unwrap() error { return withoutBadConn(e.Err) }

// withoutBadConn hides driver.ErrBadConn in err and nothing else. database/sql
// takes it for "not one byte was sent", which no Commit or Rollback can say.
func withoutBadConn(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return &spentError{err}
	}
	return err
}

// spentError answers for what it hides instead of unwrapping it: an ErrBadConn
// may stand beside the error that matters, in one joined error.
type spentError struct{ err error }

func (e *spentError) Error() string { return e.err.Error() }

func (e *spentError) Is(target error) bool {
	return target != driver.ErrBadConn && errors.Is(e.err, target)
}

func (e *spentError) As(target any) bool { return errors.As(e.err, target) }

// PayloadTooLarge is found in an Aborted: a branch's payload exceeds max_payload.
type PayloadTooLarge struct {
	Store     string
	Size, Max int64 // bytes
}

func (e *PayloadTooLarge) Error() string {
	return fmt.Sprintf("rhizodat: stage branch: store %s has a payload of %d bytes, max_payload=%d: write fewer rows in one transaction or raise it", e.Store, e.Size, e.Max)
}

// Kind says that the same work would make the same payload.
func (e *PayloadTooLarge) Kind() branches.Kind { return branches.Permanent }

// StoreFull is found in an Aborted of kind StoreFull.
type StoreFull struct {
	Store string
	Free  int64 // bytes the store reported, -1 when it reported none
	Need  int64 // min_free, 0 when the store itself refused
	err   error
}

func (e *StoreFull) Error() string {
	if e.Need > 0 {
		return fmt.Sprintf("rhizodat: commit: store %s has %d bytes free, min_free asks for %d", e.Store, e.Free, e.Need)
	}
	return fmt.Sprintf("rhizodat: commit: store %s is full", e.Store)
}

// Unwrap gives the store's own error.
func (e *StoreFull) Unwrap() error { return e.err }

// Kind of a full store.
func (e *StoreFull) Kind() branches.Kind { return branches.StoreFull }

// Heuristic means that the unit is decided, but stores had resolved their
// branches the other way. A person ends it with rhizorecover resolve.
type Heuristic struct {
	DatTxn branches.TxnID
	Stores []string // stores that had resolved by themselves
	// Aborted: the decision is to abort, and Stores had committed. False: it is
	// to commit, and they had rolled back.
	Aborted bool
	Pending []string // stores that recovery still finishes
	cause   error
}

func (e *Heuristic) Error() string {
	decision := "committed"
	if e.Aborted {
		decision = "aborted"
	}
	return fmt.Sprintf("rhizodat: commit %s: %s, but %s resolved it the other way: do not run it again, see rhizorecover show %[1]s", e.DatTxn, decision, strings.Join(e.Stores, ", "))
}

// Cause is the evidence of the first of the stores.
func (e *Heuristic) Cause() error { return e.cause }

// causeOf is what an outcome keeps from errors.Is and errors.As.
func causeOf(err error) error {
	if e, ok := err.(interface{ Cause() error }); ok { // the outcome itself, never one inside of another error
		return e.Cause()
	}
	return err
}

// IsCommitted reports whether err, from Commit, means that the unit is committed.
func IsCommitted(err error) bool {
	var pending *CommittedPending
	return err == nil || errors.As(err, &pending)
}

// IsRetryable reports whether err, from Commit, means that nothing took effect
// and that running the whole unit again may succeed.
func IsRetryable(err error) bool {
	var aborted *Aborted
	return errors.As(err, &aborted) && aborted.Kind == branches.Transient
}
