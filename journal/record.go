package journal

import (
	"encoding/json"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Record is one meta-transaction in the journal.
type Record struct {
	Txn       branches.TxnID
	State     State
	TxTime    hlc.Time
	Branches  []Branch
	CreatedMS int64  // coordinator's wall clock at S4
	UpdatedMS int64  // raised by every change; with State, the record's version
	Lease     string // empty for none
	Fence     Fence
	Note      Note
}

// Ref is branch b of the record as its store knows it.
func (r Record) Ref(b Branch) branches.Ref {
	return branches.Ref{
		Txn: r.Txn, Store: b.Store, GID: b.GID,
		TwoPhase: b.TwoPhase, TxTime: r.TxTime, Payload: b.Payload,
	}
}

// Outcome is how one branch was ended otherwise than by the protocol. The text
// is format.
type Outcome string

// The outcomes. The empty Outcome is the normal one.
const (
	OutcomeNormal    Outcome = ""
	OutcomeHeuristic Outcome = "heuristic" // the store had resolved it the other way
	OutcomeApplied   Outcome = "applied"   // a person said that it is done
	OutcomeSkipped   Outcome = "skipped"   // a person gave it up
)

// Settled reports whether nobody will finish this branch any more.
func (o Outcome) Settled() bool { return o == OutcomeApplied || o == OutcomeSkipped }

// Branch is one entry of a record's branches. Keys that this version does not
// know are kept.
type Branch struct {
	Store    string
	GID      branches.GID
	TwoPhase bool
	Payload  []byte
	Outcome  Outcome
	Reason   string // who and why, for an outcome that a person gave
	extra    map[string]json.RawMessage
	stored   ending // as it was read
}

type ending struct {
	outcome Outcome
	reason  string
}

// Amended reports whether outcome or reason are not those that were read. A
// journal asks it, so that a note can be written without the payloads.
func (b Branch) Amended() bool { return b.stored != ending{b.Outcome, b.Reason} }

// Note is what the record carries beside the seeds' columns. Keys that this
// version does not know are kept. The zero Note is not written.
type Note struct {
	Claim   *Claim
	Remarks []Remark
	extra   map[string]json.RawMessage
}

// IsZero reports whether there is nothing to write.
func (n Note) IsZero() bool { return n.Claim == nil && len(n.Remarks) == 0 && len(n.extra) == 0 }

// Claim says who is rolling the record forward. It spares work; it is not what
// makes finishing safe.
type Claim struct {
	Holder  string `json:"holder"`
	Fence   int64  `json:"fence"`
	UntilMS int64  `json:"until_ms"`
}

// Remark is a line of the record's history that a person or worker left.
type Remark struct {
	AtMS int64  `json:"at_ms"`
	Who  string `json:"who"`
	Text string `json:"text"`
}
