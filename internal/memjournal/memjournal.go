// Package memjournal keeps leases and steps in memory, for tests of what rests
// on them: with a clock of its own, and with replies that are lost. It is held
// to the same suite as every journal.
package memjournal

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Op is a request as Fault sees it.
type Op string

// The requests.
const (
	Acquire Op = "acquire"
	Renew   Op = "renew"
	Release Op = "release"
	Get     Op = "get"
	Claim   Op = "claim"
	Record  Op = "record"
)

// Fault of one request.
type Fault int

// The faults.
const (
	None       Fault = iota
	LostBefore       // it never arrives
	LostAfter        // it takes effect and its reply is lost
	Hang             // it arrives, takes effect and is answered only when its context has ended
)

// ErrLost is the error of a lost request or reply.
var ErrLost = errors.New("connection lost")

// Journal keeps leases and steps, and no records: their methods panic. It is safe
// for concurrent use.
type Journal struct {
	journal.Journal
	Wall hlc.Wall

	faults sync.Mutex
	fault  func(Op) Fault // asked at each request; nil is none

	// Delay of a request on its way, and of its reply; nil is none. A request that
	// nobody waits for any more arrives all the same.
	Delay func(Op) (there, back time.Duration)
	*state
}

type state struct {
	mu     sync.Mutex
	leases map[string]journal.Lease
	steps  map[journal.StepKey]journal.Step
	asked  map[Op]int
}

// New makes an empty one that tells its time by wall.
func New(wall hlc.Wall) *Journal {
	return &Journal{Wall: wall, state: &state{
		leases: map[string]journal.Lease{}, steps: map[journal.StepKey]journal.Step{}, asked: map[Op]int{},
	}}
}

// Node is the same journal as another process has opened it, with faults of its own.
func (j *Journal) Node(fault func(Op) Fault) *Journal {
	return &Journal{Wall: j.Wall, fault: fault, state: j.state}
}

// Spoil sets what is asked for the fault of each request; nil for none.
func (j *Journal) Spoil(fault func(Op) Fault) {
	j.faults.Lock()
	defer j.faults.Unlock()
	j.fault = fault
}

func (j *Journal) faultOf(op Op) Fault {
	j.faults.Lock()
	defer j.faults.Unlock()
	if j.fault == nil {
		return None
	}
	return j.fault(op)
}

var (
	_ journal.Conditional = (*Journal)(nil)
	_ journal.Leases      = leases{}
	_ journal.Steps       = steps{}
	_ journal.StepLister  = steps{}
)

// Asked is how many requests of a kind have arrived.
func (j *Journal) Asked(op Op) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.asked[op]
}

// Leases implements journal.Conditional.
func (j *Journal) Leases(context.Context) (journal.Leases, error) { return leases{j}, nil }

// Steps implements journal.Conditional.
func (j *Journal) Steps(context.Context) (journal.Steps, error) { return steps{j}, nil }

// Clock implements journal.Timekeeper as far as the suite asks.
func (j *Journal) Clock(context.Context) (time.Time, error) { return j.now(), nil }

// HighWater implements journal.Timekeeper.
func (j *Journal) HighWater(context.Context) (hlc.Time, error) { return 0, nil }

// now is what a SQL journal stores: milliseconds.
func (j *Journal) now() time.Time { return time.UnixMilli(j.Wall.Now().UnixMilli()) }

// do runs one request with its fault.
func (j *Journal) do(ctx context.Context, op Op, effect func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fault := j.faultOf(op)
	if fault == LostBefore {
		return ErrLost
	}
	if err := j.travel(ctx, op, effect); err != nil {
		return err
	}
	switch fault {
	case LostAfter:
		return ErrLost
	case Hang:
		<-ctx.Done()
		return ctx.Err()
	case None, LostBefore:
	}
	return nil
}

