package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

// ErrNotFound: the journal has no record of that id.
var ErrNotFound = errors.New("rhizodat: read journal record: no such record")

// ErrFull: a record is larger than the journal takes.
var ErrFull = errors.New("rhizodat: write journal record: record too large")

// Conflict is a refused compare-and-set: the record was not in the state the
// writer expected (JournalConflict in the seeds).
type Conflict struct {
	Txn   branches.TxnID
	To    State // the state that was to be written; empty for a change that keeps it
	Found State // what stands instead; empty when there is no record or it was not read
}

func (e *Conflict) Error() string {
	found := e.Found
	if found == "" {
		found = "another version or no record"
	}
	return fmt.Sprintf("rhizodat: change journal record %s to %s: found %s", e.Txn, e.To, found)
}

// Drift: the coordinator's clock is too far from the journal's.
type Drift struct {
	Caller, Journal time.Time
	Max             time.Duration
}

func (e *Drift) Error() string {
	return fmt.Sprintf("rhizodat: write journal record: this host's clock (%s) and the journal's (%s) are more than max_clock_drift=%s apart; mend the clock",
		e.Caller.UTC().Format(time.RFC3339Nano), e.Journal.UTC().Format(time.RFC3339Nano), e.Max)
}

// Kind: a clock does not mend itself between two tries.
func (e *Drift) Kind() branches.Kind { return branches.Permanent }

// Layout: the journal's tables have a version that this program cannot use.
type Layout struct{ Found, Known int }

func (e *Layout) Error() string {
	if e.Found > e.Known {
		return fmt.Sprintf("rhizodat: open journal: its layout is version %d, this program knows up to %d: use a newer rhizodat", e.Found, e.Known)
	}
	return fmt.Sprintf("rhizodat: open journal: its layout is version %d, this program needs %d: run rhizorecover init to upgrade it", e.Found, e.Known)
}

// Kind: only an upgrade helps.
func (e *Layout) Kind() branches.Kind { return branches.Permanent }

// Damaged: a record that this program cannot read. Nothing may be concluded
// about its transaction, and it does not hide the others.
type Damaged struct {
	Text string // its dat_txn as the journal holds it
	Err  error
}

func (e *Damaged) Error() string {
	return fmt.Sprintf("rhizodat: read journal record %q: %v", e.Text, e.Err)
}

// Unwrap returns what was wrong with it.
func (e *Damaged) Unwrap() error { return e.Err }

// Kind: it takes a person or a newer program.
func (e *Damaged) Kind() branches.Kind { return branches.Permanent }
