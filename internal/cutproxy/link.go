package cutproxy

import (
	"bufio"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/relay"
)

// link is one connection of a client and the proxy's connection to the server
// for it. Requests are forwarded by the goroutine of Run, replies by another one.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	fromClient     *bufio.Reader
	fromServer     *bufio.Reader
	names          statements
	asked          int64 // requests forwarded that end in ReadyForQuery; of the requests' goroutine

	// muted is set before a request is forwarded whose reply must not be
	// delivered: so whatever answers it is read after this is set.
	muted atomic.Bool
	// lastReady is the number of the ReadyForQuery that answers the last
	// request of a lost client, 0 while there is no such client.
	lastReady atomic.Int64
	// cancelKey is what a cancel request for this backend must hold.
	cancelKey atomic.Pointer[string]
}

func (p *Proxy) newLink(client, server net.Conn) *link {
	return &link{
		proxy: p, client: client, server: server,
		fromClient: bufio.NewReader(client), fromServer: bufio.NewReader(server),
		names: statements{parsed: map[string]string{}, bound: map[string]string{}},
	}
}

// Run forwards until a side ends.
func (l *link) Run() {
	if !l.start() {
		return
	}
	defer l.proxy.remember(l)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		l.replies()
	}()
	held := l.requests()
	relay.HangUp(l.client)
	if !held {
		l.endRequests()
	}
	<-finished
}

// endRequests tells the server that no request follows. The other direction
// stays open until the server closes it: closing a socket that has unread
// replies resets the connection, and the server may then lose the request that it
// was to receive.
func (l *link) endRequests() {
	if half, ok := l.server.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // fails only when the server is gone
	}
}

// start passes the first message. A wish for encryption is declined, as a
// server without TLS does, because the proxy has to read what follows.
func (l *link) start() bool {
	for {
		first, err := readFirst(l.fromClient)
		if err != nil {
			return false
		}
		if code := first.code(); code == codeTLS || code == codeGSS {
			if _, err := l.client.Write([]byte{'N'}); err != nil {
				return false
			}
			continue
		}
		cancel := first.code() == codeCancel
		if cancel && l.proxy.lost(string(first.body[4:])) {
			return false
		}
		if _, err := l.server.Write(first.raw); err != nil {
			return false
		}
		if cancel {
			// The client waits for the end of the connection as for an answer.
			_, _ = io.Copy(io.Discard, l.fromServer)
			return false
		}
		l.asked = 1 // a start is answered by ReadyForQuery too
		return true
	}
}

// requests forwards the client's messages until the connection ends, and tells whether the
// server's side is to be held for a client cut off.
func (l *link) requests() (held bool) {
	var verdict *Rule // of the request that is being forwarded
	for {
		m, err := readMessage(l.fromClient)
		if err != nil {
			return false
		}
		if sql, ok := l.names.executes(m); ok && verdict == nil {
			verdict = l.proxy.decide(sql)
			if verdict != nil && !l.obey(verdict) {
				return false
			}
		}
		if m.kind == msgQuery || m.kind == msgSync || m.kind == msgCall {
			l.asked++
		}
		if _, err := l.server.Write(m.raw); err != nil {
			return false
		}
		if verdict == nil || m.kind != msgQuery && m.kind != msgSync && m.kind != msgFlush {
			continue
		}
		if verdict.action == cutAfter {
			return verdict.hold
		}
		verdict = nil
	}
}

// obey does what a rule demands before the request is forwarded, and tells
// whether it is to be forwarded at all.
func (l *link) obey(r *Rule) bool {
	switch r.action {
	case cutBefore:
		return false
	case delay:
		timer := time.NewTimer(r.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.proxy.Closed():
		}
	case swallow:
		l.muted.Store(true)
	case cutAfter:
		l.muted.Store(true)
		if r.hold {
			l.lastReady.Store(l.asked + 1)
		}
	}
	return true
}

// replies forwards the server's messages until the connection ends.
func (l *link) replies() {
	var readies int64
	for {
		m, err := readMessage(l.fromServer)
		if err != nil {
			break
		}
		switch m.kind {
		case msgReady:
			readies++
		case msgKey:
			key := string(m.body)
			l.cancelKey.Store(&key)
		}
		if last := l.lastReady.Load(); last != 0 && readies >= last {
			break
		}
		if l.muted.Load() {
			continue
		}
		if _, err := l.client.Write(m.raw); err != nil {
			break
		}
	}
	relay.HangUp(l.client)
	relay.HangUp(l.server)
}