// travel takes a request there and its reply back.
func (j *Journal) travel(ctx context.Context, op Op, effect func()) error {
	arrive := func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.asked[op]++
		effect()
	}
	if j.Delay == nil {
		arrive()
		return nil
	}
	there, back := j.Delay(op)
	arrived := make(chan struct{})
	go func() {
		defer close(arrived)
		_ = hlc.System.Sleep(context.WithoutCancel(ctx), there)
		arrive()
	}()
	select {
	case <-arrived:
		return hlc.System.Sleep(ctx, back)
	case <-ctx.Done():
		return ctx.Err()
	}
}

type leases struct{ j *Journal }

func (l leases) stands(name string) journal.Lease {
	found := l.j.leases[name]
	found.Lapsed = found.Holder == "" || !l.j.now().Before(found.Until)
	return found
}

// Acquire implements journal.Leases.
func (l leases) Acquire(ctx context.Context, r journal.LeaseRequest) (journal.Lease, journal.Answer, error) {
	var stands journal.Lease
	won := false
	err := l.j.do(ctx, Acquire, func() {
		stands = l.stands(r.Name)
		if won = stands.Fence == 0 || stands.Lapsed || stands.Holder == r.Holder; !won {
			return
		}
		if stands.Token != r.Token {
			stands.Fence++
		}
		stands.Name, stands.Holder, stands.Token, stands.Until = r.Name, r.Holder, r.Token, l.j.now().Add(r.TTL)
		l.j.leases[r.Name] = stands
		stands = l.stands(r.Name)
	})
	if err != nil {
		return journal.Lease{}, journal.AnswerUnknown, err
	}
	return stands, journal.AnswerOf(won, nil), nil
}

// Renew implements journal.Leases.
func (l leases) Renew(ctx context.Context, list []journal.LeaseRenewal) ([]journal.Answer, error) {
	answers := make([]journal.Answer, len(list))
	err := l.j.do(ctx, Renew, func() {
		for i, r := range list {
			stands := l.stands(r.Name)
			won := stands.Token == r.Token && stands.Fence == r.Fence && !stands.Lapsed
			if won {
				stands.Until = l.j.now().Add(r.TTL)
				l.j.leases[r.Name] = stands
			}
			answers[i] = journal.AnswerOf(won, nil)
		}
	})
	if err != nil {
		return make([]journal.Answer, len(list)), err
	}
	return answers, nil
}

// Release implements journal.Leases.
func (l leases) Release(ctx context.Context, lease journal.Lease) (journal.Answer, error) {
	won := false
	err := l.j.do(ctx, Release, func() {
		stands := l.j.leases[lease.Name]
		if won = stands.Token == lease.Token && stands.Fence == lease.Fence && stands.Holder != ""; won {
			stands.Holder = ""
			l.j.leases[lease.Name] = stands
		}
	})
	if err != nil {
		return journal.AnswerUnknown, err // what the effect says, if it came, was not heard
	}
	return journal.AnswerOf(won, nil), nil
}

// Get implements journal.Leases.
func (l leases) Get(ctx context.Context, name string) (journal.Lease, error) {
	var found journal.Lease
	if err := l.j.do(ctx, Get, func() { found = l.stands(name) }); err != nil {
		return journal.Lease{}, err
	}
	if found.Fence == 0 {
		return journal.Lease{}, journal.ErrNotFound
	}
	return found, nil
}

