// Package fake plays stores and a journal that meet every fault on demand. It
// exists to inject faults: what real servers do is tested on real servers.
//
// A world is meant to live in a testing/synctest bubble: its latencies cost no
// time there, and they put parallel requests in one order.
package fake

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// World is a set of servers. Processes are its clients.
type World struct {
	Log     *trace.Log
	Journal *JournalServer
	Stores  []*StoreServer

	mu     sync.Mutex // the servers' state; never held while anybody waits
	script Script
}

// NewWorld makes a world with a journal and no store.
func NewWorld() *World {
	w := &World{Log: &trace.Log{}}
	w.Journal = newJournalServer(w)
	return w
}

// Play makes script the faults to come. Counts of requests go on.
func (w *World) Play(script Script) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.script = script
}

// Store finds a store by its name.
func (w *World) Store(name string) *StoreServer {
	for _, s := range w.Stores {
		if s.name == name {
			return s
		}
	}
	return nil
}

// Process is a client of the world: a program, or a recovery worker.
type Process struct {
	Name  string
	world *World
	dead  atomic.Bool

	mu    sync.Mutex
	calls map[Call]int
}

// NewProcess starts a client.
func (w *World) NewProcess(name string) *Process {
	return &Process{Name: name, world: w, calls: map[Call]int{}}
}

// Kill ends the process: what it has sent goes on, and it sends no more.
func (p *Process) Kill() { p.dead.Store(true) }

// Dead reports whether the process was killed.
func (p *Process) Dead() bool { return p.dead.Load() }

func (p *Process) fault(actor string, op trace.Op) Fault {
	call := Call{Proc: p.Name, Actor: actor, Op: op}
	p.mu.Lock()
	p.calls[call]++
	nth := p.calls[call]
	p.mu.Unlock()

	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	every := p.world.script[call]
	call.N = nth
	if f, ok := p.world.script[call]; ok {
		return f
	}
	return every
}

// server is what stores and the journal have in common.
type server struct {
	world *World
	name  string
	rank  time.Duration // puts requests of one instant in the order of the servers
	every time.Duration // latency of a request
	epoch int           // raised by a crash: what was under way is lost
	busy  map[branches.TxnID]chan struct{}
}

// request is one call of a process to a server.
type request struct {
	op     trace.Op
	text   string // how the trace calls it, where op does not say enough
	txn    branches.TxnID
	lease  string
	fence  journal.Fence
	forced bool
	own    bool
	waits  bool                            // behind a request of the same txn that is late
	effect func(FaultKind) (answer, error) // at the server
	lost   func()                          // at the server, when the session breaks before the effect
}

type answer struct {
	state  journal.State
	record journal.Record
	list   []journal.Record
	vote   branches.Vote
	fate   branches.Fate
	time   hlc.Time
	wrote  bool
	gids   []branches.GID
}

type reply struct {
	answer answer
	err    error
}

// do sends r and waits for its answer as long as ctx allows. The server goes on
// when the client has stopped waiting.
func (p *Process) do(ctx context.Context, s *server, r request) (answer, error) {
	if p.Dead() {
		return answer{}, branches.Unknown(errKilled)
	}
	if err := ctx.Err(); err != nil {
		return answer{}, &unsentError{err}
	}
	pause(ctx, s.rank)
	event := trace.Event{Proc: p.Name, Actor: s.name, Op: r.op, Text: r.text, Txn: r.txn, Lease: r.lease, Fence: r.fence, Forced: r.forced, Own: r.own}
	event.Call = s.world.Log.Send(event)
	fault := p.fault(s.name, r.op)
	answered := make(chan reply, 1)
	go s.serve(context.WithoutCancel(ctx), event, r, fault, answered)

	var got reply
	select {
	case got = <-answered:
	case <-ctx.Done():
		pause(ctx, s.rank) // of two that end at one instant
		got.err = branches.Unknown(ctx.Err())
	}
	event.What, event.Err = trace.Replied, got.err
	event.State, event.Vote = got.answer.state, got.answer.vote
	for _, rec := range got.answer.list {
		if rec.State.Decided() {
			event.Decided = append(event.Decided, rec.Txn)
		}
	}
	s.world.Log.Add(event)
	return got.answer, got.err
}

func (s *server) serve(ctx context.Context, e trace.Event, r request, f Fault, answered chan<- reply) {
	s.world.mu.Lock()
	epoch := s.epoch
	s.world.mu.Unlock()

	latency := s.every
	if f.Kind == Slow {
		latency = f.D
	}
	pause(ctx, latency)
	lost := reply{err: branches.Unknown(ErrLost)}
	switch f.Kind {
	case Refuse:
		s.breakOff(r)
		err := f.Err
		if err == nil {
			err = ErrRefused
		}
		answered <- reply{err: err}
	case LostBefore:
		s.breakOff(r)
		answered <- lost
	case Hang:
		s.breakOff(r)
	case Late:
		landed := s.occupy(r.txn)
		answered <- lost
		pause(ctx, f.D)
		s.take(e, r, epoch, f.Kind)
		s.vacate(r.txn, landed)
	case None, Slow, LostAfter, HangAfter, Soft:
		if r.waits {
			s.await(r.txn)
		}
		got := s.take(e, r, epoch, f.Kind)
		if f.Kind == LostAfter || f.Kind == Soft {
			got = lost
		}
		if f.Kind != HangAfter {
			answered <- got
		}
	}
}

// take lets r take effect, unless the server has crashed since it was sent.
func (s *server) take(e trace.Event, r request, epoch int, f FaultKind) reply {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if s.epoch != epoch {
		return reply{err: branches.Unknown(ErrLost)}
	}
	got, err := r.effect(f)
	e.What, e.Err, e.State, e.Wrote = trace.Took, err, got.state, got.wrote
	e.Soft = f == Soft
	s.world.Log.Add(e)
	return reply{answer: got, err: err}
}

func (s *server) breakOff(r request) {
	if r.lost == nil {
		return
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	r.lost()
}

func (s *server) occupy(txn branches.TxnID) chan struct{} {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	landed := make(chan struct{})
	s.busy[txn] = landed
	return landed
}

func (s *server) vacate(txn branches.TxnID, landed chan struct{}) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if s.busy[txn] == landed {
		delete(s.busy, txn)
	}
	close(landed)
}

func (s *server) await(txn branches.TxnID) {
	for {
		s.world.mu.Lock()
		landed := s.busy[txn]
		s.world.mu.Unlock()
		if landed == nil {
			return
		}
		<-landed
	}
}

// pause passes time that nobody can cut short.
func pause(ctx context.Context, d time.Duration) {
	_ = hlc.System.Sleep(context.WithoutCancel(ctx), d)
}
