//go:build !linux

package drevoserver

import "errors"

// LimitFiles limits the size of the server's files; on Linux only.
func (s *Server) LimitFiles(uint64) error {
	return errors.New("rhizodat: limit files of drevo server: this system cannot limit another process: " + errors.ErrUnsupported.Error())
}
