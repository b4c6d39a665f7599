package pgtest

import (
	"net"
	"sync/atomic"
)

// Wire is a connection that counts its round trips: how often the client turns
// from writing to reading. Conn is set before its first use.
type Wire struct {
	net.Conn
	wrote atomic.Bool
	turns atomic.Int64
}

// Turns is how many round trips there were since the last call.
func (w *Wire) Turns() int64 { return w.turns.Swap(0) }

// Write passes to the connection.
func (w *Wire) Write(p []byte) (int, error) {
	w.wrote.Store(true)
	return w.Conn.Write(p)
}

// Read passes to the connection.
func (w *Wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 && w.wrote.Swap(false) {
		w.turns.Add(1)
	}
	return n, err
}
