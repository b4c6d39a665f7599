package rhizodat

import (
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// What Commit returns, and what an observer sees; see package coordinator.
type (
	// CommittedPending means committed: recovery finishes the rest.
	CommittedPending = coordinator.CommittedPending
	// InDoubt means unknown here, recovery decides.
	InDoubt = coordinator.InDoubt
	// Aborted means that nothing took effect.
	Aborted = coordinator.Aborted
	// StoreFull is found inside an Aborted.
	StoreFull = coordinator.StoreFull
	// Heuristic means decided, but a store had resolved its branch the other way.
	Heuristic = coordinator.Heuristic
	// JournalConflict is found inside an Aborted: recovery was first.
	JournalConflict = journal.Conflict
	// Outcome is how a unit ended.
	Outcome = coordinator.Outcome
	// Verdict is the word for it.
	Verdict = coordinator.Verdict
	// Observer sees every step of every unit.
	Observer = coordinator.Observer
	// StepEvent is one moment of one step.
	StepEvent = coordinator.StepEvent
	// OutcomeEvent is the end of one unit.
	OutcomeEvent = coordinator.OutcomeEvent
	// TxnID is a dat_txn.
	TxnID = branches.TxnID
	// Time is a dat_tx_time.
	Time = hlc.Time
	// Kind of an error.
	Kind = branches.Kind
)

// The verdicts.
const (
	VerdictNone      = coordinator.VerdictNone
	VerdictCommitted = coordinator.VerdictCommitted
	VerdictPending   = coordinator.VerdictPending
	VerdictAborted   = coordinator.VerdictAborted
	VerdictInDoubt   = coordinator.VerdictInDoubt
	VerdictHeuristic = coordinator.VerdictHeuristic
)

// The kinds of errors.
const (
	Permanent  = branches.Permanent
	Transient  = branches.Transient
	Full       = branches.StoreFull
	Constraint = branches.Constraint
	Invalid    = branches.Invalid
)

// ErrNoJournal means that a unit has written to several stores and there is no journal.
var ErrNoJournal = coordinator.ErrNoJournal

// ErrNotInstalled means that a store or the journal lacks our tables.
var ErrNotInstalled = branches.ErrNotInstalled

// ParseTxnID reads a dat_txn.
func ParseTxnID(s string) (TxnID, error) { return branches.ParseTxnID(s) }

// IsCommitted reports whether err, from Commit, means that the unit is
// committed: nil, or *CommittedPending.
func IsCommitted(err error) bool { return coordinator.IsCommitted(err) }

// IsRetryable reports whether err, from Commit or from a statement of a lost
// session, means that nothing took effect and that running the whole unit again
// may succeed. Run and Retry also know it of every store's own errors.
func IsRetryable(err error) bool {
	var lost *LostSession
	return coordinator.IsRetryable(err) || errors.As(err, &lost)
}
