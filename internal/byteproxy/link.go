package byteproxy

import (
	"net"
	"sync"

	"github.com/rhizodat/rhizodat-go/internal/relay"
)

// readSize is larger than a request's text, so that it comes in one read.
const readSize = 1 << 20

// link is one connection and its other side.
type link struct {
	proxy          *Proxy
	client, server net.Conn

	mu       sync.Mutex
	rule     *Rule // decides what becomes of the replies; nil: they pass
	deserted bool
}

// Run forwards until a side ends. What was held is forwarded when it is released,
// though the client may be gone.
func (l *link) Run() {
	var replies sync.WaitGroup
	replies.Go(l.answer)
	chunk := make([]byte, readSize)
	for {
		n, err := l.client.Read(chunk)
		if n > 0 && !l.pass(chunk[:n]) || err != nil {
			break
		}
	}
	if !l.isDeserted() {
		relay.HangUp(l.server)
	}
	replies.Wait()
}

// pass forwards what the client sent. false: the connection is over.
func (l *link) pass(sent []byte) bool {
	r := l.proxy.meets(sent)
	switch {
	case r == nil:
	case r.cut == Before:
		return false
	case r.request:
		if !l.await(r) {
			return false
		}
	default:
		l.mu.Lock()
		l.rule = r
		l.mu.Unlock()
	}
	_, err := l.server.Write(sent)
	return err == nil && (r == nil || r.cut != Behind)
}

// answer forwards what the server answers.
func (l *link) answer() {
	defer relay.HangUp(l.client)
	chunk := make([]byte, readSize)
	for {
		n, err := l.server.Read(chunk)
		if n > 0 && !l.reply(chunk[:n]) || err != nil {
			return
		}
	}
}

func (l *link) reply(answered []byte) bool {
	l.mu.Lock()
	r := l.rule
	l.mu.Unlock()
	switch {
	case r == nil:
	case r.cut != 0:
		return false
	case !l.await(r):
		return false
	}
	if _, err := l.client.Write(answered); err != nil {
		return l.isDeserted() // then the server is heard out
	}
	return true
}

// await waits until a rule lets go. false: the proxy has ended.
func (l *link) await(r *Rule) bool {
	select {
	case <-r.release:
		return true
	case <-l.proxy.Closed():
		return false
	}
}

func (l *link) desert() {
	l.mu.Lock()
	l.deserted = true
	l.mu.Unlock()
	relay.HangUp(l.client)
}

func (l *link) isDeserted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deserted
}
