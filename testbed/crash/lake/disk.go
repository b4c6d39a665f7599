package lake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoDisk says that no disk can be mounted here that can be filled.
var ErrNoDisk = errors.New("a small tmpfs cannot be mounted")

// Page is how much of a tmpfs is given out at a time.
const Page = 4096

func (s *Store) wh() string     { return filepath.Join(s.dir, "wh") }
func (s *Store) filler() string { return filepath.Join(s.wh(), "filler") }

// mount puts the warehouse on a disk of its own.
func (s *Store) mount(ctx context.Context) error {
	if err := os.Mkdir(s.wh(), 0o700); err != nil {
		return fmt.Errorf("make warehouse: %w", err)
	}
	said, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", s.wh()).CombinedOutput() //nolint:gosec // a directory of ours
	if err != nil {
		s.layout.Small = false // there is nothing to unmount
		return fmt.Errorf("%w: %s", ErrNoDisk, strings.TrimSpace(string(said)))
	}
	return nil
}

func (s *Store) unmount() error {
	if said, err := exec.Command("umount", "-l", s.wh()).CombinedOutput(); err != nil { //nolint:gosec,noctx // as above; it must be done
		return fmt.Errorf("unmount warehouse: %w: %s", err, said)
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
