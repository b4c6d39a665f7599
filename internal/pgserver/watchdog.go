package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// watchdogScript waits for the end of its standard input, then stops the
// server whose directory is $1 and removes the directory. The process id in
// its pid file $2 may be stale, so it is signalled only while that process
// still names the directory in its command line. Interrupts of the terminal
// are ignored: what ends the watchdog is the pipe, and nothing else.
const watchdogScript = `
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

// watchdog ends a server when its pipe closes.
type watchdog struct {
	pipe *os.File
	cmd  *exec.Cmd
}

// watch starts the watchdog of the server in dir, which writes its process id
// to the file at pidPath.
func watch(dir, pidPath string) (*watchdog, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("rhizodat: make pipe of watchdog: %w", err)
	}
	// Not bound to a context: the watchdog must outlive whoever starts it.
	cmd := exec.Command("sh", "-c", watchdogScript, "watchdog", dir, pidPath) //nolint:gosec,noctx // constant script; see above
	cmd.Dir = "/"
	cmd.Stdin = reader
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	if closeErr := reader.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("rhizodat: start watchdog: %w", errors.Join(err, writer.Close()))
	}
	return &watchdog{pipe: writer, cmd: cmd}, nil
}

// end lets the watchdog do its work and waits for it.
func (w *watchdog) end() error {
	if err := errors.Join(w.pipe.Close(), w.cmd.Wait()); err != nil {
		return fmt.Errorf("rhizodat: end watchdog: %w", err)
	}
	return nil
}
