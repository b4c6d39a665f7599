package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
)

// guardTag is the build tag under which internal/guard can be switched off.
const guardTag = "rhizodat_guards"

// Shop builds programs of this project, each once, into a directory that ends
// with it.
type Shop struct {
	dir string

	mu    sync.Mutex
	built map[string]string // name -> path
}

// NewShop makes the directory.
func NewShop() (*Shop, error) {
	dir, err := os.MkdirTemp("", "rhizodat-rig-")
	if err != nil {
		return nil, fmt.Errorf("make directory of programs: %w", err)
	}
	return &Shop{dir: dir, built: map[string]string{}}, nil
}

// Close removes the programs.
func (s *Shop) Close() error { return os.RemoveAll(s.dir) }

// Build compiles a package, named relative to the top of the project, where
// this process has to run. With guards its safety guards can be taken out.
func (s *Shop) Build(ctx context.Context, pkg string, guards bool) (string, error) {
	args := []string{"build"}
	name := path.Base(pkg)
	if guards {
		name += "-guards"
		args = append(args, "-tags", guardTag)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if program, ok := s.built[name]; ok {
		return program, nil
	}
	program := filepath.Join(s.dir, name)
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", program, "./"+pkg)...) //nolint:gosec // packages of ours
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	s.built[name] = program
	return program, nil
}
