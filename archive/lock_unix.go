//go:build unix

package archive

import (
	"os"
	"syscall"
)

// exclusively waits for the lock of a file. It ends with the file's descriptor.
func exclusively(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
}
