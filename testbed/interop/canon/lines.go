package canon

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Line is a cell or a row as one line of JSON, with sorted keys.
func Line(c Cell) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		panic("canon: " + err.Error()) // cells are bools, texts, lists and objects of these
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Differences compares two multisets: what is wanted and not there, and what is
// there and not wanted, a line each.
func Differences(want, got []Row) []string {
	count := map[string]int{}
	for _, r := range want {
		count[Line(r)]++
	}
	for _, r := range got {
		count[Line(r)]--
	}
	var lines []string
	for _, line := range slices.Sorted(maps.Keys(count)) {
		for n := count[line]; n > 0; n-- {
			lines = append(lines, "missing "+line)
		}
		for n := count[line]; n < 0; n++ {
			lines = append(lines, "unexpected "+line)
		}
	}
	return lines
}
