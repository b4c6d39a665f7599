// Package relay is what the proxies of the tests have in common: a loopback port,
// and for each connection there another one to the server. What passes between
// the two is for the proxy: package byteproxy reads bytes, cutproxy PostgreSQL's
// messages.
package relay

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

const dialTimeout = 10 * time.Second

// Link is one connection of a client, with the connection to the server for it.
type Link interface {
	// Run forwards until a side ends. Both are closed afterwards.
	Run()
}

// Relay forwards connections to one server. Its methods are safe for concurrent
// use, Close excepted.
type Relay[L Link] struct {
	target   string
	link     func(client, server net.Conn) L
	listener net.Listener
	running  sync.WaitGroup
	closed   chan struct{}

	mu      sync.Mutex
	links   map[*pair[L]]struct{}
	refuse  bool
	accepts int
}

// pair is a link and the connections that it uses.
type pair[L Link] struct {
	link           L
	client, server net.Conn
}

// Listen makes a relay to the server at target ("host:port") on a free loopback
// port. It takes no connection before Serve.
func Listen[L Link](ctx context.Context, target string) (*Relay[L], error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("relay: listen: %w", err)
	}
	return &Relay[L]{
		target: target, listener: listener,
		closed: make(chan struct{}), links: make(map[*pair[L]]struct{}),
	}, nil
}

// Serve begins to take connections, and makes each a link.
func (r *Relay[L]) Serve(link func(client, server net.Conn) L) {
	r.link = link
	r.running.Go(r.accept)
}

// EndWith closes the relay when the test ends, and waits for its goroutines.
func (r *Relay[L]) EndWith(tb testing.TB) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
}

// Addr is the host:port where the relay listens.
func (r *Relay[L]) Addr() string { return r.listener.Addr().String() }

// Refuse says whether every new connection is closed before a byte of it is
// answered, as if the host were down. Connections that exist are left alone:
// see [Relay.Drop].
func (r *Relay[L]) Refuse(refuse bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

// Accepts counts the connections that clients have made so far, the refused ones too.
func (r *Relay[L]) Accepts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepts
}

// Each calls f with every link that runs. f must not call the relay.
func (r *Relay[L]) Each(f func(L)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.links {
		f(p.link)
	}
}

// Drop closes both sides of every connection.
func (r *Relay[L]) Drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.links {
		p.drop()
	}
}

// Closed is closed when the relay ends: a link that waits must not wait on.
func (r *Relay[L]) Closed() <-chan struct{} { return r.closed }

// Close ends the relay and every connection, and waits for its goroutines. It
// must be called once.
func (r *Relay[L]) Close() error {
	close(r.closed)
	err := r.listener.Close()
	r.Drop()
	r.running.Wait()
	if err != nil {
		return fmt.Errorf("relay: close: %w", err)
	}
	return nil
}

func (r *Relay[L]) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		if !r.admit() {
			HangUp(client)
			continue
		}
		r.running.Go(func() { r.serve(client) })
	}
}

func (r *Relay[L]) admit() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepts++
	return !r.refuse
}

func (r *Relay[L]) serve(client net.Conn) {
	defer HangUp(client)
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	server, err := new(net.Dialer).DialContext(ctx, "tcp", r.target)
	cancel()
	if err != nil {
		return // the client sees what it would see without us: no answer
	}
	p := &pair[L]{link: r.link(client, server), client: client, server: server}
	defer p.drop()
	if r.enter(p) {
		p.link.Run()
		r.leave(p)
	}
}

// enter registers a link, unless the relay has been closed meanwhile: its Drop
// would not have seen it.
func (r *Relay[L]) enter(p *pair[L]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.closed:
		return false
	default:
		r.links[p] = struct{}{}
		return true
	}
}

func (r *Relay[L]) leave(p *pair[L]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, p)
}

func (p *pair[L]) drop() {
	HangUp(p.client)
	HangUp(p.server)
}

// HangUp closes a connection. Its error means that it is closed already.
func HangUp(conn net.Conn) { _ = conn.Close() }
