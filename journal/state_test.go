package journal_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/journal"
)

var update = flag.Bool("update", false, "rewrite the state diagram of docs/journal.md")

const (
	page         = "../docs/journal.md"
	diagramBegin = "<!-- state diagram: printed by go test ./journal -run TestDiagram -update -->\n"
	diagramEnd   = "<!-- end of state diagram -->"
)

// The seeds' picture, written out: "States and the only legal transitions".
var seeds = map[journal.State][]journal.State{
	journal.StateActive:    {journal.StatePrepared, journal.StateAborted},
	journal.StatePrepared:  {journal.StateCommitted, journal.StateAborted},
	journal.StateCommitted: {journal.StateDone},
	journal.StateDone:      nil,
	journal.StateAborted:   nil,
}

func TestTransitionsAreThoseOfTheSeeds(t *testing.T) {
	if len(journal.States) != len(seeds) {
		t.Fatalf("there are %d states, the seeds have %d", len(journal.States), len(seeds))
	}
	for _, from := range journal.States {
		for _, to := range journal.States {
			want := slices.Contains(seeds[from], to)
			if got := from.To(to); got != want {
				t.Errorf("%s to %s: %t, want %t", from, to, got, want)
			}
			if got := slices.Contains(journal.Sources(to), from); got != want {
				t.Errorf("%s is a source of %s: %t, want %t", from, to, got, want)
			}
		}
		if final := len(seeds[from]) == 0; from.Final() != final {
			t.Errorf("%s is final: %t, want %t", from, from.Final(), final)
		}
	}
}

func TestStates(t *testing.T) {
	for _, tc := range []struct {
		state            journal.State
		decided, initial bool
	}{
		{journal.StateActive, false, true},
		{journal.StatePrepared, false, false},
		{journal.StateCommitted, true, false},
		{journal.StateDone, true, false},
		{journal.StateAborted, false, true},
	} {
		if tc.state.Decided() != tc.decided || tc.state.Initial() != tc.initial {
			t.Errorf("%s: decided %t, initial %t", tc.state, tc.state.Decided(), tc.state.Initial())
		}
		if got, err := journal.ParseState(tc.state.String()); err != nil || got != tc.state {
			t.Errorf("ParseState(%s): %s, %v", tc.state, got, err)
		}
	}
	for _, text := range []string{"", "active", "ACTIVE ", "UNKNOWN", "ACTIVE\x00"} {
		if got, err := journal.ParseState(text); err == nil {
			t.Errorf("ParseState(%q): %s", text, got)
		}
	}
}

// TestDiagram holds the picture in the documentation to the transition table.
func TestDiagram(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), diagramBegin)
	stands, after, okEnd := strings.Cut(rest, diagramEnd)
	if !ok || !okEnd {
		t.Fatalf("%s has lost the marks of the diagram", page)
	}
	want := diagram()
	if *update {
		if err := os.WriteFile(page, []byte(before+diagramBegin+want+diagramEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if stands != want {
		t.Errorf("%s shows\n%s\nthe transition table says\n%s\nrun the test with -update", page, stands, want)
	}
}

func diagram() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, s := range journal.States {
		if s.Initial() {
			fmt.Fprintf(&b, "    [*] --> %s\n", s)
		}
	}
	for _, from := range journal.States {
		for _, to := range journal.States {
			if from.To(to) {
				fmt.Fprintf(&b, "    %s --> %s\n", from, to)
			}
		}
	}
	for _, s := range journal.States {
		if s.Final() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	b.WriteString("```\n")
	return b.String()
}
