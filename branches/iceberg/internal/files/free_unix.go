//go:build linux || darwin || freebsd

package files

import "syscall"

// Free is the space that is left for this user on the disk of a path; ok is false
// where the system does not tell.
func Free(path string) (bytes int64, ok bool, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(path, &disk); err != nil {
		return 0, false, err
	}
	return int64(disk.Bavail) * int64(disk.Bsize), true, nil //nolint:gosec,unconvert // a disk's size fits; the types differ by system
}
