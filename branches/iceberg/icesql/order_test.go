package icesql_test

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// modelKey is one key of ORDER BY over the model's rows.
type modelKey struct {
	column           int
	desc, nullsFirst bool
}

func (k modelKey) compare(x, y []any) int {
	a, b := x[k.column], y[k.column]
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil || b == nil:
		if (a == nil) == k.nullsFirst {
			return -1
		}
		return 1
	}
	if k.desc {
		return modelOrder(b, a)
	}
	return modelOrder(a, b)
}

func TestOrderAgreesWithTheModel(t *testing.T) {
	columns := modelColumns()
	sc := modelSchema(columns)
	rapid.Check(t, func(rt *rapid.T) {
		var rows [][]any
		for range rapid.IntRange(1, 30).Draw(rt, "rows") {
			rows = append(rows, drawRow(rt, columns))
		}
		var keys []modelKey
		var texts []string
		for range rapid.IntRange(1, 3).Draw(rt, "keys") {
			k := modelKey{column: rapid.IntRange(0, len(columns)-1).Draw(rt, "column"), desc: rapid.Bool().Draw(rt, "desc")}
			text := columns[k.column].name + map[bool]string{true: " DESC", false: ""}[k.desc]
			k.nullsFirst = k.desc
			if rapid.Bool().Draw(rt, "nulls") {
				k.nullsFirst = rapid.Bool().Draw(rt, "first")
				text += map[bool]string{true: " NULLS FIRST", false: " NULLS LAST"}[k.nullsFirst]
			}
			keys, texts = append(keys, k), append(texts, text)
		}
		limit := rapid.IntRange(0, len(rows)+1).Draw(rt, "limit")
		offset := rapid.IntRange(0, 3).Draw(rt, "offset")

		order := make([]int, len(rows))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(x, y int) int {
			for _, k := range keys {
				if c := k.compare(rows[x], rows[y]); c != 0 {
					return c
				}
			}
			return 0
		})
		order = order[min(offset, len(order)):]
		order = order[:min(limit, len(order))]

		numbered := make([][]any, len(rows))
		for i, row := range rows {
			numbered[i] = append(slices.Clone(row), int64(i))
		}
		wide := schema(append(sc.Fields(), field("row", primitive.Int64))...)
		half := len(rows) / 2
		b := batch(rt, wide, numbered...)
		defer b.Release()
		first, second := b.NewSlice(0, int64(half)), b.NewSlice(int64(half), int64(len(rows)))
		defer first.Release()
		defer second.Release()
		text := fmt.Sprintf("SELECT row FROM t ORDER BY %s LIMIT %d OFFSET %d", strings.Join(texts, ", "), limit, offset)
		got, err := drain(open(t, wide, scan(nil, first, second), text))
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		var want [][]driver.Value
		for _, i := range order {
			want = append(want, []driver.Value{int64(i)})
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("%s\n%v\n%s", text, rows, d)
		}
	})
}

// Of the groups is checked that each value has one, and of the aggregates what the
// model's order says.
func TestGroupsAgreeWithTheModel(t *testing.T) {
	columns := modelColumns()
	sc := modelSchema(columns)
	rapid.Check(t, func(rt *rapid.T) {
		var rows [][]any
		for range rapid.IntRange(1, 30).Draw(rt, "rows") {
			rows = append(rows, drawRow(rt, columns))
		}
		key := rapid.IntRange(0, len(columns)-1).Draw(rt, "key")
		arg := rapid.IntRange(0, len(columns)-1).Draw(rt, "arg")
		k, a := columns[key].name, columns[arg].name

		type group struct {
			key                any
			all, some, several int64
			least, most        any
			seen               []any
		}
		var want []*group
		for _, row := range rows {
			at := slices.IndexFunc(want, func(g *group) bool {
				return g.key == nil && row[key] == nil || g.key != nil && row[key] != nil && modelOrder(g.key, row[key]) == 0
			})
			if at < 0 {
				want = append(want, &group{key: row[key]})
				at = len(want) - 1
			}
			g, v := want[at], row[arg]
			g.all++
			if v == nil {
				continue
			}
			g.some++
			if !slices.ContainsFunc(g.seen, func(x any) bool { return modelOrder(x, v) == 0 }) {
				g.seen = append(g.seen, v)
				g.several++
			}
			if g.least == nil || modelOrder(v, g.least) < 0 {
				g.least = v
			}
			if g.most == nil || modelOrder(v, g.most) > 0 {
				g.most = v
			}
		}
		b := batch(rt, sc, rows...)
		defer b.Release()
		text := fmt.Sprintf("SELECT count(*), count(%[2]s), count(DISTINCT %[2]s), min(%[2]s), max(%[2]s) FROM t GROUP BY %[1]s", k, a)
		got, err := drain(open(t, sc, scan(nil, b), text))
		if err != nil || len(got) != len(want) {
			rt.Fatalf("%s: %d groups, want %d (%v)", text, len(got), len(want), err)
		}
		one := func(v any) any { // as the column's own reader gives it
			if v == nil {
				return nil
			}
			single := batch(rt, schema(field("c", columns[arg].typ)), []any{v})
			defer single.Release()
			out, err := drain(open(t, schema(field("c", columns[arg].typ)), scan(nil, single), "SELECT c FROM t"))
			if err != nil {
				rt.Fatalf("%v", err)
			}
			return out[0][0]
		}
		for i, g := range want {
			line := []any{g.all, g.some, g.several, one(g.least), one(g.most)}
			for c, v := range line {
				if fmt.Sprint(v) != fmt.Sprint(got[i][c]) {
					rt.Fatalf("%s: group %v: %v, want %v\n%v", text, g.key, got[i], line, rows)
				}
			}
		}
	})
}
