//go:build !unix

package archive

import (
	"errors"
	"os"
)

func exclusively(*os.File) error {
	return errors.New("a conditional replace in a folder needs flock, which this system does not have: use s3://")
}
