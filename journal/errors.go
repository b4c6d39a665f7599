package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

// ErrNotFound means that the journal has no record of that id.
var ErrNotFound = errors.New("rhizodat: read journal record: no such record")

// ErrClosed means that the journal was closed.
var ErrClosed = errors.New("rhizodat: take journal session: the journal is closed")

// ErrFull means that a record is larger than the journal takes.
var ErrFull = errors.New("rhizodat: write journal record: record too large")

// Conflict is a refused compare-and-set: the record was not in the state the
// writer expected (JournalConflict in the seeds).
type Conflict struct {
	Txn   branches.TxnID // zero where what was refused is not a record: a sweep counter
	To    State          // the state that was to be written; empty for a change that keeps it
	Found State          // what stands instead; empty when there is no record or it was not read
}

func (e *Conflict) Error() string {
	found := e.Found.String()
	if e.Found == "" {
		found = "another state or no record"
	}
	switch {
	case e.Txn.IsZero():
		return "rhizodat: change journal: another writer was first"
	case e.To == "":
		return fmt.Sprintf("rhizodat: change journal record %s: another version of it stands: found %s", e.Txn, found)
	}
	return fmt.Sprintf("rhizodat: change journal record %s to %s: found %s", e.Txn, e.To, found)
}

// Drift means that the caller's clock is too far from the journal's: staleness is
// judged by such clocks. Nothing was written.
type Drift struct {
	Caller, Journal time.Time
	Max             time.Duration
}

func (e *Drift) Error() string {
	return fmt.Sprintf("rhizodat: write journal record: this host's clock (%s) and the journal's (%s) are more than max_clock_drift=%s apart; mend the clock",
		e.Caller.UTC().Format(time.RFC3339Nano), e.Journal.UTC().Format(time.RFC3339Nano), e.Max)
}

// Kind is Permanent: a clock does not mend itself between two tries.
func (e *Drift) Kind() branches.Kind { return branches.Permanent }

// Layout means that the journal's tables have a version that this program cannot
// use.
type Layout struct{ Found, Known int }

func (e *Layout) Error() string {
	if e.Found > e.Known {
		return fmt.Sprintf("rhizodat: open journal: its layout is version %d, this program knows up to %d: use a newer rhizodat", e.Found, e.Known)
	}
	return fmt.Sprintf("rhizodat: open journal: its layout is version %d, this program needs %d: run rhizorecover init to upgrade it", e.Found, e.Known)
}

// Kind is Permanent: only an upgrade helps.
func (e *Layout) Kind() branches.Kind { return branches.Permanent }

// Damaged names a record that this program cannot read. Nothing may be concluded
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

// Kind is Permanent: it takes a person or a newer program.
func (e *Damaged) Kind() branches.Kind { return branches.Permanent }

// Wrap is for adapters: it says of an error, once, what was being done. Nil, and
// the errors of this package that say it themselves, pass.
func Wrap(doing string, err error) error {
	var (
		conflict   *Conflict
		drift      *Drift
		layout     *Layout
		fenced     *Fenced
		superseded *Superseded
		unfit      *Unfit
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &conflict), errors.As(err, &drift), errors.As(err, &layout),
		errors.As(err, &fenced), errors.As(err, &superseded), errors.As(err, &unfit),
		errors.Is(err, ErrNotFound), errors.Is(err, ErrFull):
		return err
	}
	return fmt.Errorf("rhizodat: %s: %w", doing, err)
}
