package byteproxy

import "sync"

// Manner is how a connection is cut.
type Manner int

// The manners. A client cannot tell one from another.
const (
	Before Manner = iota + 1 // in place of the request
	Behind                   // right behind it
	Reply                    // in place of its reply
)

func (m Manner) String() string {
	switch m {
	case Before:
		return "before the request"
	case Behind:
		return "behind the request"
	case Reply:
		return "before its reply"
	}
	return "no manner"
}

// Rule is armed for one request.
type Rule struct {
	text    []byte
	cut     Manner // 0: it holds
	request bool   // it holds the request, and not the reply
	hit     chan struct{}
	used    bool // guarded by the proxy
	skip    int  // requests yet; guarded by the proxy

	once    sync.Once
	release chan struct{}
}

// Cut cuts the connection of the next request that holds text.
func (p *Proxy) Cut(text string, m Manner) *Rule { return p.arm(&Rule{text: []byte(text), cut: m}) }

// HoldRequest keeps the next request that holds text from the server until
// Release: the packet that arrives late, even if its client has ended by then.
func (p *Proxy) HoldRequest(text string) *Rule {
	return p.arm(&Rule{text: []byte(text), request: true})
}

// HoldReply forwards the next request that holds text, and keeps what the server
// answers from the client until Release.
func (p *Proxy) HoldReply(text string) *Rule { return p.arm(&Rule{text: []byte(text)}) }

func (p *Proxy) arm(r *Rule) *Rule {
	r.hit, r.release = make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

// Skip lets n requests that hold the text pass before the rule applies. It is
// called before there is any.
func (r *Rule) Skip(n int) *Rule {
	r.skip = n
	return r
}

// Hit is closed when the rule has met its request, before anything of that is
// forwarded.
func (r *Rule) Hit() <-chan struct{} { return r.hit }

// Met reports whether the rule has met its request.
func (r *Rule) Met() bool {
	select {
	case <-r.hit:
		return true
	default:
		return false
	}
}

// Release lets go what is held. It may be called more than once.
func (r *Rule) Release() { r.once.Do(func() { close(r.release) }) }
