package journal

import (
	"errors"
	"log/slog"
	"time"

	"github.com/rhizodat/rhizodat-go/hlc"
)

// Defaults of Options.
const (
	DefaultPlaces     = 16
	DefaultMaxDrift   = time.Minute
	DefaultMaxPayload = 64 << 20
)

// ErrNoLease means that a unit under a lease was handed to a journal that keeps none.
var ErrNoLease = errors.New("rhizodat: write journal record: this journal keeps no leases")

// Options are what every kind of journal is opened with. The zero Options are
// the defaults.
type Options struct {
	// Places is how many commits may hold a session at once (journal_conns).
	// One more is kept back for what is not a commit: listings, DONE, sweeps.
	Places int
	// MaxDrift is how far the caller's clock may be from the journal's at S4
	// (max_clock_drift).
	MaxDrift time.Duration
	// MaxPayload is the greatest size, in bytes, of a record's payloads
	// together (max_payload).
	MaxPayload int64
	// Wall is the caller's clock. nil is hlc.System.
	Wall hlc.Wall
	// Logger takes the one line that a journal for development writes. nil is
	// slog.Default().
	Logger *slog.Logger
}

// WithDefaults fills what is not set.
func (o Options) WithDefaults() Options {
	if o.Places <= 0 {
		o.Places = DefaultPlaces
	}
	if o.MaxDrift <= 0 {
		o.MaxDrift = DefaultMaxDrift
	}
	if o.MaxPayload <= 0 {
		o.MaxPayload = DefaultMaxPayload
	}
	if o.Wall == nil {
		o.Wall = hlc.System
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}
