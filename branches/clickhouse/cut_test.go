package clickhouse_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

// cutter stands between client and server and cuts one connection, once, at the
// request that holds a text.
type cutter struct {
	server string
	addr   string

	mu   sync.Mutex
	at   []byte // nil: it has cut, or is not armed
	when string
	cuts int
}

// When a cutter cuts.
const (
	beforeRequest = "before the request"
	behindRequest = "behind the request"
	beforeReply   = "before its reply"
)

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{server: server, addr: listener.Addr().String()}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go c.serve(t.Context(), conn)
		}
	}()
	return c
}

func (c *cutter) arm(at, when string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.when = []byte(at), when
}

// meets reports whether a chunk is the one to cut at, and when.
func (c *cutter) meets(chunk []byte) (when string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil || !bytes.Contains(chunk, c.at) {
		return ""
	}
	c.at = nil
	c.cuts++
	return c.when
}

func (c *cutter) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	var mute sync.Once
	muted := make(chan struct{}) // closed: the next reply is the last
	go func() {
		defer client.Close()
		chunk := make([]byte, 1<<16)
		for {
			n, err := server.Read(chunk)
			select {
			case <-muted:
				return
			default:
			}
			if _, writeErr := client.Write(chunk[:n]); err != nil || writeErr != nil {
				return
			}
		}
	}()
	chunk := make([]byte, 1<<20)
	for {
		n, err := client.Read(chunk)
		when := c.meets(chunk[:n])
		if when == beforeRequest {
			return
		}
		if when == beforeReply {
			mute.Do(func() { close(muted) })
		}
		if _, writeErr := server.Write(chunk[:n]); err != nil || writeErr != nil || when == behindRequest {
			return
		}
	}
}

// The network is cut at the insert and at the marker, before and behind: a
// decided branch comes to its rows, and a commit of one phase is settled as what
// it has become.
func TestNetworkCut(t *testing.T) {
	for _, protocol := range chtest.Protocols {
		for _, when := range []string{beforeRequest, behindRequest, beforeReply} {
			for _, at := range []string{"r` (`k`", "dat_applied` (dat_txn"} {
				t.Run(fmt.Sprintf("%s, %s, %s", protocol, when, strings.Trim(at, "` (")), func(t *testing.T) {
					p := newPlace(t, chtest.Server(t))
					p.table(t, "r", 0)
					c := newCutter(t, p.cluster.Addr(protocol))
					dsn := strings.Replace(p.cluster.DSN(protocol, p.database), p.cluster.Addr(protocol), c.addr, 1)
					store, err := clickhouse.Open("s", dsn, clickhouse.Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer store.Close()
					p.cutFinish(t, store, c, at, when)
					p.cutCommit(t, store, c, at, when)
					if c.cuts != 2 {
						t.Errorf("cut %d times, want 2", c.cuts)
					}
				})
			}
		}
	}
}

func (p place) cutFinish(t *testing.T, store *clickhouse.Store, c *cutter, at, when string) {
	t.Helper()
	ref := p.staged(t, store, "r", 50)
	c.arm(at, when)
	mustFinish(t, store, ref)
	p.holds(t, "r", ref, 50)
	p.fate(t, store, ref.Txn, branches.FateApplied)
}

func (p place) cutCommit(t *testing.T, store *clickhouse.Store, c *cutter, at, when string) {
	t.Helper()
	session := connect(t, store)
	u := begin(t, session)
	execute(t, session, "INSERT INTO r (k, s) VALUES (1, 'a'), (2, 'b')")
	u.stage(t, true)
	c.arm(at, when)
	err := u.Commit(t.Context())
	fate := branches.FateApplied
	switch {
	case branches.IsUnknown(err):
		if fate, err = store.Settle(t.Context(), u.txn); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		fate = branches.FateAbsent // it is proved that nothing took effect
	}
	want := map[branches.Fate]int{branches.FateApplied: 2}[fate]
	p.holds(t, "r", u.ref(), want)
	p.fate(t, store, u.txn, fate)
}
