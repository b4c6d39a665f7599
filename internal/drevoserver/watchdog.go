package drevoserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// watchdogScript waits for the end of its standard input and removes the
// server's directory $1 until it stays away: the server, which ends by the end
// of its own standard input, writes there for a moment yet, and makes what
// directories it misses.
const watchdogScript = `
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

// watchdog removes a server's directory when its pipe closes.
type watchdog struct {
	pipe *os.File
	cmd  *exec.Cmd
}

func watch(dir string) (*watchdog, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("rhizodat: make pipe of watchdog: %w", err)
	}
	// Not bound to a context: the watchdog must outlive whoever starts it.
	cmd := exec.Command("sh", "-c", watchdogScript, "watchdog", dir) //nolint:gosec,noctx // constant script; see above
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

// end removes the directory of a server that is gone: nobody writes there, so
// the watchdog need not wait.
func (w *watchdog) end(dir string) error {
	err := errors.Join(os.RemoveAll(dir), w.pipe.Close())
	go func() { _ = w.cmd.Wait() }()
	if err != nil {
		return fmt.Errorf("rhizodat: end watchdog: %w", err)
	}
	return nil
}
