//go:build !linux && !darwin && !freebsd

package files

// Free is the space that is left for this user on the disk of a path; ok is false
// where the system does not tell.
func Free(string) (bytes int64, ok bool, err error) { return 0, false, nil }
