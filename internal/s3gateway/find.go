package s3gateway

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrNoServer says that this machine has no S3 server for tests.
var ErrNoServer = errors.New("rhizodat: find S3 gateway: not set up (scripts/setup.sh s3gateway builds it)")

// find looks where scripts/setup.sh puts the program: "current" is a link to
// the folder of the version that it pins.
func find() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", ErrNoServer
	}
	program := filepath.Join(cache, "rhizodat", "s3gateway", "current", "versitygw")
	if _, err := os.Stat(program); err != nil {
		return "", ErrNoServer
	}
	return program, nil
}
