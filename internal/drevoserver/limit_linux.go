package drevoserver

import (
	"fmt"
	"syscall"
	"unsafe"
)

// LimitFiles limits the size of every file that the running server writes, in
// bytes: a full disk where none can be mounted. Writes beyond it fail with
// "File too large (os error 27)". The limit ends with the process.
func (s *Server) LimitFiles(bytes uint64) error {
	limit := syscall.Rlimit{Cur: bytes, Max: bytes}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(s.Pid()),
		syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0) //nolint:gosec // the system call's argument
	if errno != 0 {
		return fmt.Errorf("rhizodat: limit files of drevo server: %w", errno)
	}
	return nil
}
