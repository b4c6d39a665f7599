package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// table is step × mode × outcome × times hit.
type table struct {
	mu         sync.Mutex
	order      []point
	cells      map[string]map[mode]*tally
	violations []string

	fenced, lost, doubted, finished, rolledBack int
}

// tally of one cell.
type tally struct {
	hits int
	ends map[string]int // outcomes
}

func newTable() *table { return &table{cells: map[string]map[mode]*tally{}} }

func (t *table) add(j job, s *sight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.cells[j.point.name]
	if row == nil {
		row = map[mode]*tally{}
		t.cells[j.point.name] = row
		t.order = append(t.order, j.point)
	}
	if row[j.mode] == nil {
		row[j.mode] = &tally{ends: map[string]int{}}
	}
	t.violations = append(t.violations, s.violations...)
	if !s.hit {
		return
	}
	row[j.mode].hits++
	end := s.verdict()
	if s.outcome == nil {
		end = s.fate.String()
	}
	row[j.mode].ends[end]++
	if s.lost {
		t.lost++
	}
	if s.outcome != nil && s.outcome.Conflict {
		t.fenced++
	}
	if s.verdict() == "in doubt" {
		t.doubted++
	}
	if !s.killed || s.txn == "" {
		return
	}
	// Whether the decision was acknowledged before the kill is known here, so
	// that what recovery had to do is known too.
	switch {
	case j.point.decided != s.fate.Whole():
		t.violations = append(t.violations, fmt.Sprintf("%s: decided %t, and took effect in %s", j.cell.name, j.point.decided, s.fate))
	case s.state == "ABORTED":
		t.rolledBack++
	case s.fate.Whole() && j.point.step < 10:
		t.finished++
	}
}

func (t *table) print() {
	slices.SortStableFunc(t.order, func(a, b point) int {
		if a.step != b.step {
			return int(a.step) - int(b.step)
		}
		return strings.Compare(side(a), side(b))
	})
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	modes := slices.DeleteFunc(slices.Clone(allModes), func(m mode) bool { return !t.has(m) })
	head := []string{"POINT"}
	for _, m := range modes {
		head = append(head, strings.ToUpper(string(m)))
	}
	_, _ = fmt.Fprintln(w, strings.Join(head, "\t")) // to memory
	for _, p := range t.order {
		row := []string{p.name}
		for _, m := range modes {
			row = append(row, t.cells[p.name][m].String())
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a broken pipe ends the program by itself
}

// has reports whether any cell is of this mode.
func (t *table) has(m mode) bool {
	for _, row := range t.cells {
		if row[m] != nil {
			return true
		}
	}
	return false
}

// side puts before in front of after, and the step in front of its shares.
func side(p point) string {
	_, moment, _ := strings.Cut(p.name, ".")
	word, store, _ := strings.Cut(moment, ":")
	return map[string]string{"before": "0", "after": "1"}[word] + store
}

func (c *tally) String() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%d: %s", c.hits, endsText(c.ends))
}

// endsText says how often each outcome was met.
func endsText(met map[string]int) string {
	var ends []string
	for _, end := range slices.Sorted(maps.Keys(met)) {
		ends = append(ends, fmt.Sprintf("%s %d", end, met[end]))
	}
	return strings.Join(ends, ", ")
}

// count tells how many cells there are, and how many points were not reached.
func (t *table) count() (cells, missed int) {
	for _, row := range t.cells {
		for _, c := range row {
			cells++
			if c.hits == 0 {
				missed++
			}
		}
	}
	return cells, missed
}

func (t *table) figures(h *house) {
	cells, missed := t.count()
	h.board.AtLeast("crash_cells", cells, 80)
	h.board.Exactly("crash_cells_not_hit", missed, 0)
	h.board.AtLeast("crash_fenced_after_freeze", t.fenced, 1)
	h.board.AtLeast("crash_unforced_records_lost", t.lost, 1)
	h.board.AtLeast("crash_in_doubt", t.doubted, 1)
	h.board.AtLeast("crash_finished_by_recovery", t.finished, 1)
	h.board.AtLeast("crash_rolled_back_by_recovery", t.rolledBack, 1)
	h.violations("crash", t.violations)
}
