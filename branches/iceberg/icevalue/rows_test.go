package icevalue_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/google/go-cmp/cmp"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

func twoColumns(t fataler, mem memory.Allocator) *icevalue.Rows {
	t.Helper()
	list := &iceberg.ListType{ElementID: 9, Element: primitive.Int32}
	return newRows(t, mem, iceberg.NestedField{Name: "id", Type: primitive.Int64, Required: true},
		iceberg.NestedField{Name: "l", Type: list}, iceberg.NestedField{Name: "s", Type: primitive.String})
}

func ids(t *testing.T, rows *icevalue.Rows, batches []arrow.RecordBatch) []any {
	t.Helper()
	var out []any
	for _, b := range batches {
		if b.NumCols() != 3 || int64(b.Column(2).Len()) != b.NumRows() {
			t.Fatalf("columns of unequal length: %v", b)
		}
		out = append(out, readColumn(t, rows.Schema().Field(0), b)...)
		b.Release()
	}
	return out
}

func TestRowGoesInAsAWhole(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	rows := twoColumns(t, mem)
	defer rows.Release()
	for i := range int64(5) {
		if err := rows.Append([]any{i, []int{1, 2}, "s"}); err != nil {
			t.Fatal(err)
		}
		// The last value fails after two columns were written; the list in its second part.
		if err := rows.Append([]any{i, []int{1}, 5}); err == nil {
			t.Fatal("a number went into a string")
		}
		if err := rows.Append([]any{i, []any{1, "x"}, "s"}); err == nil {
			t.Fatal("a word went into a list of numbers")
		}
	}
	if rows.Len() != 5 || rows.Bytes() == 0 {
		t.Fatalf("%d rows, %d bytes", rows.Len(), rows.Bytes())
	}
	if d := cmp.Diff([]any{int64(0), int64(1), int64(2), int64(3), int64(4)}, ids(t, rows, rows.Snapshot())); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]any{int64(0), int64(1), int64(2), int64(3), int64(4)}, ids(t, rows, rows.Take())); d != "" {
		t.Error(d)
	}
	if rows.Len() != 0 || len(rows.Take()) != 0 {
		t.Error("Take left rows behind")
	}
}

func TestRollbackForgetsTheLastRows(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for _, keep := range []int{0, 1, 3, 4, 6, 7, 9} {
		rows := twoColumns(t, mem)
		for i := range int64(7) {
			if i%3 == 0 { // closed batches lie before the open one
				for _, b := range rows.Snapshot() {
					b.Release()
				}
			}
			if err := rows.Append([]any{i, nil, nil}); err != nil {
				t.Fatal(err)
			}
		}
		rows.Rollback(keep)
		if err := rows.Append([]any{int64(100), nil, nil}); err != nil {
			t.Fatal(err)
		}
		var want []any
		for i := range int64(min(keep, 7)) {
			want = append(want, i)
		}
		if d := cmp.Diff(append(want, int64(100)), ids(t, rows, rows.Take())); d != "" {
			t.Errorf("keep %d: %s", keep, d)
		}
		rows.Release()
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name string
		typ  iceberg.Type
		v    any
	}{
		{"long", primitive.Int64, int64(5)},
		{"string", primitive.String, "oslo"},
		{"decimal", iceberg.DecimalTypeOf(18, 2), "1234.56"},
	} {
		b.Run(c.name, func(b *testing.B) {
			rows := newRows(b, memory.DefaultAllocator, iceberg.NestedField{Name: "c", Type: c.typ})
			defer rows.Release()
			row := []any{c.v}
			for b.Loop() {
				if err := rows.Append(row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
