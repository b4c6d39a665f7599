package chserver

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// EnvServer names the environment variable with the clickhouse:// DSN of a
// server that tests may use in place of one of their own. Its user makes and
// drops databases.
const EnvServer = "RHIZODAT_TEST_CLICKHOUSE"

// EnvServerHTTP names the variable with that server's clickhouse+http:// DSN.
// Unset, it is the native one's host at port 8123.
const EnvServerHTTP = "RHIZODAT_TEST_CLICKHOUSE_HTTP"

// ErrNoServer says that this machine has no test bed for ClickHouse.
var ErrNoServer = errors.New("rhizodat: find clickhouse server: not set up (scripts/setup.sh clickhouse fetches it; " +
	"x86-64 Linux only, elsewhere set " + EnvServer + ")")

// binaries are the program and the engine that it loads.
type binaries struct{ program, engine string }

// find looks where scripts/setup.sh puts them.
func find() (binaries, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return binaries{}, ErrNoServer
	}
	dir := filepath.Join(cache, "rhizodat", "clickhouse")
	found := binaries{program: filepath.Join(dir, "chserver")}
	if _, err := os.Stat(found.program); err != nil {
		return binaries{}, ErrNoServer
	}
	// The mark is set last: an engine without it is half a download.
	marks, err := filepath.Glob(filepath.Join(dir, "*", "ok"))
	if err != nil || len(marks) == 0 {
		return binaries{}, ErrNoServer
	}
	slices.Sort(marks)
	found.engine = filepath.Join(filepath.Dir(marks[len(marks)-1]), "libchdb.so")
	return found, nil
}
