// Package tinydisk mounts disks that tests can fill.
package tinydisk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Mount puts a disk of that many KiB on a directory that is there and empty. It needs
// root, or sudo that asks for no password; its error says what was missing.
func Mount(ctx context.Context, dir string, kib int) error {
	words := asRoot("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dk", kib), "tmpfs", dir)
	return run(exec.CommandContext(ctx, words[0], words[1:]...), "mount a small tmpfs") //nolint:gosec // a directory of the caller's
}

// Unmount takes the disk off again, also while files of it are open. It takes no
// context: a test's has ended by then.
func Unmount(dir string) error {
	words := asRoot("umount", "-l", dir)
	return run(exec.Command(words[0], words[1:]...), "unmount a small tmpfs") //nolint:gosec,noctx // as above
}

func asRoot(words ...string) []string {
	if os.Geteuid() != 0 {
		return append([]string{"sudo", "-n"}, words...)
	}
	return words
}

func run(c *exec.Cmd, doing string) error {
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", doing, err, strings.TrimSpace(string(said)))
	}
	return nil
}
