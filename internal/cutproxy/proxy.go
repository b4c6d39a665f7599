// Package cutproxy is a network that fails where a test wants it: a TCP proxy
// for PostgreSQL's protocol (version 3, without TLS) that understands enough of
// it to lose a connection after one certain request has been sent and before
// its reply, or before the request, or to hold a request or its reply back.
//
// A rule sees executions: the text of a simple query, and for the extended
// protocol the text of the statement that an Execute message runs, whenever
// and under whatever name it was parsed on that connection. Parsing alone
// matches nothing. Source: PostgreSQL manual, "Message Formats".
package cutproxy

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Proxy forwards connections to one server. All methods may be used
// concurrently with traffic; a rule applies from the next message on, on
// connections that exist already too.
type Proxy struct {
	tb       testing.TB
	target   string
	listener net.Listener
	running  sync.WaitGroup
	closed   chan struct{}

	mu      sync.Mutex
	rules   []*Rule
	links   map[*link]struct{}
	refuse  bool
	accepts int
}

// New starts a proxy to the server at target ("host:port") on a free loopback
// port. It ends with the test, and waits for its goroutines.
func New(tb testing.TB, target string) *Proxy {
	tb.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("cutproxy: listen: %v", err)
	}
	p := &Proxy{
		tb: tb, target: target, listener: listener,
		closed: make(chan struct{}), links: make(map[*link]struct{}),
	}
	p.running.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Addr is the host:port where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DSN is a postgres:// URL for the same database through the proxy.
func (p *Proxy) DSN(dsn string) string {
	p.tb.Helper()
	through, err := url.Parse(dsn)
	if err != nil || through.Host == "" {
		p.tb.Fatal("cutproxy: DSN is not a postgres:// URL") // without its text, which has a password
	}
	through.Host = p.Addr()
	query := through.Query()
	query.Set("sslmode", "disable")
	through.RawQuery = query.Encode()
	return through.String()
}

// Pass removes all rules: what is sent from now on passes. A connection whose
// replies are being held back stays so.
func (p *Proxy) Pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Refuse says whether every new connection is closed before a byte of it is
// answered, as if the host were down. Connections that exist are left alone:
// see [Proxy.Drop].
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// Drop closes both sides of every connection, those held for a lost client
// too.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.drop()
	}
}

// Accepts counts the connections that clients have made so far, the refused ones too.
func (p *Proxy) Accepts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepts
}

func (p *Proxy) close() {
	close(p.closed)
	if err := p.listener.Close(); err != nil {
		p.tb.Errorf("cutproxy: close: %v", err)
	}
	p.Drop()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		if !p.admit() {
			hangUp(client)
			continue
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) admit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepts++
	return !p.refuse
}

func (p *Proxy) serve(client net.Conn) {
	defer hangUp(client)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.tb.Context()), 10*time.Second)
	server, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
	cancel()
	if err != nil {
		return // the client sees what it would see without us: no answer
	}
	defer hangUp(server)
	l := newLink(p, client, server)
	if !p.enter(l) {
		return
	}
	l.run()
	p.leave(l)
}

// enter registers a link, unless the proxy has been closed meanwhile: Drop
// would not have seen it.
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

// lost tells whether a cancel request is for a backend whose client has been
// cut off: it would come over a network that is down.
func (p *Proxy) lost(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if own := l.cancelKey.Load(); own != nil && *own == key {
			return l.muted.Load()
		}
	}
	return false
}

func (p *Proxy) leave(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// hangUp closes a connection. Its error means that it is closed already.
func hangUp(conn net.Conn) { _ = conn.Close() }
