package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "part"), []byte("7 10\n8 -20\n9 30\n10 4"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := []reading{{0, 7, 10}, {5, 8, -20}, {11, 9, 30}}
	for _, c := range []struct {
		name string
		at   int64
		most int
		want []reading
		next int64
	}{
		{"from the beginning", 0, 2, lines[:2], 11},
		{"from where that ended, and not the half of a line", 11, 2, lines[2:], 16},
		{"nothing new", 16, 2, nil, 16},
		{"all", 0, 10, lines, 16},
	} {
		got, next, err := read(dir, "part", c.at, c.most)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(reading{})); diff != "" || next != c.next || err != nil {
			t.Errorf("%s: next %d, want %d; %v; %s", c.name, next, c.next, err, diff)
		}
	}
}

// What cannot be read is passed over by nobody, and holds up nothing before it.
func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "part"), []byte("7 10\nseven 20\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, next, err := read(dir, "part", 0, 10); len(got) != 1 || next != 5 || err != nil {
		t.Errorf("read in front of a bad line: %v, next %d, %v", got, next, err)
	}
	for source, at := range map[string]int64{"part": 5, "none": 0, "../part": 0} {
		if got, next, err := read(dir, source, at, 10); err == nil || len(got) > 0 || next != at {
			t.Errorf("read %s: %v, next %d, %v; want an error", source, got, next, err)
		}
	}
}
