package hlc

import (
	"context"
	"sync"
	"time"
)

// Wall is a source of physical time that code can also wait on. Its methods may
// be called from any goroutine.
type Wall interface {
	// Now is the current time of day. It may step back.
	Now() time.Time
	// Sleep returns nil after d, or ctx.Err() as soon as ctx ends. Steps of the
	// time of day do not change how long it takes. d of 0 or less does not wait.
	Sleep(ctx context.Context, d time.Duration) error
}

// System is the clock of the machine.
var System Wall = system{}

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Manual is a Wall that stands still until a test moves it. Make it with
// NewManual.
type Manual struct {
	mu      sync.Mutex
	now     time.Time
	elapsed time.Duration // moved by Advance alone; what sleepers count
	asleep  map[*sleeper]struct{}
	changed chan struct{} // closed and replaced when somebody falls asleep or wakes
}

type sleeper struct {
	until time.Duration // in elapsed
	wake  chan struct{}
}

var _ Wall = (*Manual)(nil)

// NewManual makes a wall clock that stands at start.
func NewManual(start time.Time) *Manual {
	return &Manual{now: start, asleep: map[*sleeper]struct{}{}, changed: make(chan struct{})}
}

// Now is where the test has put the clock.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Set steps the time of day to t, forward or back, as an operator or NTP does.
// No time passes: sleepers go on sleeping.
func (m *Manual) Set(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = t
}

// Advance lets d pass and wakes the sleepers whose time has come. It panics if
// d is negative; Set steps back.
func (m *Manual) Advance(d time.Duration) {
	if d < 0 {
		panic("hlc: Manual.Advance: negative duration")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
	m.elapsed += d
	for s := range m.asleep {
		if s.until <= m.elapsed {
			close(s.wake)
			m.remove(s)
		}
	}
}

// Sleep waits until Advance has let d pass, or ctx ends.
func (m *Manual) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	m.mu.Lock()
	s := &sleeper{until: m.elapsed + d, wake: make(chan struct{})}
	m.asleep[s] = struct{}{}
	m.signal()
	m.mu.Unlock()

	select {
	case <-s.wake:
		return nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		m.remove(s)
		return ctx.Err()
	}
}

// AwaitSleepers returns nil once at least n goroutines are in Sleep, so that a
// test knows that Advance will reach them, or ctx.Err() when ctx ends first.
func (m *Manual) AwaitSleepers(ctx context.Context, n int) error {
	for {
		m.mu.Lock()
		asleep, changed := len(m.asleep), m.changed
		m.mu.Unlock()
		if asleep >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// remove REQUIRES m.mu.
func (m *Manual) remove(s *sleeper) {
	delete(m.asleep, s)
	m.signal()
}

// signal REQUIRES m.mu.
func (m *Manual) signal() {
	close(m.changed)
	m.changed = make(chan struct{})
}
