package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

const (
	files  = 20
	ahead  = 1500 // bytes that a file is kept ahead of its progress
	chunk  = 100  // lines that it grows by
	glance = 100 * time.Millisecond
)

// source is the files, and what the stores must hold of them in the end: in a
// book, a file is a unit and the place of a line its part.
type source struct {
	dir string

	mu   sync.Mutex
	size map[string]int64
	book rig.Book
}

func newSource() (*source, error) {
	dir, err := os.MkdirTemp("", "rhizodat-source-")
	if err != nil {
		return nil, fmt.Errorf("make source: %w", err)
	}
	s := &source{dir: dir, size: map[string]int64{}, book: rig.Book{}}
	for i := range files {
		name := fmt.Sprintf("part-%02d", i)
		if err := s.extend(name); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *source) close() error { return os.RemoveAll(s.dir) }

// extend appends lines to a file.
func (s *source) extend(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text []byte
	for range chunk {
		meter, value := rand.IntN(100), rand.IntN(1000) //nolint:gosec // no secrets
		at := s.size[name] + int64(len(text))
		s.book[rig.Entry{Txn: name, Part: strconv.FormatInt(at, 10)}] = rig.Sum{Rows: 1, Total: value}
		text = fmt.Appendf(text, "%d %d\n", meter, value)
	}
	file, err := os.OpenFile(filepath.Join(s.dir, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // a directory of ours
	if err != nil {
		return fmt.Errorf("extend source: %w", err)
	}
	_, err = file.Write(text)
	s.size[name] += int64(len(text))
	return errors.Join(err, file.Close())
}

// grow keeps every file ahead of its progress until ctx ends: no process is ever
// idle.
func (s *source) grow(ctx context.Context, progress func(context.Context) (map[string]int64, error)) error {
	for ctx.Err() == nil {
		done, err := progress(ctx)
		for name, at := range done {
			if err == nil && s.left(name, at) < ahead {
				err = s.extend(name)
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		_ = rig.Pause(ctx, glance) // its end is ours
	}
	return nil
}

func (s *source) left(name string, at int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size[name] - at
}

// copied reports whether all of it is.
func (s *source) copied(progress map[string]int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Equal(s.size, progress)
}
