package byteproxy_test

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/byteproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that answers every line with "got " and the line. It notes
// what it has read.
type echo struct {
	listener net.Listener
	mu       sync.Mutex
	read     []string
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: listener}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { e.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return e
}

func (e *echo) serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		e.mu.Lock()
		e.read = append(e.read, lines.Text())
		e.mu.Unlock()
		_, _ = fmt.Fprintf(conn, "got %s\n", lines.Text())
	}
}

func (e *echo) has(line string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.read, line)
}

// client is a connection through a proxy.
type client struct {
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *byteproxy.Proxy) *client {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return &client{conn, bufio.NewReader(conn)}
}

func (c *client) say(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		t.Fatal(err)
	}
}

// answered reports whether a line is answered.
func (c *client) answered(line string) bool {
	got, err := c.lines.ReadString('\n')
	return err == nil && got == "got "+line+"\n"
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		manner byteproxy.Manner
		read   bool // the server has read the request
	}{{byteproxy.Before, false}, {byteproxy.Behind, true}, {byteproxy.Reply, true}} {
		t.Run(c.manner.String(), func(t *testing.T) {
			e := newEcho(t)
			p := byteproxy.New(t, e.listener.Addr().String())
			rule := p.Cut("fatal", c.manner)
			conn := dial(t, p)
			conn.say(t, "one")
			if !conn.answered("one") || rule.Met() {
				t.Error("another request does not pass")
			}
			conn.say(t, "a fatal one")
			if conn.answered("a fatal one") || !rule.Met() {
				t.Error("the request was answered")
			}
			if c.read {
				await.Until(t, "the server has the request", func() bool { return e.has("a fatal one") })
			} else if e.has("a fatal one") {
				t.Error("the server has the request")
			}
			again := dial(t, p)
			again.say(t, "a fatal one")
			if !again.answered("a fatal one") {
				t.Error("the rule holds twice")
			}
		})
	}
}

func TestHold(t *testing.T) {
	for _, request := range []bool{true, false} {
		t.Run(fmt.Sprintf("request %t", request), func(t *testing.T) {
			e := newEcho(t)
			p := byteproxy.New(t, e.listener.Addr().String())
			hold := p.HoldReply
			if request {
				hold = p.HoldRequest
			}
			rule, conn := hold("slow"), dial(t, p)
			conn.say(t, "slow")
			<-rule.Hit()
			other := dial(t, p)
			other.say(t, "quick")
			if !other.answered("quick") {
				t.Error("another connection is held up")
			}
			if request && e.has("slow") {
				t.Error("the server has a request that is held")
			}
			if !request {
				await.Until(t, "the server has the request", func() bool { return e.has("slow") })
			}
			rule.Release()
			rule.Release()
			if !conn.answered("slow") {
				t.Error("no answer after the release")
			}
		})
	}
}

// A rule may be for a later request of the same text.
func TestSkip(t *testing.T) {
	e := newEcho(t)
	p := byteproxy.New(t, e.listener.Addr().String())
	rule := p.Cut("again", byteproxy.Before).Skip(2)
	conn := dial(t, p)
	for _, line := range []string{"again 1", "again 2"} {
		conn.say(t, line)
		if !conn.answered(line) || rule.Met() {
			t.Errorf("%s does not pass", line)
		}
	}
	conn.say(t, "again 3")
	if conn.answered("again 3") || !rule.Met() {
		t.Error("the third request passes")
	}
}

// A client that is let down ends, and its server does not notice.
func TestDesert(t *testing.T) {
	e := newEcho(t)
	p := byteproxy.New(t, e.listener.Addr().String())
	rule, conn := p.HoldReply("slow"), dial(t, p)
	conn.say(t, "slow")
	<-rule.Hit()
	p.Desert()
	if conn.answered("slow") {
		t.Error("a client that was let down has its answer")
	}
	await.Until(t, "the server has the request", func() bool { return e.has("slow") })
	rule.Release()
	next := dial(t, p)
	next.say(t, "next")
	if !next.answered("next") {
		t.Error("a new connection does not pass")
	}
}
