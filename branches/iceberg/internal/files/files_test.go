package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	iceio "github.com/apache/iceberg-go/io"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/files"
)

func TestPath(t *testing.T) {
	for location, want := range map[string]string{
		"file:///wh/a%2Fb":          "/wh/a%2Fb",
		"file:///wh/a b?c#d":        "/wh/a b?c#d",
		"file:/wh/x":                "/wh/x",
		"file://localhost/wh":       "/wh",
		"/wh/file:x":                "/wh/file:x",
		"file:///wh/file:///inside": "/wh/file:///inside",
	} {
		if got := files.Path(location); got != want {
			t.Errorf("%s is %s, want %s", location, got, want)
		}
	}
}

// Only a catalog that carries the property gets this IO; everybody else's stays what
// it was.
func TestOthersKeepTheirs(t *testing.T) {
	f := files.New()
	props := map[string]string{}
	f.Props(props)
	for _, location := range []string{"file:///wh", "/wh"} {
		ours, err := iceio.LoadFS(t.Context(), props, location)
		if err != nil || ours != iceio.IO(f) {
			t.Errorf("%s: %T, %v", location, ours, err)
		}
		theirs, err := iceio.LoadFS(t.Context(), nil, location)
		if _, ok := theirs.(iceio.LocalFS); err != nil || !ok {
			t.Errorf("%s of another program's part: %T, %v", location, theirs, err)
		}
	}
	if err := f.InUse(t.Context()); err != nil {
		t.Error(err)
	}
	f.Close()
	if _, err := iceio.LoadFS(t.Context(), props, "file:///wh"); err == nil {
		t.Error("a closed store's files are open")
	}
}

// A program that registers an IO of its own is told that nothing would be synced.
func TestReplaced(t *testing.T) {
	f := files.New()
	defer f.Close()
	iceio.Unregister("file")
	err := f.InUse(t.Context())
	files.Register("file")
	if err == nil {
		t.Error("in use = nil without a factory")
	}
	if err := f.InUse(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWriteAndRename(t *testing.T) {
	f := files.New()
	defer f.Close()
	dir := t.TempDir()
	name := "file://" + dir + "/a%2Fb/c/d"
	if err := f.WriteFile(name, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a%2Fb", "c", "d")); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if err := f.WriteFile(dir+"/e", []byte("y")); err != nil {
		t.Fatal(err)
	}
	if err := f.RenameNoReplace(dir+"/e", name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("rename onto a file = %v", err)
	}
	if err := f.RenameNoReplace(dir+"/e", dir+"/f"); err != nil {
		t.Error(err)
	}
	if _, err := f.Stat("file://" + dir + "/f"); err != nil {
		t.Error(err)
	}
}

// A fault is what the disk would say, at each place, and the file is closed.
func TestFault(t *testing.T) {
	f := files.New()
	defer f.Close()
	for _, op := range []files.Op{files.OpCreate, files.OpWrite, files.OpSync} {
		f.SetFault(func(at files.Op, _ string) error {
			if at == op {
				return syscall.ENOSPC
			}
			return nil
		})
		if err := f.WriteFile(filepath.Join(t.TempDir(), "x"), []byte("x")); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", op, err)
		}
	}
}
