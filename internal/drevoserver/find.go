package drevoserver

import (
	"errors"
	"os"
	"path/filepath"
)

// EnvServer names the environment variable with the bolt:// URL of a drevo
// server that tests may use in place of one of their own. Its user makes and
// drops graphs there.
const EnvServer = "RHIZODAT_TEST_DREVO"

// EnvServerHTTP names the variable with that server's http:// URL, by which
// graphs are made and dropped. Unset, it is the Bolt one's host at port 8080.
const EnvServerHTTP = "RHIZODAT_TEST_DREVO_HTTP"

// ErrNoServer says that this machine has no test bed for drevo.
var ErrNoServer = errors.New("rhizodat: find drevo server: not set up (scripts/setup.sh drevo builds it; " +
	"or set " + EnvServer + " to a server of your own)")

// find looks where scripts/setup.sh puts the program: "current" is a link to
// the folder of the sources built last.
func find() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", ErrNoServer
	}
	program := filepath.Join(cache, "rhizodat", "drevo", "current", "drevo-rig")
	if _, err := os.Stat(program); err != nil {
		return "", ErrNoServer
	}
	return program, nil
}
