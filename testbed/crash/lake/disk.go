package lake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rhizodat/rhizodat-go/internal/tinydisk"
)

// ErrNoDisk says that no disk can be mounted here that can be filled.
var ErrNoDisk = errors.New("there is no small disk to fill")

// Page is how much of a tmpfs is given out at a time.
const Page = 4096

func (s *Store) wh() string     { return filepath.Join(s.dir, "wh") }
func (s *Store) filler() string { return filepath.Join(s.wh(), "filler") }

// mount puts the warehouse on a disk of its own.
func (s *Store) mount(ctx context.Context) error {
	if err := os.Mkdir(s.wh(), 0o700); err != nil {
		return fmt.Errorf("make warehouse: %w", err)
	}
	if err := tinydisk.Mount(ctx, s.wh(), 8<<10); err != nil {
		s.layout.Small = false // there is nothing to unmount
		return fmt.Errorf("%w: %w", ErrNoDisk, err)
	}
	return nil
}

// Fill leaves room for that many pages on the small disk.
func (s *Store) Fill(pages int64) error {
	file, err := os.Create(s.filler())
	if err != nil {
		return fmt.Errorf("fill disk: %w", err)
	}
	written := int64(0)
	for page := make([]byte, Page); err == nil; written += Page {
		_, err = file.Write(page)
	}
	return errors.Join(file.Truncate(max(0, written-Page*(1+pages))), file.Close())
}

// Free gives the room back.
func (s *Store) Free() error {
	if err := os.Remove(s.filler()); err != nil {
		return fmt.Errorf("free disk: %w", err)
	}
	return nil
}
