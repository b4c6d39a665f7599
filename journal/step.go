package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

// MaxStepValue is the greatest size of a step's value, in bytes.
const MaxStepValue = 1 << 20

// StepKey names a step: one execution, one label in it, one input.
type StepKey struct {
	Execution string
	Label     string
	Input     string // hash of the input, in hexadecimal
}

func (k StepKey) String() string { return k.Execution + "/" + k.Label + "/" + k.Input }

// Step is a row of dat_step as it stood when it was read: a pending claim, or
// the value that was recorded once.
type Step struct {
	Key      StepKey
	Holder   string // whose claim it is; of a recorded step, who recorded it
	Token    string // of that claim
	Until    time.Time
	Lapsed   bool // by the journal's clock: the claim may be taken over
	Recorded bool
	Value    []byte // nil in listings
	Created  time.Time
	Updated  time.Time // when it was claimed, taken over or recorded
}

// StepRequest is one claim.
type StepRequest struct {
	Key    StepKey
	Holder string
	Token  string        // random, made for this claim alone
	TTL    time.Duration // from the journal's now; 0 is lapsed at once
	// Replaces is the token of the lapsed claim that is to be taken over. Empty:
	// only where there is no row.
	Replaces string
}

// StepRenewal names a claim that is to live on.
type StepRenewal struct {
	Key   StepKey
	Token string
	TTL   time.Duration
}

// StepRecord is the value of a step, on the condition that the claim is still
// the caller's. In a Decision it is recorded by S7 itself.
type StepRecord struct {
	Key   StepKey
	Token string
	Value []byte // nil counts as empty
}

// Steps keeps the claims and values of once-only steps.
//
// INVARIANT J6: a key has at most one recorded value, and it never changes.
type Steps interface {
	// Claim makes the step the caller's: where there is no row, or by replacing
	// the lapsed claim that r names. Lost: the row that stands, with its value.
	Claim(ctx context.Context, r StepRequest) (Step, Answer, error)
	// Renew is Leases.Renew for claims.
	Renew(ctx context.Context, list []StepRenewal) ([]Answer, error)
	// Record records the value where the claim is still r's and nothing is
	// recorded. A claim that has lapsed and was not taken over still counts.
	Record(ctx context.Context, r StepRecord) (Answer, error)
	// Release deletes a claim without a value: the next caller is the first again.
	Release(ctx context.Context, key StepKey, token string) (Answer, error)
	// Get reads one step. ErrNotFound when nobody has claimed it.
	Get(ctx context.Context, key StepKey) (Step, error)
}

// StepLister is implemented by a Steps that can be listed and cleaned up.
type StepLister interface {
	// List calls f for every step, without values, by key. f must not call the
	// journal.
	List(ctx context.Context, f func(Step) error) error
	// Remove deletes at most limit steps unchanged since before, by the
	// journal's clock, recorded ones and those whose claim has lapsed, and
	// returns how many. A key that is removed may run again.
	Remove(ctx context.Context, before time.Time, limit int) (int, error)
}

// Superseded means that a step's claim belongs to another owner now, or that its
// value is recorded already: this owner sends nothing and records nothing any
// more. Inside an *Aborted it means that nothing of the unit took effect.
type Superseded struct{ Key StepKey }

func (e *Superseded) Error() string {
	return fmt.Sprintf("rhizodat: record step %s: the claim is another's now", e.Key)
}

// Kind is Permanent: whoever has the step now will end it.
func (e *Superseded) Kind() branches.Kind { return branches.Permanent }
