package recovery

import (
	"context"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// The exit codes of one pass, for scripts.
const (
	ExitClean    = 0 // nothing is left
	ExitWorkLeft = 3 // recovery goes on with what is left
	ExitPerson   = 4 // stuck, heuristic or not explained: a person is needed
)

// Observer learns of every pass. It is called synchronously; metrics are made
// of it.
type Observer interface {
	Pass(ctx context.Context, r Report, err error)
}

// Kind of an Item. The text is format (--json).
type Kind string

// The kinds.
const (
	KindStuck         Kind = "stuck"          // decided, and unfinished after alert_after
	KindHeuristic     Kind = "heuristic"      // a store resolved its branch against the decision
	KindUnexplained   Kind = "unexplained"    // ours, without a record, and too old to be presumed aborted
	KindRestored      Kind = "restored"       // prepared although its record is final: a store from an older copy
	KindPending       Kind = "pending"        // not finished yet
	KindFresh         Kind = "fresh"          // changed a moment ago: its coordinator may be alive
	KindClaimed       Kind = "claimed"        // another worker is at it
	KindHeld          Kind = "held"           // a store of it is refused, or none could be reached
	KindNotConfigured Kind = "not configured" // names a store that this DSN lacks
	KindNoRight       Kind = "no right"       // its owner's work this role may not finish
	KindForeign       Kind = "foreign"        // somebody else's: never touched
	KindDamaged       Kind = "damaged"        // a record that cannot be read
)

// Kinds lists every kind.
var Kinds = []Kind{
	KindStuck, KindHeuristic, KindUnexplained, KindRestored, KindPending, KindFresh, KindClaimed,
	KindHeld, KindNotConfigured, KindNoRight, KindForeign, KindDamaged,
}

// Item is one transaction, or one branch of it, that a pass left as it is.
type Item struct {
	Kind  Kind           `json:"kind"`
	Txn   branches.TxnID `json:"dat_txn"`
	Store string         `json:"store,omitempty"`
	GID   branches.GID   `json:"gid,omitempty"`
	State journal.State  `json:"state,omitempty"`
	AgeMS int64          `json:"age_ms,omitempty"`
	Owner string         `json:"owner,omitempty"`
	Text  string         `json:"text,omitempty"`
}

// Standing of a store in a pass. The text is format (--json).
type Standing string

// The standings.
const (
	StandingOK      Standing = "ok"
	StandingDown    Standing = "down"    // could not be reached or listed
	StandingRefused Standing = "refused" // is not the store the journal knows
)

// StoreReport is one store in a pass.
type StoreReport struct {
	Store    string   `json:"store"`
	Standing Standing `json:"standing"`
	Problem  string   `json:"problem,omitempty"`
	Way      string   `json:"way,omitempty"` // the way out
	Listed   int      `json:"listed"`        // prepared transactions with our form of gid
	Foreign  int      `json:"foreign"`       // of these, somebody else's
	OldestMS int64    `json:"oldest_ms"`     // age of the oldest that is ours
	Sweeps   int64    `json:"sweeps"`        // of this store so far
}

// Report is what one pass has done and left.
type Report struct {
	At      time.Time     `json:"at"`
	TookMS  int64         `json:"took_ms"`
	Journal string        `json:"journal"` // its id
	Stores  []StoreReport `json:"stores"`

	RolledBack    int `json:"rolled_back"`    // transactions aborted and taken back
	RolledForward int `json:"rolled_forward"` // transactions that became DONE, or were found finished
	Restored      int `json:"restored"`       // branches that were prepared although their unit is DONE
	Raced         int `json:"raced"`          // decided by their coordinator before this worker could abort them

	// Left are the records that are not final, after the pass.
	Left map[journal.State]int `json:"left"`

	Stuck         int `json:"stuck"`
	Heuristic     int `json:"heuristic"`
	Unexplained   int `json:"unexplained"`
	Pending       int `json:"pending"`
	NotConfigured int `json:"not_configured"`
	NoRight       int `json:"no_right"`
	Foreign       int `json:"foreign"`
	Damaged       int `json:"damaged"`

	OldestLeftMS int64  `json:"oldest_left_ms"` // age of the oldest record that is not final
	Items        []Item `json:"items"`
}

// add puts an item into the list and into its count.
func (r *Report) add(i Item) {
	r.Items = append(r.Items, i)
	switch i.Kind {
	case KindStuck:
		r.Stuck++
	case KindHeuristic:
		r.Heuristic++
	case KindUnexplained:
		r.Unexplained++
	case KindPending, KindHeld, KindClaimed, KindFresh:
		r.Pending++
	case KindNotConfigured:
		r.NotConfigured++
	case KindNoRight:
		r.NoRight++
	case KindForeign:
		r.Foreign++
	case KindDamaged:
		r.Damaged++
	case KindRestored:
		r.Restored++
	}
}

// ExitCode is 0 when nothing is left, 3 when recovery goes on with what is
// left, and 4 when only a person can: stuck, heuristic, not explained, a record
// that cannot be read, a store that is not the one the journal knows.
func (r Report) ExitCode() int {
	left := r.Pending + r.NotConfigured + r.NoRight
	for _, n := range r.Left {
		left += n
	}
	person := r.Stuck + r.Heuristic + r.Unexplained + r.Damaged + r.Restored
	for _, s := range r.Stores {
		switch s.Standing {
		case StandingRefused:
			person++
		case StandingDown:
			left++
		case StandingOK:
		}
	}
	switch {
	case person > 0:
		return ExitPerson
	case left > 0:
		return ExitWorkLeft
	}
	return ExitClean
}
