package floor

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	iceio "github.com/apache/iceberg-go/io"
)

// forcedScheme is the scheme of a local warehouse whose files are on the disk, and
// so are their names, once they are closed. iceberg-go's own file:// never forces
// anything: it is faster than any store that may be believed.
const forcedScheme = "forced"

func init() {
	iceio.Register(forcedScheme, func(context.Context, *url.URL, map[string]string) (iceio.IO, error) { return forcedFS{}, nil })
}

type forcedFS struct{}

func pathOf(name string) string { return strings.TrimPrefix(name, forcedScheme+"://") }

func (forcedFS) Open(name string) (iceio.File, error) { return os.Open(pathOf(name)) }

func (forcedFS) ReadFile(name string) ([]byte, error) { return os.ReadFile(pathOf(name)) }

func (forcedFS) Remove(name string) error { return os.Remove(pathOf(name)) }

func (forcedFS) Create(name string) (iceio.FileWriter, error) {
	path := pathOf(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	file, err := os.Create(path) //nolint:gosec // a file of the warehouse
	if err != nil {
		return nil, err
	}
	return &forcedFile{file: file}, nil
}

func (f forcedFS) WriteFile(name string, content []byte) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	return errors.Join(err, w.Close())
}

type forcedFile struct {
	file   *os.File
	closed bool
}

func (f *forcedFile) Write(p []byte) (int, error) { return f.file.Write(p) }

func (f *forcedFile) ReadFrom(r io.Reader) (int64, error) { return f.file.ReadFrom(r) }

// Close may come twice.
func (f *forcedFile) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	dir, err := os.Open(filepath.Dir(f.file.Name()))
	if err != nil {
		return errors.Join(err, f.file.Close())
	}
	return errors.Join(f.file.Sync(), f.file.Close(), dir.Sync(), dir.Close())
}
