package archive

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folder is a bucket of one local directory, for one host or a file system whose
// flock and link hold between hosts.
type folder struct{ root string }

// Folder makes a bucket of a directory, which is made when it is first written
// to. Every write is forced to the disk before it is acknowledged.
func Folder(root string) Bucket { return &folder{root: root} }

func (f *folder) path(key string) string { return filepath.Join(f.root, filepath.FromSlash(key)) }

// Get implements Bucket.
func (f *folder) Get(_ context.Context, key string) ([]byte, Version, error) {
	data, err := os.ReadFile(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", ErrAbsent
	}
	return data, versionOf(data), err
}

func versionOf(data []byte) Version {
	sum := sha256.Sum256(data)
	return Version(hex.EncodeToString(sum[:]))
}

// Create implements Bucket: link(2) makes a whole file appear, and fails where
// one is.
func (f *folder) Create(_ context.Context, key string, data []byte) (bool, error) {
	path := f.path(key)
	written, err := f.write(path, data)
	if err != nil {
		return false, err
	}
	defer os.Remove(written) //nolint:errcheck // a file of a name that nobody reads
	err = os.Link(written, path)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, syncDir(filepath.Dir(path))
}

// Replace implements Bucket. The lock dies with its process.
func (f *folder) Replace(ctx context.Context, key string, data []byte, version Version) (won bool, err error) {
	lock, err := os.OpenFile(f.path(".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	defer lock.Close() //nolint:errcheck // which gives the lock up
	if err := exclusively(lock); err != nil {
		return false, err
	}
	switch _, stands, err := f.Get(ctx, key); {
	case errors.Is(err, ErrAbsent), err == nil && stands != version:
		return false, nil
	case err != nil:
		return false, err
	}
	path := f.path(key)
	written, err := f.write(path, data)
	if err != nil {
		return false, err
	}
	if err := os.Rename(written, path); err != nil {
		_ = os.Remove(written) // the error at hand says more
		return false, err
	}
	return true, syncDir(filepath.Dir(path))
}

// write makes a file beside path, forced to the disk.
func (f *folder) write(path string, data []byte) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(filepath.Dir(path), "."+rand.Text())
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // below the archive's own folder
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(name) // the error at hand says more
		return "", err
	}
	return name, nil
}

func syncDir(path string) error {
	dir, err := os.Open(path) //nolint:gosec // below the archive's own folder
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only synced
	return dir.Sync()
}

// List implements Bucket.
func (f *folder) List(_ context.Context, prefix string) ([]string, error) {
	var keys []string
	err := filepath.WalkDir(f.path(prefix), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		relative, err := filepath.Rel(f.root, path)
		keys = append(keys, filepath.ToSlash(relative))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return keys, err
}

// Delete implements Bucket.
func (f *folder) Delete(_ context.Context, key string) error {
	err := os.Remove(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
