package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Step of the commit protocol. Its number is its one name everywhere.
type Step int

// The steps; see the package comment of protocol.go.
const (
	_   Step = iota
	S1       // begin
	S2       // work
	S3       // stage
	S4       // journal ACTIVE
	S5       // prepare
	S6       // journal PREPARED
	S7       // decide
	S8       // release
	S9       // roll forward
	S10      // done
)

func (s Step) String() string { return fmt.Sprintf("S%d", int(s)) }

// Moment of a step.
type Moment int

// A step is observed before its first request is sent and after its last
// answer has come.
const (
	Before Moment = iota
	After
)

func (m Moment) String() string {
	if m == Before {
		return "before"
	}
	return "after"
}

// StepEvent is one moment of one step. With a Store it is that store's part of
// the step, without it the step as a whole.
type StepEvent struct {
	Txn    branches.TxnID
	Step   Step
	Moment Moment
	Store  string
	Err    error // of After
}

// Point is the event's name in traces and crash tables: S5.before, S8.after:a.
func (e StepEvent) Point() string {
	p := e.Step.String() + "." + e.Moment.String()
	if e.Store != "" {
		p += ":" + e.Store
	}
	return p
}

// OutcomeEvent is the end of one unit.
type OutcomeEvent struct {
	Outcome
	Took time.Duration
	// LockWindow is the time from the last answer to PREPARE to the last answer
	// to COMMIT PREPARED; 0 when nothing was prepared.
	LockWindow time.Duration
	// Conflict: the journal refused a write of this coordinator.
	Conflict bool
}

// Observer sees every step of every unit. Its methods are called synchronously,
// from several goroutines at once, and hold up the commit while they run.
// A nil Observer sees nothing.
type Observer interface {
	Step(ctx context.Context, e StepEvent)
	Outcome(ctx context.Context, e OutcomeEvent)
}

// Splitter is an Observer that wants to see S6 and S7 apart: with true they are
// written as two requests instead of one.
type Splitter interface{ SplitDecision() bool }
