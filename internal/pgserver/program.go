package pgserver

import (
	"fmt"
	"os"
	"strings"
)

// ProgramError is the failure of one of PostgreSQL's server programs.
type ProgramError struct {
	Program string
	Output  string // the end of what it printed
	Log     string // the end of the server's log
	Err     error
}

func (e *ProgramError) Error() string {
	return fmt.Sprintf("rhizodat: run %s: %v\n%s%s", e.Program, e.Err, e.Output, e.Log)
}

// Unwrap gives the error of the process.
func (e *ProgramError) Unwrap() error { return e.Err }

// environment leaves out PGDATA, PGPORT and their like: they would point the
// programs at somebody's real server.
func environment(home string) []string {
	env := []string{"LC_ALL=C", "HOME=" + home}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); name == "PATH" || name == "LD_LIBRARY_PATH" || name == "TMPDIR" {
			env = append(env, pair)
		}
	}
	return env
}

// tail is the end of a file, as far as it can be read.
func tail(path string) string {
	const most = 2000
	text, err := os.ReadFile(path) //nolint:gosec // a path of ours
	if err != nil {
		return ""
	}
	return string(text[max(0, len(text)-most):])
}
