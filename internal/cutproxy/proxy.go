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
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

const dialTimeout = 10 * time.Second

// Proxy forwards connections to one server. All methods may be used
// concurrently with traffic; a rule applies from the next message on, on
// connections that exist already too.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup
	closed   chan struct{}

	mu      sync.Mutex
	rules   []*Rule
	links   map[*link]struct{}
	gone    map[string]struct{} // cancel keys of links that were muted and have ended
	refuse  bool
	accepts int
}

// New starts a proxy to the server at target ("host:port") on a free loopback
// port. It ends with the test, and waits for its goroutines.
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
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cutproxy: listen: %w", err)
	}
	p := &Proxy{
		target: target, listener: listener,
		closed: make(chan struct{}), links: make(map[*link]struct{}), gone: make(map[string]struct{}),
	}
	p.running.Go(p.accept)
	return p, nil
}

// Addr is the host:port where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DSN is a postgres:// URL for the same database through the proxy. It panics
// when dsn is no such URL.
func (p *Proxy) DSN(dsn string) string {
	through, err := url.Parse(dsn)
	if err != nil || through.Host == "" {
		panic(errors.New("cutproxy: DSN is not a postgres:// URL")) // without its text, which has a password
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

// Close ends the proxy and every connection, and waits for its goroutines. It
// must be called once.
func (p *Proxy) Close() error {
	close(p.closed)
	err := p.listener.Close()
	p.Drop()
	p.running.Wait()
	if err != nil {
		return fmt.Errorf("cutproxy: close: %w", err)
	}
	return nil
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
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
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
	_, gone := p.gone[key]
	return gone
}

// leave forgets a link, but not that its client was cut off: a cancel request
// that comes later is lost all the same.
func (p *Proxy) leave(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
	if key := l.cancelKey.Load(); key != nil && l.muted.Load() {
		p.gone[*key] = struct{}{}
	}
}

// hangUp closes a connection. Its error means that it is closed already.
func hangUp(conn net.Conn) { _ = conn.Close() }
