package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

func labOf(allowances ...*allowance) *lab {
	return &lab{board: rig.NewBoard(io.Discard), allowances: allowances}
}

// An allowance covers what it has evidence for and nothing else, and is told when
// it is needed no longer.
func TestJudge(t *testing.T) {
	refuses := func() *allowance {
		return &allowance{peer: "py", doing: reads, tables: "a_v* b_v2", says: []string{"no such type"}}
	}
	empties := func() *allowance {
		return &allowance{peer: "py", doing: reads, tables: "a_v*", mend: func(r canon.Row) { r["v"] = "" }}
	}
	fails := func() *allowance {
		return &allowance{peer: "py", doing: reads, tables: "a_v*", anyError: true}
	}
	none := func(func(canon.Row)) []string { return nil }
	some := func(func(canon.Row)) []string { return []string{"missing"} }
	for _, c := range []struct {
		name  string
		a     *allowance
		table string
		err   error
		lines []string
		again func(func(canon.Row)) []string
		want  tally
		stale bool
	}{
		{name: "equal, no allowance", table: "c_v1", a: refuses(), want: tally{equal: 1}},
		{name: "different, no allowance", table: "c_v1", a: refuses(), lines: []string{"no such type"}, want: tally{wrong: 1}},
		{name: "evidence in what it says", table: "a_v2", a: refuses(), err: &peerError{"py", "X: no such type"}, want: tally{allowed: 1}},
		{name: "evidence in the differences", table: "b_v2", a: refuses(), lines: []string{"missing", "no such type"}, want: tally{allowed: 1}},
		{name: "another error", table: "a_v2", a: refuses(), err: &peerError{"py", "X: out of memory"}, want: tally{wrong: 1}},
		{name: "needed no longer", table: "a_v2", a: refuses(), want: tally{equal: 1}, stale: true},
		{name: "any error", table: "a_v2", a: fails(), err: &peerError{"py", "X: out of memory"}, want: tally{allowed: 1}},
		{name: "other rows and no error", table: "a_v2", a: fails(), lines: []string{"missing"}, want: tally{wrong: 1}},
		{name: "equal when mended", table: "a_v1", a: empties(), lines: []string{"missing"}, again: none, want: tally{allowed: 1}},
		{name: "different when mended", table: "a_v1", a: empties(), lines: []string{"missing"}, again: some, want: tally{wrong: 1}},
		{name: "nothing to mend", table: "a_v1", a: empties(), err: &peerError{"py", "X"}, again: none, want: tally{wrong: 1}},
	} {
		l := labOf(c.a)
		var got tally
		if err := l.judge(&got, subject{"py", reads, c.table, "sqlite"}, c.err, c.lines, c.again); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		l.report()
		if stale := l.board.ExitCode() != 0; stale != c.stale {
			t.Errorf("%s: told as needed no longer: %t, want %t", c.name, stale, c.stale)
		}
	}
}

// What is no answer of a peer ends the run.
func TestJudgeLostPeer(t *testing.T) {
	var got tally
	err := labOf().judge(&got, subject{"py", reads, "a_v1", "sqlite"}, io.ErrUnexpectedEOF, nil, nil)
	if !errors.Is(err, io.ErrUnexpectedEOF) || got != (tally{}) {
		t.Errorf("judge = %v, %+v; want the error itself and no count", err, got)
	}
}

// The short form's tables are all there, and each transform and version among them.
func TestFewDesigns(t *testing.T) {
	made := designs(few)
	if len(made) != len(fewDesigns) {
		t.Errorf("%d tables in the short form, %d are named", len(made), len(fewDesigns))
	}
	var names strings.Builder
	for _, d := range made {
		names.WriteString(d.name + " ")
	}
	for _, part := range []string{"_identity_", "_bucket16_", "_truncate", "_year_", "_month_", "_day_", "_hour_", "_v1 ", "_v2 ", "_v3 "} {
		if !strings.Contains(names.String(), part) {
			t.Errorf("no table of the short form is called …%s…", part)
		}
	}
}
