package drevotest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/internal/tinydisk"
)

// Disk is a small disk below a server's data.
type Disk struct{ filler string }

// SmallDisk puts the data of a server that has not been started yet on a disk of
// 256 KiB. The test is skipped where mounting one is not allowed.
func (c *Cluster) SmallDisk(tb testing.TB) Disk {
	tb.Helper()
	dir := c.Data()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := tinydisk.Mount(tb.Context(), dir, 256); err != nil {
		pgtest.Skip(tb, err.Error())
	}
	tb.Cleanup(func() {
		if err := tinydisk.Unmount(dir); err != nil {
			tb.Error(err)
		}
	})
	return Disk{filler: filepath.Join(dir, "filler")}
}

// Fill leaves no room.
func (d Disk) Fill(tb testing.TB) {
	tb.Helper()
	f, err := os.Create(d.filler)
	if err != nil {
		tb.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 1024))
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
}

// Free gives the room back.
func (d Disk) Free(tb testing.TB) {
	tb.Helper()
	if err := os.Remove(d.filler); err != nil {
		tb.Fatal(err)
	}
}

// LimitLog lets the log of an own server's graph grow by no more than a few bytes:
// a disk that is full for every writer, where none can be mounted. It ends with
// the server's process.
func (g *Graph) LimitLog(tb testing.TB, more int64) {
	tb.Helper()
	info, err := os.Stat(g.Log())
	if err != nil {
		tb.Fatal(err)
	}
	g.cluster.done(tb, "limit files of", g.cluster.server.LimitFiles(uint64(info.Size()+more))) //nolint:gosec // sizes are positive
}

// Log is the path of the graph's write-ahead log on an own server.
func (g *Graph) Log() string {
	if g.name == "drevo" {
		return filepath.Join(g.cluster.Data(), "native.wal")
	}
	return filepath.Join(g.cluster.Data(), "databases", g.name, "native.wal")
}
