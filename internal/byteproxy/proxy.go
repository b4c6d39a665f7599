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
	"net"
	"sync"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/relay"
)

// Proxy forwards connections to one server. Its methods may be used while there
// is traffic; a rule applies from the next bytes on.
type Proxy struct {
	*relay.Relay[*link]

	mu    sync.Mutex
	rules []*Rule
}

// New starts a proxy to the server at target ("host:port") on a free loopback
// port. It ends with the test.
func New(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p, err := Listen(tb.Context(), target)
	if err != nil {
		tb.Fatal(err)
	}
	p.EndWith(tb)
	return p
}

// Listen is New for a program that is not a test; it ends with Close.
func Listen(ctx context.Context, target string) (*Proxy, error) {
	r, err := relay.Listen[*link](ctx, target)
	if err != nil {
		return nil, err
	}
	p := &Proxy{Relay: r}
	p.Serve(func(client, server net.Conn) *link { return &link{proxy: p, client: client, server: server} })
	return p, nil
}

// Desert closes the client's side of every connection and keeps the server's:
// a network that has let the client down and not told the server.
func (p *Proxy) Desert() { p.Each((*link).desert) }

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
