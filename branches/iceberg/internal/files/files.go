// Package files is the local disk as an Iceberg warehouse: iceberg-go's file IO
// with its two faults mended.
//
//   - The library never calls fsync, while the catalog's row is durable: after a
//     power cut the catalog names a metadata file that is empty. Here a file is on
//     the disk, and so is its name, before Close answers.
//   - The library percent-decodes file:// locations, which no other engine does: a
//     table partitioned by a time or by any text with a special character is then
//     read by this library alone. Here what follows file:// is the path itself.
//
// A warehouse of a program's own tables may be open beside a store's, and its IO
// must stay what it was: only catalogs that carry [FS.Props] get this one.
package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	iceio "github.com/apache/iceberg-go/io"
)

// Op is a place where a write may fail.
type Op string

// The places.
const (
	OpCreate Op = "create"
	OpWrite  Op = "write"
	OpSync   Op = "sync"
	OpRename Op = "rename"
)

// Fault fails a write in a test; nil lets it be.
type Fault func(op Op, path string) error

// FS is one store's file IO. It is safe for concurrent use.
type FS struct {
	iceio.LocalFS
	id    string
	fault atomic.Pointer[Fault]
}

// property names, in a catalog's properties, the FS that its locations are read
// with.
const property = "rhizodat.file-io"

var (
	open   sync.Map // id -> *FS
	lastID atomic.Int64
)

// The library keeps one factory for each scheme in the whole process, so this
// takes its place from the start (one that is replaced while another goroutine
// loads a table is missing for a moment) and stands aside for everybody else.
func init() {
	for _, scheme := range []string{"file", ""} {
		Register(scheme)
	}
}

// Register puts this IO in the place of a scheme's present one.
func Register(scheme string) {
	iceio.Unregister(scheme)
	iceio.Register(scheme, choose)
}

func choose(_ context.Context, _ *url.URL, props map[string]string) (iceio.IO, error) {
	id, ours := props[property]
	if !ours {
		return iceio.LocalFS{}, nil
	}
	found, ok := open.Load(id)
	if !ok {
		return nil, errClosed
	}
	return found.(*FS), nil //nolint:forcetypeassert // nothing else is stored there
}

var (
	errClosed = errors.New("rhizodat: open file: the store is closed")
	// ErrReplaced says that the program has registered another IO for file://
	// after this package did.
	ErrReplaced = errors.New("rhizodat: open warehouse: the program has registered an IO of its own for file:// that does not sync")
)

// New makes a file IO.
func New() *FS {
	f := &FS{id: strconv.FormatInt(lastID.Add(1), 10)}
	open.Store(f.id, f)
	return f
}

// Props adds to a catalog's properties what makes its files go through f.
func (f *FS) Props(props map[string]string) { props[property] = f.id }

// InUse returns ErrReplaced where f is not what file:// locations lead to.
func (f *FS) InUse(ctx context.Context) error {
	found, err := iceio.LoadFS(ctx, map[string]string{property: f.id}, "file:///")
	if err != nil {
		return err
	}
	if found != iceio.IO(f) {
		return ErrReplaced
	}
	return nil
}

// SetFault makes writes fail from now on; for tests.
func (f *FS) SetFault(fault Fault) { f.fault.Store(&fault) }

// Close forgets f: tables that were loaded with it can no longer be read.
func (f *FS) Close() { open.Delete(f.id) }

func (f *FS) failing(op Op, path string) error {
	if fault := f.fault.Load(); fault != nil && *fault != nil {
		return (*fault)(op, path)
	}
	return nil
}

// Path is the path of a location: what follows file://, as it is. Java's Hadoop
// catalog writes one slash, file:/path.
func Path(location string) string {
	rest, ok := strings.CutPrefix(location, "file:")
	if !ok {
		return location
	}
	if path, ok := strings.CutPrefix(rest, "//localhost/"); ok {
		return "/" + path
	}
	return strings.TrimPrefix(rest, "//")
}

// Open opens a file for reading.
func (f *FS) Open(name string) (iceio.File, error) { return os.Open(Path(name)) }

// ReadFile reads a whole file.
func (f *FS) ReadFile(name string) ([]byte, error) { return os.ReadFile(Path(name)) }

// Remove removes a file.
func (f *FS) Remove(name string) error { return os.Remove(Path(name)) }

// RemoveAll removes a directory with all that is in it.
func (f *FS) RemoveAll(name string) error { return os.RemoveAll(Path(name)) }

// ReadDir lists a directory.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(Path(name)) }

// Stat describes a file.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return os.Stat(Path(name)) }

// WalkDir walks a directory; the names that it gives have no file://.
func (f *FS) WalkDir(root string, each fs.WalkDirFunc) error {
	return filepath.WalkDir(Path(root), each)
}

// Mkdir makes a directory.
func (f *FS) Mkdir(name string) error {
	if err := os.Mkdir(Path(name), dirMode); err != nil {
		return err
	}
	return f.syncDir(filepath.Dir(Path(name)))
}

// MkdirAll makes a directory and those above it.
func (f *FS) MkdirAll(name string) error { return f.mkdirAll(Path(name)) }

const (
	dirMode  = 0o755
	fileMode = 0o644
)

// mkdirAll syncs each directory that gets a new entry.
func (f *FS) mkdirAll(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := f.mkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return f.syncDir(parent)
}

// Rename moves a file.
func (f *FS) Rename(from, to string) error {
	if err := f.failing(OpRename, to); err != nil {
		return err
	}
	if err := os.Rename(Path(from), Path(to)); err != nil {
		return err
	}
	return f.syncDir(filepath.Dir(Path(to)))
}

// RenameNoReplace moves a file where its new name is not taken. It is what makes
// a commit of a Hadoop catalog atomic.
func (f *FS) RenameNoReplace(from, to string) error {
	if err := f.failing(OpRename, to); err != nil {
		return err
	}
	if err := f.LocalFS.RenameNoReplace(Path(from), Path(to)); err != nil {
		return err
	}
	return f.syncDir(filepath.Dir(Path(to)))
}

// WriteFile writes a whole file.
func (f *FS) WriteFile(name string, content []byte) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	return errors.Join(err, w.Close())
}

// Create makes a file. It is durable when Close has answered nil.
func (f *FS) Create(name string) (iceio.FileWriter, error) {
	path := Path(name)
	if err := f.failing(OpCreate, path); err != nil {
		return nil, err
	}
	if err := f.mkdirAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, fileMode) //nolint:gosec // readable like the library's own
	if err != nil {
		return nil, err
	}
	return &writer{fs: f, file: file, path: path}, nil
}

func (f *FS) syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // a directory of the warehouse
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writer is a file that is synced when it is closed.
type writer struct {
	fs     *FS
	file   *os.File
	path   string
	closed bool
}

func (w *writer) Write(p []byte) (int, error) {
	if err := w.fs.failing(OpWrite, w.path); err != nil {
		return 0, err
	}
	return w.file.Write(p)
}

func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	if err := w.fs.failing(OpWrite, w.path); err != nil {
		return 0, err
	}
	return w.file.ReadFrom(r)
}

// Close may be called twice: the library does on its way out of an error.
func (w *writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	err := w.fs.failing(OpSync, w.path)
	if err == nil {
		err = w.file.Sync()
	}
	if err = errors.Join(err, w.file.Close()); err != nil {
		return err
	}
	return w.fs.syncDir(filepath.Dir(w.path))
}
