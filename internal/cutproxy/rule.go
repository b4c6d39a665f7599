package cutproxy

import (
	"strings"
	"sync"
	"time"
)

// Match tells whether a rule applies to the execution of a statement.
type Match func(sql string) bool

// Prefix matches statements that begin with text, whatever the case of
// letters and the blanks before them.
func Prefix(text string) Match {
	return func(sql string) bool {
		sql = strings.TrimLeft(sql, " \t\r\n")
		return len(sql) >= len(text) && strings.EqualFold(sql[:len(text)], text)
	}
}

// Contains matches statements that hold text, whatever the case of letters.
func Contains(text string) Match {
	text = strings.ToLower(text)
	return func(sql string) bool { return strings.Contains(strings.ToLower(sql), text) }
}

type action int

const (
	cutBefore action = iota + 1
	cutAfter
	swallow
	delay
)

// Rule is one armed rule of a [Proxy]. The first rule that matches a request
// and has not been used up decides it.
type Rule struct {
	match  Match
	action action
	hold   bool
	wait   time.Duration
	times  int // 0: without limit

	mu   sync.Mutex
	hits int
	hit  chan struct{}
}

// Option changes a rule as it is armed.
type Option func(*Rule)

// HoldServer keeps the server's side of a cut connection open until the
// backend has answered the request; the answer is thrown away. Without it the
// server sees the end of the connection right behind the request, which it
// still carries out.
func HoldServer() Option { return func(r *Rule) { r.hold = true } }

// Times disarms the rule after n hits.
func Times(n int) Option { return func(r *Rule) { r.times = n } }

// CutAfter forwards a matching request whole (in the extended protocol up to
// its Sync or Flush) and closes the connection without its reply: the lost reply.
// The cancel request that pgx sends for a broken connection is lost too, as
// it is when a network fails.
func (p *Proxy) CutAfter(match Match, options ...Option) *Rule {
	return p.arm(&Rule{match: match, action: cutAfter}, options)
}

// CutBefore closes the connection in place of forwarding a matching request:
// the client cannot tell it from a lost reply.
func (p *Proxy) CutBefore(match Match, options ...Option) *Rule {
	return p.arm(&Rule{match: match, action: cutBefore}, options)
}

// Swallow forwards a matching request, and nothing that the server answers
// from then on reaches the client, while the connection stays open: a network
// that neither works nor says so. Cancel requests for it are lost.
func (p *Proxy) Swallow(match Match, options ...Option) *Rule {
	return p.arm(&Rule{match: match, action: swallow}, options)
}

// Delay forwards a matching request after wait, even if its client has given
// up by then: the packet that arrives late.
func (p *Proxy) Delay(match Match, wait time.Duration, options ...Option) *Rule {
	return p.arm(&Rule{match: match, action: delay, wait: wait}, options)
}

// Hits counts the requests that the rule has decided.
func (r *Rule) Hits() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hits
}

// Hit is closed at the first hit, before anything of the request is forwarded.
func (r *Rule) Hit() <-chan struct{} { return r.hit }

func (p *Proxy) arm(r *Rule, options []Option) *Rule {
	r.hit = make(chan struct{})
	for _, option := range options {
		option(r)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

// decide finds the rule for an execution; nil means that it passes.
func (p *Proxy) decide(sql string) *Rule {
	p.mu.Lock()
	rules := p.rules
	p.mu.Unlock()
	for _, r := range rules {
		if r.match(sql) && r.take() {
			return r
		}
	}
	return nil
}

func (r *Rule) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times > 0 && r.hits == r.times {
		return false
	}
	if r.hits++; r.hits == 1 {
		close(r.hit)
	}
	return true
}
