package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// differences are how what somebody has read differs from the rows that must be
// there and, where ours is not nil, from the schema and the snapshots that we read.
func differences(want []canon.Row, ours *state, got state) []string {
	lines := canon.Differences(want, got.Rows)
	if ours == nil {
		return lines
	}
	if a, b := plainSchema(ours.Schema), plainSchema(got.Schema); a != b {
		lines = append(lines, "schema: ours "+a, "        theirs "+b)
	}
	for _, line := range canon.Differences(ours.Snapshots, got.Snapshots) {
		lines = append(lines, "snapshot "+line)
	}
	return lines
}

// plainSchema is a schema's JSON without what may be left out and without spaces in types.
func plainSchema(text json.RawMessage) string {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return "no JSON: " + string(text)
	}
	return canon.Line(stripped(v))
}

func stripped(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range x {
			empty := e == nil || e == ""
			if list, ok := e.([]any); ok && len(list) == 0 {
				empty = true
			}
			if optional := slices.Contains([]string{"identifier-field-ids", "doc", "initial-default", "write-default", "schema-id"}, k); !optional || !empty && k != "schema-id" {
				out[k] = stripped(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = stripped(e)
		}
		return out
	case string:
		if strings.HasPrefix(x, "decimal") {
			return strings.ReplaceAll(x, " ", "")
		}
	}
	return v
}

// tally counts how the tables of one heading have come out.
type tally struct {
	equal, allowed, wrong int
}

// judge says what becomes of one comparison: err is what the reader answered
// instead, lines its differences, again the differences after an allowance's mending.
func (l *lab) judge(t *tally, to subject, err error, lines []string, again func(mend func(canon.Row)) []string) error {
	if err != nil {
		if said(err) == "" {
			return err // no answer of a peer
		}
		lines = []string{err.Error()}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.allowed(to)
	switch {
	case len(lines) == 0:
		t.equal++
		if a != nil {
			a.equal++
		}
		return nil
	case a != nil && a.covers(err, lines, again):
		t.allowed++
		a.used++
		return nil
	}
	t.wrong++
	fmt.Printf("wrong: %s\n", to)
	for i, line := range lines {
		if i == 6 {
			fmt.Printf("    ... and %d more\n", len(lines)-i)
			break
		}
		fmt.Printf("    %.400s\n", line)
	}
	return nil
}

// subject is what is compared.
type subject struct {
	peer  string
	doing string // reads, writes, …
	table string
	place string
}

func (s subject) String() string {
	return fmt.Sprintf("%s %s table %s of the %s catalog", s.peer, s.doing, s.table, s.place)
}
