package iceberg

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

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
		free, ok, err := files.Free(path)
		if errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
			continue // the warehouse is made with its first table
		}
		return free, ok, s.fail("ask free space", err)
	}
}
