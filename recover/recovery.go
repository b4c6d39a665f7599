// Package recovery finishes what coordinators left behind: a unit that was
// decided is rolled forward, a unit that nobody decided is aborted. It runs in
// any process that has the deployment's DSN, as often as one likes, and many
// workers on many hosts at once are safe, because every change is a
// compare-and-set and every ending of a branch is idempotent.
//
// # One pass
//
//  1. Identity. The journal and every store say who they are. A store that is
//     not the one the journal knows, or a journal that is a copy, is left alone.
//  2. Listing. Every store lists its prepared transactions. Only afterwards the
//     journal is read.
//  3. Sweep. A prepared transaction of ours whose record is missing or ABORTED
//     is rolled back.
//  4. Stale records. A record that nobody has changed for stale_after is taken
//     over: ACTIVE and PREPARED are aborted, COMMITTED is rolled forward.
//  5. Report. What is stuck or heuristic is said again on every pass.
//
// # What never changes
//
// INVARIANT R1: a store's gids are listed before the journal is read. A record
// precedes its PREPARE (I1), so a gid that is listed has a record in a later
// reading, unless the journal lost it in a crash. Read in the other order, a
// unit that began in between would look abandoned.
// INVARIANT R2: nothing is rolled back before ABORTED is durable in the
// journal. From then on the coordinator cannot decide.
// INVARIANT R3: nothing is rolled forward on a COMMITTED that was only read
// before the journal was hardened after that reading.
// INVARIANT R4: nothing is concluded from a listing that failed, nor from a
// store or journal whose identity is not certain.
// INVARIANT R5: what cannot be explained is reported and never touched.
//
// # Why a missing record needs no waiting
//
// S4 is not forced, so a crash of the journal's server may lose an ACTIVE whose
// branches are prepared and whose coordinator is alive. Its prepared
// transaction is ours, younger than the horizon of compaction, and without a
// record. Nothing is gained by waiting: R1 excludes that the record is yet to
// come, and ABORTED, inserted where there is none, and the coordinator's own S7
// are compare-and-sets on one key. Whoever is second learns the other's answer:
// S7 finds no PREPARED record, and the unit is Aborted with nothing in effect.
// A coordinator whose journal is sound is never met this way, whatever the
// worker's pace.
package recovery

import (
	"log/slog"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// The defaults of Config.
const (
	DefaultStaleAfter    = 30 * time.Second
	DefaultAlertAfter    = 10 * time.Minute
	DefaultRetain        = 24 * time.Hour
	DefaultMaxClockDrift = time.Minute
	DefaultInterval      = 10 * time.Second
	DefaultCompactEvery  = time.Hour
	DefaultStoreTimeout  = 10 * time.Second
	DefaultParallel      = 16
	DefaultMaxPayload    = 64 << 20
)

// Config of a Worker. Journal and Stores are needed; the zero value of every
// other field is its default.
type Config struct {
	Journal journal.Journal
	Stores  map[string]branches.Store
	// Coordinator runs the steps. Nil: one of its own over Journal and Clock.
	Coordinator *coordinator.Coordinator
	Clock       *hlc.Clock // nil: the system's

	// StaleAfter is how long a record stays unchanged before it is taken over.
	// It must be well above commit_timeout. Zero: 30s. Negative: every record
	// is taken at once (for tests; the compare-and-set keeps that safe).
	StaleAfter time.Duration
	// AlertAfter is the age at which a decided unit is stuck. Zero: 10m.
	AlertAfter time.Duration
	// Retain is how long final records and one-phase markers are kept. Zero: 24h.
	Retain time.Duration
	// MaxClockDrift is how far the clocks of two hosts may be apart. Zero: 60s.
	MaxClockDrift time.Duration

	// Interval lies between two passes of Run, less or more by a fifth. Zero: 10s.
	Interval time.Duration
	// CompactEvery lies between two compactions of Run. Zero: 1h. Negative: never.
	CompactEvery time.Duration
	// StoreTimeout bounds each request to a store. Zero: 10s.
	StoreTimeout time.Duration
	// Parallel is how many transactions are worked on at once. Each may hold one
	// place in the journal. Zero: 16.
	Parallel int
	// MaxPayload bounds the bytes of payloads held at a time, but for the last
	// one that was read. Zero: 64 MiB.
	MaxPayload int64

	// Holder names this worker in claims and remarks. Empty: host, process and a
	// random part.
	Holder   string
	Logger   *slog.Logger // nil: discard
	Observer Observer     // nil: none
}

// Recovery makes a Config a [Source] of itself.
func (c Config) Recovery() (Config, error) { return c, nil }

// orDefault returns fallback for the zero value.
func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = hlc.NewClock(hlc.System, orDefault(c.MaxClockDrift, DefaultMaxClockDrift))
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Coordinator == nil {
		c.Coordinator = coordinator.New(coordinator.Config{Journal: c.Journal, Clock: c.Clock, Logger: c.Logger})
	}
	c.StaleAfter = max(orDefault(c.StaleAfter, DefaultStaleAfter), 0)
	c.AlertAfter = orDefault(c.AlertAfter, DefaultAlertAfter)
	c.Retain = orDefault(c.Retain, DefaultRetain)
	c.MaxClockDrift = orDefault(c.MaxClockDrift, DefaultMaxClockDrift)
	c.Interval = orDefault(c.Interval, DefaultInterval)
	c.CompactEvery = orDefault(c.CompactEvery, DefaultCompactEvery)
	c.StoreTimeout = orDefault(c.StoreTimeout, DefaultStoreTimeout)
	c.Parallel = orDefault(c.Parallel, DefaultParallel)
	c.MaxPayload = orDefault(c.MaxPayload, DefaultMaxPayload)
	c.Holder = orDefault(c.Holder, newHolder())
	return c
}
