// Package byteproxy is a network that fails where a test wants it: a TCP proxy
// that loses a connection at one certain request, or holds a request or its
// reply back.
//
// It knows no protocol, and sees bytes and not messages. A rule finds a request by
// a text that stands in it, so the text must be short and be sent as it is, without
// compression; both protocols of ClickHouse do so, and Bolt. Package cutproxy is
// for PostgreSQL, where a text is parsed once and executed later.
package byteproxy

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

const dialTimeout = 10 * time.Second

// Proxy forwards connections to one server. Its methods may be used while there
// is traffic; a rule applies from the next bytes on.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup
	closed   chan struct{}

	mu    sync.Mutex
	rules []*Rule
	links map[*link]struct{}
}

// New starts a proxy to the server at target ("host:port") on a free loopback
// port. It ends with the test.
func New(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p, err := Listen(tb.Context(), target)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// Listen is New for a program that is not a test; it ends with Close.
func Listen(ctx context.Context, target string) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("byteproxy: listen: %w", err)
	}
	p := &Proxy{target: target, listener: listener, closed: make(chan struct{}), links: map[*link]struct{}{}}
	p.running.Go(p.accept)
	return p, nil
}

// Addr is the host:port where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Desert closes the client's side of every connection and keeps the server's:
// a network that has let the client down and not told the server.
func (p *Proxy) Desert() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.desert()
	}
}

// Close ends the proxy and every connection, and waits for its goroutines. It
// must be called once.
func (p *Proxy) Close() error {
	close(p.closed)
	err := p.listener.Close()
	p.mu.Lock()
	for l := range p.links {
		l.drop()
	}
	p.mu.Unlock()
	p.running.Wait()
	if err != nil {
		return fmt.Errorf("byteproxy: close: %w", err)
	}
	return nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer hangUp(client)
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	server, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
	cancel()
	if err != nil {
		return // the client sees what it would see without us: no answer
	}
	l := &link{proxy: p, client: client, server: server}
	defer l.drop()
	if p.enter(l) {
		l.run()
		p.leave(l)
	}
}

// enter registers a link, unless the proxy has been closed meanwhile.
func (p *Proxy) enter(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return false
	default:
		p.links[l] = struct{}{}
		return true
	}
}

func (p *Proxy) leave(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// meets takes the first unused rule whose text stands in what a client sent.
func (p *Proxy) meets(sent []byte) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if r.used || !bytes.Contains(sent, r.text) {
			continue
		}
		if r.skip--; r.skip < 0 {
			r.used = true
			close(r.hit)
			return r
		}
	}
	return nil
}

// hangUp closes a connection. Its error means that it is closed already.
func hangUp(conn net.Conn) { _ = conn.Close() }
