package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// serve runs the engine until it is stopped.
func serve(o options) error {
	e, err := load(o.lib)
	if err != nil {
		return err
	}
	scratch, err := scratchDir(o.dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if o.config == "" {
		// clickhouse-local otherwise picks up ./config.xml or one under $HOME or /etc.
		o.config = filepath.Join(scratch, "config.xml")
		if err := os.WriteFile(o.config, []byte("<clickhouse/>\n"), 0o600); err != nil {
			return err
		}
	}
	parked, stop, err := stopper(o, scratch)
	if err != nil {
		return err
	}
	defer stop()
	tcp := o.tcp
	var front net.Listener
	if !o.bare {
		if front, err = net.Listen("tcp", net.JoinHostPort(o.host, fmt.Sprint(o.tcp))); err != nil {
			return err
		}
		tcp = 0
	}
	// The engine writes its ports into this fifo after both listeners are open.
	fifo := filepath.Join(scratch, "ports")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		return err
	}
	go announce(o, fifo, front)

	query := fmt.Sprintf(`SYSTEM START LISTEN HTTP;
SYSTEM START LISTEN TCP;
SELECT getServerPort('tcp_port') AS tcp, getServerPort('http_port') AS http INTO OUTFILE '%s' APPEND FORMAT JSONEachRow;
SELECT count() FROM file('/proc/self/fd/%d', 'LineAsString', 'l String')
  SETTINGS max_threads = 1, max_execution_time = 0, storage_file_read_method = 'read' FORMAT Null`, fifo, parked.Fd())
	args := []string{
		"--config-file", o.config, "--listen_host", o.host,
		"--http_port", fmt.Sprint(o.http), "--tcp_port", fmt.Sprint(tcp),
	}
	if o.dir != "" {
		args = append(args, "--path", o.dir)
	}
	err = e.local(append(args, "--query", query)...)
	runtime.KeepAlive(parked) // its finalizer would close the pipe and stop the server
	return err
}

// scratchDir lies beside the data, so that whoever owns that removes what a
// SIGKILL leaves.
func scratchDir(data string) (string, error) {
	base := ""
	if data != "" {
		base = filepath.Dir(data)
		if err := os.MkdirAll(base, 0o755); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(base, ".chserver")
}

// stopper makes the pipe on which the engine's main query parks, and closes it
// when the server is to stop.
func stopper(o options, scratch string) (parked *os.File, stop func(), err error) {
	parked, held, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	stop = sync.OnceFunc(func() {
		held.Close()
		// The engine waits up to 5 s for idle clients, whatever it is configured to.
		time.AfterFunc(o.grace, func() { os.RemoveAll(scratch); os.Exit(0) })
	})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		stop()
		<-signals
		os.Exit(130)
	}()
	if o.stdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	return parked, stop, nil
}

// announce says where the server listens, once it does.
func announce(o options, fifo string, listener net.Listener) {
	f, err := os.Open(fifo)
	if err != nil {
		return
	}
	defer f.Close()
	var port struct{ TCP, HTTP int }
	if json.NewDecoder(f).Decode(&port) != nil {
		return
	}
	if listener != nil {
		go frontTCP(listener, net.JoinHostPort(o.host, fmt.Sprint(port.TCP)), net.JoinHostPort(o.host, fmt.Sprint(port.HTTP)))
		port.TCP = listener.Addr().(*net.TCPAddr).Port
	}
	line, err := json.Marshal(map[string]int{"tcp": port.TCP, "http": port.HTTP, "pid": os.Getpid()})
	if err != nil {
		return
	}
	line = append(line, '\n')
	if o.ready != "" {
		// Renamed into place: who waits for the file never reads half of it.
		partial := o.ready + ".tmp"
		if os.WriteFile(partial, line, 0o644) == nil {
			_ = os.Rename(partial, o.ready)
		}
	}
	_, _ = os.Stdout.Write(line)
}
