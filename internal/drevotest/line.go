package drevotest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Line is a network between clients and a server that can be cut.
type Line struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
	work  sync.WaitGroup
}

// NewLine leads to target, a host:port. It ends with the test.
func NewLine(tb testing.TB, target string) *Line {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	l := &Line{listener: listener, target: target}
	l.work.Go(l.serve)
	tb.Cleanup(func() {
		_ = listener.Close()
		l.Cut()
		l.work.Wait()
	})
	return l
}

// Addr is where clients connect to.
func (l *Line) Addr() string { return l.listener.Addr().String() }

// Cut ends every connection, and every new one at once, until Mend.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// Mend lets new connections through.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

func (l *Line) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.target) //nolint:noctx // ends with the listener
		if err != nil || !l.keep(client, server) {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		l.work.Go(func() { pipe(client, server) })
		l.work.Go(func() { pipe(server, client) })
	}
}

func (l *Line) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.conns = append(l.conns, conns...)
	return true
}

// pipe copies until either end closes, and closes both.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}