// List implements journal.Leases.
func (l leases) List(ctx context.Context) (list []journal.Lease, err error) {
	err = l.j.do(ctx, Get, func() {
		for _, name := range slices.Sorted(maps.Keys(l.j.leases)) {
			list = append(list, l.stands(name))
		}
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

type steps struct{ j *Journal }

func (s steps) stands(key journal.StepKey) (journal.Step, bool) {
	found, ok := s.j.steps[key]
	found.Lapsed = !s.j.now().Before(found.Until)
	return found, ok
}

// Claim implements journal.Steps.
func (s steps) Claim(ctx context.Context, r journal.StepRequest) (journal.Step, journal.Answer, error) {
	var stands journal.Step
	won := false
	err := s.j.do(ctx, Claim, func() {
		there := false
		stands, there = s.stands(r.Key)
		if won = !there || r.Replaces != "" && r.Replaces == stands.Token && stands.Lapsed && !stands.Recorded; !won {
			return
		}
		now := s.j.now()
		if !there {
			stands.Created = now
		}
		stands.Key, stands.Holder, stands.Token = r.Key, r.Holder, r.Token
		stands.Until, stands.Updated = now.Add(r.TTL), now
		s.j.steps[r.Key] = stands
		stands, _ = s.stands(r.Key)
	})
	if err != nil {
		return journal.Step{}, journal.AnswerUnknown, err
	}
	return stands, journal.AnswerOf(won, nil), nil
}

// Renew implements journal.Steps.
func (s steps) Renew(ctx context.Context, list []journal.StepRenewal) ([]journal.Answer, error) {
	answers := make([]journal.Answer, len(list))
	err := s.j.do(ctx, Renew, func() {
		for i, r := range list {
			stands, there := s.stands(r.Key)
			won := there && stands.Token == r.Token && !stands.Lapsed && !stands.Recorded
			if won {
				stands.Until = s.j.now().Add(r.TTL)
				s.j.steps[r.Key] = stands
			}
			answers[i] = journal.AnswerOf(won, nil)
		}
	})
	if err != nil {
		return make([]journal.Answer, len(list)), err
	}
	return answers, nil
}

// Record implements journal.Steps.
func (s steps) Record(ctx context.Context, r journal.StepRecord) (journal.Answer, error) {
	won := false
	err := s.j.do(ctx, Record, func() {
		stands, there := s.stands(r.Key)
		if won = there && stands.Token == r.Token && !stands.Recorded; won {
			stands.Recorded, stands.Value, stands.Updated = true, append([]byte{}, r.Value...), s.j.now()
			s.j.steps[r.Key] = stands
		}
	})
	if err != nil {
		return journal.AnswerUnknown, err // what the effect says, if it came, was not heard
	}
	return journal.AnswerOf(won, nil), nil
}

// Release implements journal.Steps.
func (s steps) Release(ctx context.Context, key journal.StepKey, token string) (journal.Answer, error) {
	won := false
	err := s.j.do(ctx, Release, func() {
		stands, there := s.stands(key)
		if won = there && stands.Token == token && !stands.Recorded; won {
			delete(s.j.steps, key)
		}
	})
	if err != nil {
		return journal.AnswerUnknown, err // what the effect says, if it came, was not heard
	}
	return journal.AnswerOf(won, nil), nil
}

// Get implements journal.Steps.
func (s steps) Get(ctx context.Context, key journal.StepKey) (journal.Step, error) {
	var found journal.Step
	there := false
	if err := s.j.do(ctx, Get, func() { found, there = s.stands(key) }); err != nil {
		return journal.Step{}, err
	}
	if !there {
		return journal.Step{}, journal.ErrNotFound
	}
	return found, nil
}

// List implements journal.StepLister.
func (s steps) List(ctx context.Context, f func(journal.Step) error) error {
	var list []journal.Step
	if err := s.j.do(ctx, Get, func() {
		for key := range s.j.steps {
			found, _ := s.stands(key)
			found.Value = nil
			list = append(list, found)
		}
	}); err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b journal.Step) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	for _, found := range list {
		if err := f(found); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements journal.StepLister.
func (s steps) Remove(ctx context.Context, before time.Time, limit int) (int, error) {
	n := 0
	err := s.j.do(ctx, Release, func() {
		for key := range s.j.steps {
			if found, _ := s.stands(key); n < limit && found.Updated.Before(before) && (found.Recorded || found.Lapsed) {
				delete(s.j.steps, key)
				n++
			}
		}
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
