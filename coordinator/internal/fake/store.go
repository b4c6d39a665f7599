package fake

import (
	"context"
	"errors"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// StoreServer is a store that prepares, or that takes a payload after the
// decision.
type StoreServer struct {
	server
	Free int64 // what Capacity tells; 0: it cannot tell

	txns map[branches.TxnID]*txn
}

// txn is one transaction at the server.
type txn struct {
	state  TxnState
	wrote  bool
	marker bool     // S3 has left it
	txTime hlc.Time // what the branch took on at its end
}

// TxnState is what a store knows of a transaction.
type TxnState int

// The states of a transaction. Absent is the zero TxnState.
const (
	Absent TxnState = iota
	Open
	InPrepare // prepared, and locked
	Committed
	RolledBack
	Tomb // never committed, and never can be
)

func (s TxnState) String() string {
	return [...]string{"absent", "open", "prepared", "committed", "rolled back", "tombstone"}[s]
}

// NewStore adds a store. Its place among the stores orders their requests.
func (w *World) NewStore(name string) *StoreServer {
	rank := time.Duration(1000 * (len(w.Stores) + 1)) // microseconds
	s := &StoreServer{
		server: server{world: w, name: name, rank: rank, every: time.Millisecond + 100*rank, busy: map[branches.TxnID]chan struct{}{}},
		txns:   map[branches.TxnID]*txn{},
	}
	w.Stores = append(w.Stores, s)
	return s
}

// State returns what the store knows of a transaction.
func (s *StoreServer) State(id branches.TxnID) TxnState {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if t := s.txns[id]; t != nil {
		return t.state
	}
	return Absent
}

// TxTime returns the time the transaction was committed under; 0 when it is not.
func (s *StoreServer) TxTime(id branches.TxnID) hlc.Time {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if t := s.txns[id]; t != nil && t.state == Committed {
		return t.txTime
	}
	return 0
}

// Resolve ends a prepared transaction as the store's own timeout, or somebody
// with a console, does; to is Committed or RolledBack. It reports whether there
// was one.
func (s *StoreServer) Resolve(id branches.TxnID, to TxnState) bool {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	t := s.txns[id]
	if t == nil || t.state != InPrepare {
		return false
	}
	t.state = to
	op := trace.Finish
	if to == RolledBack {
		op = trace.Abort
	}
	s.world.Log.Add(trace.Event{What: trace.Took, Actor: s.name, Op: op, Txn: id, Wrote: true})
	return true
}

// Restart makes every session of the store end: open transactions are gone.
func (s *StoreServer) Restart() {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.epoch++
	for _, t := range s.txns {
		if t.state == Open {
			t.state = RolledBack
		}
	}
	s.world.Log.Add(trace.Event{What: trace.Told, Text: s.name + " restarts"})
}

// Store is a process's access to a store.
type Store struct {
	p *Process
	s *StoreServer
}

var (
	_ branches.Store    = (*Store)(nil)
	_ branches.Capacity = (*Store)(nil)
	_ branches.Lister   = (*Store)(nil)
)

// SetLatency sets the time that a request takes.
func (s *StoreServer) SetLatency(d time.Duration) { s.every = d }

// Client opens the store for p.
func (s *StoreServer) Client(p *Process) *Store { return &Store{p: p, s: s} }

// Connect implements branches.Store. The coordinator never connects.
func (*Store) Connect(context.Context) (branches.Session, error) {
	return nil, errors.New("fake: no sessions")
}

// Close implements branches.Store.
func (*Store) Close() error { return nil }

// Free implements branches.Capacity.
func (s *Store) Free(context.Context) (int64, bool, error) { return s.s.Free, s.s.Free > 0, nil }

// Finish implements branches.Store.
func (s *Store) Finish(ctx context.Context, ref branches.Ref) error { return s.finish(ctx, ref, false) }

func (s *Store) finish(ctx context.Context, ref branches.Ref, own bool) error {
	_, err := s.p.do(ctx, &s.s.server, request{op: trace.Finish, txn: ref.Txn, own: own, text: textOf(ref, "COMMIT PREPARED", "APPLY"), effect: func(FaultKind) (answer, error) {
		if s.s.busy[ref.Txn] != nil {
			return answer{}, ErrBusy
		}
		t := s.s.txns[ref.Txn]
		switch {
		case !ref.TwoPhase && (t == nil || t.state == Open || t.state == RolledBack):
			s.s.txns[ref.Txn] = &txn{state: Committed, wrote: true, txTime: ref.TxTime}
			return answer{wrote: true}, nil
		case t != nil && t.state == InPrepare:
			t.state, t.txTime = Committed, ref.TxTime
			return answer{wrote: true}, nil
		case t != nil && t.state == Committed:
			return answer{}, nil
		}
		return answer{}, &branches.Heuristic{Evidence: "no prepared transaction and no marker"}
	}})
	return err
}

// Abort implements branches.Store.
func (s *Store) Abort(ctx context.Context, ref branches.Ref) error {
	_, err := s.p.do(ctx, &s.s.server, request{op: trace.Abort, txn: ref.Txn, text: textOf(ref, "ROLLBACK PREPARED", "REMOVE STAGED"), effect: func(FaultKind) (answer, error) {
		if s.s.busy[ref.Txn] != nil && s.s.prepared(ref.Txn) {
			return answer{}, ErrBusy
		}
		t := s.s.txns[ref.Txn]
		switch {
		case t != nil && t.state == InPrepare, t != nil && t.state == Open && !ref.TwoPhase:
			t.state = RolledBack
			return answer{wrote: true}, nil
		case t != nil && t.state == Committed:
			return answer{}, &branches.Heuristic{Committed: true, Evidence: "its marker stands"}
		}
		return answer{}, nil
	}})
	return err
}

func textOf(ref branches.Ref, locked, payload string) string {
	if ref.TwoPhase {
		return locked
	}
	return payload
}

func (s *StoreServer) prepared(id branches.TxnID) bool {
	t := s.txns[id]
	return t != nil && t.state == InPrepare
}

// Applied implements branches.Store.
func (s *Store) Applied(context.Context, branches.TxnID) (branches.Fate, error) {
	return branches.FateUnknown, errors.New("fake: not asked by the coordinator")
}

// Settle implements branches.Store.
func (s *Store) Settle(ctx context.Context, id branches.TxnID) (branches.Fate, error) {
	got, err := s.p.do(ctx, &s.s.server, request{op: trace.Settle, txn: id, waits: true, effect: func(FaultKind) (answer, error) {
		t := s.s.txns[id]
		if t != nil && t.state == Committed && t.marker {
			return answer{fate: branches.FateApplied}, nil
		}
		s.s.txns[id] = &txn{state: Tomb}
		return answer{fate: branches.FateNever}, nil
	}})
	return got.fate, err
}

// Prepared implements branches.Lister.
func (s *Store) Prepared(ctx context.Context) ([]branches.Prepared, error) {
	got, err := s.p.do(ctx, &s.s.server, request{op: trace.List, effect: func(FaultKind) (answer, error) {
		var a answer
		for id, t := range s.s.txns {
			if t.state == InPrepare {
				a.gids = append(a.gids, branches.NewGID(id, s.s.name))
			}
		}
		return a, nil
	}})
	list := make([]branches.Prepared, len(got.gids))
	for i, gid := range got.gids {
		list[i] = branches.Prepared{GID: gid, Ours: true, MayFinish: true}
	}
	return list, err
}
