package iceberg

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/files"
)

var _ branches.Capacity = (*Store)(nil)

// Free is the free space of the warehouse's disk; an object store has none to tell.
func (s *Store) Free(context.Context) (int64, bool, error) {
	if !strings.HasPrefix(s.to.warehouse, "file://") {
		return 0, false, nil
	}
	for path := files.Path(s.to.warehouse); ; path = filepath.Dir(path) {
		var disk syscall.Statfs_t
		err := syscall.Statfs(path, &disk)
		switch {
		case err == nil:
			return int64(disk.Bavail) * int64(disk.Bsize), true, nil //nolint:gosec,unconvert // a disk's size fits; the types differ by platform
		case errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path):
			continue // the warehouse is made with its first table
		}
		return 0, false, s.fail("ask free space", err)
	}
}
