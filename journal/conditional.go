package journal

import (
	"context"
	"fmt"
)

// Conditional is a journal that also keeps leases and steps. Under both lies one
// primitive, the linearizable conditional write: create-if-absent,
// replace-if-version, replace-if-fence. Each is ONE statement, forced, and the
// count of the rows it changed is the answer; what is read beside it explains an
// answer and never makes one.
//
// Expiry is judged inside the statement by the journal's own clock, never by a
// caller's "now": a row with an expiry e is lapsed once now >= e.
//
// Before the first write of either the primitive is proved by [Probe], and the
// journal refused with *Unfit where it does not hold; who only reads is not asked
// for the right to write. What the methods return is safe for concurrent use, and
// lives as long as the journal.
type Conditional interface {
	Leases(ctx context.Context) (Leases, error)
	Steps(ctx context.Context) (Steps, error)
}

// Answer of a conditional write. Three results that are never mixed. The zero
// Answer proves nothing.
type Answer int

// The answers. AnswerUnknown comes with the error of a lost reply (read back and
// compare with what was sent), or with none where another transaction held the
// row for a moment and nothing was tried.
const (
	AnswerUnknown Answer = iota
	AnswerLost           // refused: nothing has changed
	AnswerWon            // applied, and durable
)

func (a Answer) String() string {
	switch a {
	case AnswerUnknown:
		return "unknown"
	case AnswerLost:
		return "lost"
	case AnswerWon:
		return "won"
	}
	return "unknown"
}

// AnswerOf is the answer of a statement that says whether it applied.
func AnswerOf(won bool, err error) Answer {
	switch {
	case err != nil:
		return AnswerUnknown
	case won:
		return AnswerWon
	}
	return AnswerLost
}

// Unfit means that a journal's conditional writes do not do what everything here
// rests on: a trigger, a rule, a proxy or a kind of replication is in between.
type Unfit struct{ Check string }

func (e *Unfit) Error() string {
	return fmt.Sprintf("rhizodat: probe journal: a conditional write answered wrongly (%s): nothing may rest on this journal", e.Check)
}
