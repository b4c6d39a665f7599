// Package hlc is the hybrid logical clock that orders meta-transactions.
//
// It follows S. Kulkarni, M. Demirbas, D. Madappa, B. Avva and M. Leone,
// "Logical Physical Clocks and Consistent Snapshots in Globally Distributed
// Databases" (OPODIS 2014). A time has a physical part, the greatest wall clock
// known to its maker, and a logical part, which counts the events since that
// wall clock was seen. The paper's pair (l, c) is packed into one integer, see
// [Time], and its rules are invariants here:
//
// INVARIANT C1: an event that happened before another one (same clock, or by a
// time that was handed to [Clock.Observe]) has the smaller time.
// INVARIANT C2: a time is never behind the wall clock of its maker.
// INVARIANT C3: a time is ahead of its maker's wall clock only as far as some
// clock it heard of was, so wall clocks e apart keep times within e of the wall.
//
// Where the paper bounds the counter, this package lets it overflow into the
// next millisecond: order (C1) is never given up, C3 is off by that millisecond.
//
// All waiting and all reading of time in the library goes through [Wall], so
// that tests own both.
package hlc

import (
	"fmt"
	"sync"
	"time"
)

// Clock makes the times of one process. Its methods may be called from any
// goroutine. Make it with NewClock; the zero Clock is not usable.
type Clock struct {
	wall     Wall
	maxDrift time.Duration

	mu   sync.Mutex
	last Time // the greatest time returned, observed or raised to
}

// NewClock makes a clock over w that refuses to follow peers more than
// maxDrift ahead of w. maxDrift has the resolution of milliseconds; one below
// 0 counts as 0.
//
// A new clock knows nothing of earlier runs: give the times that were persisted
// to Raise or Observe before the first Now.
func NewClock(w Wall, maxDrift time.Duration) *Clock {
	return &Clock{wall: w, maxDrift: max(maxDrift, 0)}
}

// Wall is the wall clock that c was made over.
func (c *Clock) Wall() Wall { return c.wall }

// Now returns a time greater than every time that this clock has returned,
// observed or been raised to, and not behind the wall clock (C1, C2). It is the
// paper's rule for a local or send event; after Observe it is the rule for the
// receive event. It panics when the clock stands at Max, because repeating a
// time would let two units share it. No clock comes there before the year 6429:
// Observe refuses a peer that is far ahead.
func (c *Clock) Now() Time {
	physical := c.physical()
	c.mu.Lock()
	defer c.mu.Unlock()
	if physical > c.last {
		c.last = physical
		return c.last
	}
	if c.last == Max {
		panic("rhizodat: read clock: no time is left after hlc.Max")
	}
	// The wall stands still or has stepped back. Counting on from the last time
	// keeps the order, and a full counter carries into the milliseconds.
	c.last++
	return c.last
}

// Observe makes every later Now greater than peer, a time made by another
// clock. A peer more than maxDrift ahead of the wall clock is refused with a
// *DriftError and changes nothing: one machine with its clock in the next year
// would otherwise drag every process there, and no restart would bring them
// back. A peer that is not above this clock's own times cannot drag it, so it
// is accepted even where the wall clock has stepped back since.
func (c *Clock) Observe(peer Time) error {
	local := c.physical()
	c.mu.Lock()
	defer c.mu.Unlock()
	if peer <= c.last {
		return nil
	}
	if peer.Millis()-local.Millis() > c.maxDrift.Milliseconds() {
		return &DriftError{Peer: peer, Local: local, Max: c.maxDrift}
	}
	c.last = peer
	return nil
}

// Raise makes every later Now greater than t, however far ahead t is; it never
// lowers the clock. It is for the high-water mark that this deployment itself
// persisted: times given out in an earlier run stay given out, also when the
// wall clock has been set back since. What others wrote belongs to Observe.
func (c *Clock) Raise(t Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, t)
}

func (c *Clock) physical() Time { return FromMillis(c.wall.Now().UnixMilli()) }

// DriftError says that a peer's time was refused because it is more than Max
// ahead of the local wall clock. One of the two machines has a wrong clock, and
// trying again does not help until it is set.
type DriftError struct {
	Peer  Time          // the time that was refused
	Local Time          // the wall clock when it was refused
	Max   time.Duration // the drift that would have been accepted
}

// Error names both times, because either clock may be the wrong one.
func (e *DriftError) Error() string {
	return fmt.Sprintf("rhizodat: observe peer time: clocks differ too much: peer %v, local %v, at most %v ahead", e.Peer, e.Local, e.Max)
}
