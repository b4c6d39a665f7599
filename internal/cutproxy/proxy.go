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
	"net/url"
	"sync"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/relay"
)

// Proxy forwards connections to one server. All methods may be used
// concurrently with traffic; a rule applies from the next message on, on
// connections that exist already too.
type Proxy struct {
	*relay.Relay[*link]

	mu    sync.Mutex
	rules []*Rule
	gone  map[string]struct{} // cancel keys of links that were muted and have ended
}

// New starts a proxy to the server at target ("host:port") on a free loopback
// port. It ends with the test, and waits for its goroutines.
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
	p := &Proxy{Relay: r, gone: make(map[string]struct{})}
	p.Serve(p.newLink)
	return p, nil
}

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

// lost tells whether a cancel request is for a backend whose client has been
// cut off: it would come over a network that is down.
func (p *Proxy) lost(key string) bool {
	var found, muted bool
	p.Each(func(l *link) {
		if own := l.cancelKey.Load(); own != nil && *own == key {
			found, muted = true, l.muted.Load()
		}
	})
	if found {
		return muted
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, gone := p.gone[key]
	return gone
}

// remember keeps of a link that ends that its client was cut off: a cancel
// request that comes later is lost all the same. The relay still has the link, so
// that [Proxy.lost] finds it in one of the two places.
func (p *Proxy) remember(l *link) {
	key := l.cancelKey.Load()
	if key == nil || !l.muted.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone[*key] = struct{}{}
}
