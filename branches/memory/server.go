package memory

import (
	"database/sql/driver"
	"errors"
	"io"
	"sync"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Server is a set of keys with transactions that can be prepared. A real one
// keeps all of this on disk. Its methods may be called from any goroutine.
type Server struct {
	mu       sync.Mutex
	keys     map[string]bool
	prepared map[branches.GID]*Tx
	markers  map[branches.TxnID]branches.Fate // FateUnknown: inserted, not yet committed
}

// NewServer makes an empty server.
func NewServer() *Server {
	return &Server{
		keys:     map[string]bool{},
		prepared: map[branches.GID]*Tx{},
		markers:  map[branches.TxnID]branches.Fate{},
	}
}

// Has reports whether a key is committed.
func (s *Server) Has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

// Marker reads the marker of a unit.
func (s *Server) Marker(txn branches.TxnID) branches.Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fate := s.markers[txn]; fate != branches.FateUnknown {
		return fate
	}
	return branches.FateAbsent
}

var (
	errBusy   = errors.New("memory: settle commit: it is still running")
	errMarker = errors.New("memory: insert marker: the unit has one")
)

// Tombstone inserts a marker that forbids the unit, unless there is one.
func (s *Server) Tombstone(txn branches.TxnID) (branches.Fate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fate, inserted := s.markers[txn]
	switch {
	case !inserted:
		s.markers[txn] = branches.FateNever
		return branches.FateNever, nil
	case fate == branches.FateUnknown:
		return branches.FateUnknown, errBusy
	}
	return fate, nil
}

// End ends a prepared transaction; false says that there is none.
func (s *Server) End(gid branches.GID, commit bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, ok := s.prepared[gid]
	if ok {
		delete(s.prepared, gid)
		tx.end(commit)
	}
	return ok
}

// Tx is a transaction of one connection, for one unit.
type Tx struct {
	server *Server
	txn    branches.TxnID
	keys   []string
	marked bool
}

// Begin opens a transaction.
func (s *Server) Begin(txn branches.TxnID) *Tx { return &Tx{server: s, txn: txn} }

// Put adds a key.
func (tx *Tx) Put(key string) { tx.keys = append(tx.keys, key) }

// Wrote reports whether there is anything to commit.
func (tx *Tx) Wrote() bool { return len(tx.keys) > 0 }

// Mark inserts the unit's marker. A second one is refused.
func (tx *Tx) Mark() error {
	tx.server.mu.Lock()
	defer tx.server.mu.Unlock()
	if _, stands := tx.server.markers[tx.txn]; stands {
		return errMarker
	}
	tx.server.markers[tx.txn], tx.marked = branches.FateUnknown, true
	return nil
}

// Prepare takes the transaction away from its connection.
func (tx *Tx) Prepare(gid branches.GID) {
	tx.server.mu.Lock()
	defer tx.server.mu.Unlock()
	tx.server.prepared[gid] = tx
}

// End commits the transaction or rolls it back. The end of none does nothing.
func (tx *Tx) End(commit bool) {
	if tx == nil {
		return
	}
	tx.server.mu.Lock()
	defer tx.server.mu.Unlock()
	tx.end(commit)
}

func (tx *Tx) end(commit bool) {
	for _, key := range tx.keys {
		tx.server.keys[key] = tx.server.keys[key] || commit
	}
	switch {
	case tx.marked && commit:
		tx.server.markers[tx.txn] = branches.FateApplied
	case tx.marked:
		delete(tx.server.markers, tx.txn)
	}
}

// noRows is the answer to every question.
type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }
func (noRows) Close() error              { return nil }
