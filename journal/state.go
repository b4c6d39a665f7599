package journal

import (
	"fmt"
	"slices"
)

// State of a record. The text is format: it is what the journal's table holds.
type State string

// The states of the seeds.
const (
	StateActive    State = "ACTIVE"
	StatePrepared  State = "PREPARED"
	StateCommitted State = "COMMITTED"
	StateDone      State = "DONE"
	StateAborted   State = "ABORTED"
)

// States lists every state in the order of a record's life.
var States = []State{StateActive, StatePrepared, StateCommitted, StateDone, StateAborted}

// transitions is the only list of legal changes. The WHERE clauses of the
// journals' statements are made from it, and the diagram in docs/journal.md is
// printed from it.
var transitions = []struct{ from, to State }{
	{StateActive, StatePrepared},
	{StateActive, StateAborted},
	{StatePrepared, StateCommitted},
	{StatePrepared, StateAborted},
	{StateCommitted, StateDone},
}

// initial lists the states a record may be born in. ABORTED is a record that
// forbids a commit whose own record was never seen (docs/adr).
var initial = []State{StateActive, StateAborted}

// ParseState reads a state as the table holds it.
func ParseState(s string) (State, error) {
	if slices.Contains(States, State(s)) {
		return State(s), nil
	}
	return "", fmt.Errorf("rhizodat: parse journal state: %q is none of %v", s, States)
}

func (s State) String() string { return string(s) }

// Final reports whether a record in this state never changes again.
func (s State) Final() bool { return s == StateDone || s == StateAborted }

// Decided reports whether the meta-transaction is committed.
func (s State) Decided() bool { return s == StateCommitted || s == StateDone }

// Initial reports whether a record may be born in this state.
func (s State) Initial() bool { return slices.Contains(initial, s) }

// To reports whether a record may change from s to next.
func (s State) To(next State) bool {
	return slices.ContainsFunc(transitions, func(t struct{ from, to State }) bool {
		return t.from == s && t.to == next
	})
}

// Sources lists the states from which a record may change to s.
func Sources(s State) []State {
	var from []State
	for _, t := range transitions {
		if t.to == s {
			from = append(from, t.from)
		}
	}
	return from
}
