package relay_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rhizodat/rhizodat-go/internal/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain forwards what a client sends, and nothing back.
type plain struct{ client, server net.Conn }

func (p plain) Run() { _, _ = io.Copy(p.server, p.client) }

// open makes a relay to a listener that gives what it accepts.
func open(t *testing.T) (*relay.Relay[plain], <-chan net.Conn) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	r, err := relay.Listen[plain](t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listener.Close()
		for conn := range accepted {
			conn.Close()
		}
	})
	r.EndWith(t)
	r.Serve(func(client, server net.Conn) plain { return plain{client, server} })
	return r, accepted
}

func dial(t *testing.T, r *relay.Relay[plain]) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	return conn
}

// ended reports whether the other side has hung up.
func ended(conn net.Conn) bool {
	_, err := conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestDrop(t *testing.T) {
	r, accepted := open(t)
	client := dial(t, r)
	server := <-accepted
	defer server.Close()
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 1)); err != nil {
		t.Fatalf("a byte does not pass: %v", err)
	}
	links := 0
	r.Each(func(plain) { links++ })
	if links != 1 {
		t.Errorf("%d links, want 1", links)
	}
	r.Drop()
	if !ended(client) || !ended(server) {
		t.Error("Drop left a side of a connection")
	}
}

func TestRefuse(t *testing.T) {
	r, accepted := open(t)
	first := dial(t, r)
	server := <-accepted
	defer server.Close()
	r.Refuse(true)
	if !ended(dial(t, r)) {
		t.Error("a connection was accepted")
	}
	if _, err := first.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 1)); err != nil {
		t.Errorf("Refuse touched a connection that existed: %v", err)
	}
	r.Refuse(false)
	dial(t, r)
	again := <-accepted
	defer again.Close()
	if r.Accepts() != 3 {
		t.Errorf("%d connections accepted, want 3", r.Accepts())
	}
}

// A server that is not there is a connection without an answer.
func TestNoServer(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := relay.Listen[plain](t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r.EndWith(t)
	r.Serve(func(client, server net.Conn) plain { return plain{client, server} })
	if !ended(dial(t, r)) {
		t.Error("somebody answers")
	}
}
