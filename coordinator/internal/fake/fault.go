package fake

import (
	"errors"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
)

// Fault is what happens to one request. The zero Fault is none.
type Fault struct {
	Kind FaultKind
	D    time.Duration // of Slow and Late
	Err  error         // of Refuse; nil is a refusal that is not worth another try
}

// FaultKind is the sort of a Fault.
type FaultKind int

// The faults.
const (
	None       FaultKind = iota // answered as ever
	Slow                        // answered after D
	Refuse                      // answered with Err, nothing happened
	LostBefore                  // no answer, nothing happened
	LostAfter                   // it happened, the answer is lost
	Late                        // the answer is lost, and it happens D later
	Hang                        // no answer as long as its sender waits, nothing happens
	HangAfter                   // it happens, no answer as long as its sender waits
	Soft                        // journal: it happened, is not durable, the answer is lost
)

// Call names one request: the Nth (from 1) of its kind that Proc sends. N 0 is
// every one that has no fault of its own.
type Call struct {
	Proc  string
	Actor string
	Op    trace.Op
	N     int
}

// Script says which requests meet a fault.
type Script map[Call]Fault

// Error is an answer of a fake server, with the kind it is of.
type Error struct {
	Text string
	Sort branches.Kind
}

func (e *Error) Error() string { return e.Text }

// Kind makes branches.Classify find it.
func (e *Error) Kind() branches.Kind { return e.Sort }

// The answers of the fakes.
var (
	ErrRefused  = &Error{Text: "refused", Sort: branches.Permanent}
	ErrLost     = &Error{Text: "connection lost", Sort: branches.Transient}
	ErrBusy     = &Error{Text: "another session is ending it", Sort: branches.Transient}
	ErrTomb     = &Error{Text: "a tombstone stands", Sort: branches.Permanent}
	ErrNoBranch = &Error{Text: "its session is lost", Sort: branches.Transient}
	errKilled   = errors.New("the process is dead")
)

// unsentError: the caller's context had ended before anything was sent.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return "not sent: " + e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }
