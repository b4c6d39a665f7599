package rig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	want := Book{{"1", "a"}: {1, -5}, {"1", "b"}: {1, 5}, {"2", "a"}: {2, 7}}
	for _, c := range []struct {
		name                           string
		got                            Book
		missing, unexpected, different int
	}{
		{"equal", Book{{"1", "a"}: {1, -5}, {"1", "b"}: {1, 5}, {"2", "a"}: {2, 7}}, 0, 0, 0},
		{"nothing", Book{}, 3, 0, 0},
		{"one part of a unit missing", Book{{"1", "a"}: {1, -5}, {"2", "a"}: {2, 7}}, 1, 0, 0},
		{"a row twice", Book{{"1", "a"}: {2, -10}, {"1", "b"}: {1, 5}, {"2", "a"}: {2, 7}}, 0, 0, 1},
		{"a row less", Book{{"1", "a"}: {1, -5}, {"1", "b"}: {1, 5}, {"2", "a"}: {1, 7}}, 0, 0, 1},
		{"another number", Book{{"1", "a"}: {1, -5}, {"1", "b"}: {1, 6}, {"2", "a"}: {2, 7}}, 0, 0, 1},
		{"a unit that never was", Book{{"1", "a"}: {1, -5}, {"1", "b"}: {1, 5}, {"2", "a"}: {2, 7}, {"3", "a"}: {1, 0}}, 0, 1, 0},
		{"a part of another name", Book{{"1", "a"}: {1, -5}, {"1", "c"}: {1, 5}, {"2", "a"}: {2, 7}}, 1, 1, 0},
	} {
		a := Compare(want, c.got)
		got := []int{len(a.Missing), len(a.Unexpected), len(a.Different)}
		if diff := cmp.Diff([]int{c.missing, c.unexpected, c.different}, got); diff != "" {
			t.Errorf("%s: missing, unexpected, different: %s", c.name, diff)
		}
		if len(a.All()) != c.missing+c.unexpected+c.different {
			t.Errorf("%s: %d in all", c.name, len(a.All()))
		}
	}
}

func TestBookAdd(t *testing.T) {
	b := Book{{"1", "a"}: {1, 2}}
	b.Add(Book{{"1", "a"}: {2, 3}, {"2", "a"}: {1, 1}})
	if diff := cmp.Diff(Book{{"1", "a"}: {3, 5}, {"2", "a"}: {1, 1}}, b); diff != "" || b.Rows() != 4 {
		t.Errorf("sum of books: %s; %d rows", diff, b.Rows())
	}
}
