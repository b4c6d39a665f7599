package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// EnvBinDir names the environment variable that, when set, is the only
// directory in which [Find] looks.
const EnvBinDir = "RHIZODAT_PG_BINDIR"

// EnvServer names the environment variable with the postgres:// URL of a
// superuser on a server that tests and demos may use in place of one of their own.
// It needs max_prepared_transactions of 20 or more and room for 100 connections.
const EnvServer = "RHIZODAT_TEST_PG"

// ErrNoServer says that no PostgreSQL server binaries were found.
var ErrNoServer = errors.New("rhizodat: find postgres server: no initdb, pg_ctl and postgres in PATH, " +
	"/usr/lib/postgresql/*/bin or pg_config --bindir (Debian: scripts/setup.sh installs them)")

// oldestMajor is the oldest PostgreSQL that still has a release when this was
// written, and the first with DROP DATABASE ... WITH (FORCE).
const oldestMajor = 13

// Binaries is one installation of PostgreSQL's server programs.
type Binaries struct {
	Dir          string
	Major, Minor int
}

// places are the usual homes of server binaries: Debian keeps them out of
// PATH, and so do the packages of postgresql.org for RPM systems and Homebrew.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/usr/local/pgsql/bin",
}

// Find returns the newest PostgreSQL server installation of this machine, or
// [ErrNoServer]. The order of the places does not matter, the version does.
func Find(ctx context.Context) (Binaries, error) {
	var best Binaries
	for _, dir := range candidates(ctx) {
		found, ok := inspect(ctx, dir)
		if ok && (found.Major > best.Major || found.Major == best.Major && found.Minor > best.Minor) {
			best = found
		}
	}
	if best.Major < oldestMajor {
		return Binaries{}, ErrNoServer
	}
	return best, nil
}

func candidates(ctx context.Context) []string {
	if dir := os.Getenv(EnvBinDir); dir != "" {
		return []string{dir}
	}
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		// Distributions link initdb into PATH without its siblings.
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, pattern := range places {
		found, _ := filepath.Glob(pattern) // the one error is a malformed pattern; these are constants
		dirs = append(dirs, found...)
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	return dirs
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)(?:\.(\d+))?`)

func inspect(ctx context.Context, dir string) (Binaries, bool) {
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
			return Binaries{}, false
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output() //nolint:gosec // a directory of this machine, not input
	if err != nil {
		return Binaries{}, false
	}
	words := versionPattern.FindSubmatch(out)
	if words == nil {
		return Binaries{}, false
	}
	major, _ := strconv.Atoi(string(words[1])) // digits, by the pattern
	minor, _ := strconv.Atoi(string(words[2])) // a beta has none: 0
	return Binaries{Dir: dir, Major: major, Minor: minor}, true
}

// String says where the binaries are and which version they are.
func (b Binaries) String() string {
	return fmt.Sprintf("PostgreSQL %d.%d in %s", b.Major, b.Minor, b.Dir)
}
