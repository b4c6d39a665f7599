package drevotest_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/drevotest"
)

// Graphs of one server do not see each other; what one holds outlives a crash.
func TestGraphs(t *testing.T) {
	c := drevotest.Own(t)
	a, b := c.Graph(t, "a"), c.Graph(t, "b")
	a.Exec(t, "CREATE (:A {title: 'x'})")
	b.Exec(t, "CREATE (:A {title: 'x'})")
	b.Exec(t, "CREATE (:A)")
	c.Restart(t)
	if n, m := a.Count(t, "A"), b.Count(t, "A"); n != 1 || m != 2 {
		t.Errorf("%d and %d nodes, want 1 and 2", n, m)
	}
	if a.URL() == b.URL() {
		t.Errorf("one URL for two graphs: %s", a.URL())
	}
}

// A full disk and a limited log both refuse a write, and only that.
func TestNoRoom(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		c := drevotest.Stopped(t)
		disk := c.SmallDisk(t)
		c.Start(t)
		g := c.Named(t, "drevo")
		g.Exec(t, "CREATE (:A)")
		disk.Fill(t)
		if _, err := g.Try(t.Context(), "CREATE (:A {s: $s})", map[string]any{"s": string(make([]byte, 9000))}); err == nil {
			t.Error("written on a full disk")
		}
		disk.Free(t)
	})
	t.Run("limit", func(t *testing.T) {
		c := drevotest.Own(t)
		g := c.Named(t, "drevo")
		g.Exec(t, "CREATE (:A)")
		g.LimitLog(t, 0)
		if _, err := g.Try(t.Context(), "CREATE (:A)", nil); err == nil {
			t.Error("written beyond the limit")
		}
		c.Restart(t)
		g.Exec(t, "CREATE (:A)")
	})
}
