package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// removeScript waits for the end of its standard input and removes the
// directory $1 until it stays away: a server that ends by the end of its own
// standard input writes there for a moment yet, and makes what directories it
// misses. Interrupts of the terminal are ignored: what ends the watchdog is the
// pipe, and nothing else.
const removeScript = `
trap '' HUP INT TERM
cat >/dev/null
away=0
tries=0
while [ "$away" -lt 10 ] && [ "$tries" -lt 100 ]; do
	rm -rf "$1" 2>/dev/null
	sleep 0.1
	if [ -e "$1" ]; then away=0; else away=$((away + 1)); fi
	tries=$((tries + 1))
done
`

// stopScript waits for the end of its standard input, then stops the server
// whose directory is $1 and removes the directory. The process id in its pid
// file $2 may be stale, so it is signalled only while that process still names
// the server's data directory in its command line.
const stopScript = `
trap '' HUP INT TERM
dir=$1
pidfile=$2
cat >/dev/null
alive() {
	if [ -r /proc/self/cmdline ]; then
		args=$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)
	else
		args=$(ps -ww -o args= -p "$pid" 2>/dev/null)
	fi
	case $args in *"$dir/data"*) return 0 ;; esac
	return 1
}
pid=$(head -n 1 "$pidfile" 2>/dev/null)
if [ -n "$pid" ] && alive; then
	kill -QUIT "$pid"
	kill -CONT "$pid"
	tries=0
	while alive && [ "$tries" -lt 100 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	if alive; then kill -KILL "$pid"; fi
fi
tries=0
until rm -rf "$dir" 2>/dev/null || [ "$tries" -ge 20 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
`

// Dir is a server's directory. A watchdog removes it when its owner's process
// has ended, however that was.
type Dir struct {
	path  string
	stops bool // the watchdog also stops the server
	pipe  *os.File
	dog   *exec.Cmd
}

// MakeDir makes a directory for servers started by [Start]; pattern is that of
// [os.MkdirTemp].
func MakeDir(pattern string) (*Dir, error) { return makeDir(pattern, removeScript) }

// MakeDirOf makes a directory for a server that leaves its launcher's sight.
// Its process id is the first line of the file pid within the directory, and its
// command line names the directory's data/ or what lies there: by these its
// watchdog finds and stops it.
func MakeDirOf(pattern, pid string) (*Dir, error) { return makeDir(pattern, stopScript, pid) }

func makeDir(pattern, script string, pid ...string) (*Dir, error) {
	path, err := os.MkdirTemp("", pattern)
	if err != nil {
		return nil, fmt.Errorf("rhizodat: make directory of server: %w", err)
	}
	d := &Dir{path: path}
	args := []string{"-c", script, "watchdog", path}
	for _, name := range pid {
		d.stops = true
		args = append(args, d.Path(name))
	}
	if err := d.watch(args); err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return d, nil
}

// watch starts the watchdog.
func (d *Dir) watch(args []string) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("rhizodat: make pipe of watchdog: %w", err)
	}
	// Not bound to a context: the watchdog must outlive whoever starts it.
	d.dog = exec.Command("sh", args...) //nolint:gosec,noctx // constant scripts; see above
	d.dog.Dir = "/"
	d.dog.Stdin = reader
	d.dog.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = d.dog.Start()
	if closeErr := reader.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("rhizodat: start watchdog: %w", errors.Join(err, writer.Close()))
	}
	d.pipe = writer
	return nil
}

// Path is that of the directory, or of a name within it.
func (d *Dir) Path(name ...string) string {
	return filepath.Join(append([]string{d.path}, name...)...)
}

// Remove removes the directory; that of [MakeDirOf] stops its server first. The
// process of [Start] must have ended.
func (d *Dir) Remove() error {
	if d.stops {
		if err := errors.Join(d.pipe.Close(), d.dog.Wait()); err != nil {
			return fmt.Errorf("rhizodat: end watchdog: %w", err)
		}
		return nil
	}
	// Nobody writes there any more, so the watchdog need not be waited for.
	err := errors.Join(os.RemoveAll(d.path), d.pipe.Close())
	go func() { _ = d.dog.Wait() }()
	if err != nil {
		return fmt.Errorf("rhizodat: end watchdog: %w", err)
	}
	return nil
}
