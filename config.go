package rhizodat

import (
	"database/sql/driver"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
)

// Config is a DSN in typed form. It is what [ParseDSN] returns and what
// NewConnector takes; a program that has its settings elsewhere fills one in
// and needs no text. The zero value of every field but Stores is its default,
// which the package comment lists.
//
// Every way of printing a Config, a [StoreConfig] or a [JournalConfig] masks
// its secrets: %v, %+v, %#v, %s, log/slog, encoding/json. (fmt and
// encoding/json cannot ask a Config that another struct holds by value in an
// unexported field: hold a pointer there.) A Config is read only once a
// connector was made of it.
type Config struct {
	// Stores are the stores by name: [a-z][a-z0-9_]{0,31}, and not journal.
	Stores map[string]StoreConfig
	// Journal is where commits of several branches are decided. The zero value
	// is none: then such a commit is refused before anything is written.
	Journal JournalConfig
	// Default is the store of a statement that names none. Empty: the only
	// store; with several stores every statement then has to name one.
	Default string

	// MinFree are the free bytes every store of a unit must report at S3.
	// Zero: not asked.
	MinFree int64
	// CommitTimeout bounds S4 to S7 with the read-back, and Rollback. Zero:
	// 20s. It must stay below StaleAfter where a unit can commit.
	CommitTimeout time.Duration
	// FinishTimeout bounds S8 and S9 before Commit returns pending. Zero: 5s.
	FinishTimeout time.Duration
	// StaleAfter is how long a record stays unchanged before recovery takes
	// it. Zero: 30s.
	StaleAfter time.Duration
	// AlertAfter is how long a decided unit stays unfinished before it is
	// reported as stuck. Zero: 10m.
	AlertAfter time.Duration
	// LockTimeout bounds a wait for a lock where there are several stores.
	// Zero: 10s. [NoLockTimeout], or any negative: none.
	LockTimeout time.Duration
	// MaxPayload bounds the bytes of a unit's staged payloads in the journal.
	// Zero: 64MiB.
	MaxPayload int64
	// Retain is how long final records and one-phase markers are kept. Zero: 24h.
	Retain time.Duration
	// MaxClockDrift is how far two clocks may be apart. Zero: 60s.
	MaxClockDrift time.Duration
	// OnPending is what Commit returns of a unit that is decided but not yet
	// finished everywhere.
	OnPending OnPending
	// Markers say which one-phase commits leave a marker.
	Markers Markers
	// Ping is what a ping reaches.
	Ping Ping
	// JournalConns is the size of the journal's own pool. Zero: 16.
	JournalConns int
	// JournalLabel is the label of a drevo journal's nodes. Empty: DatJournal.
	JournalLabel string
	// CommitWait bounds the wait of a one-branch Iceberg commit for its table.
	// Zero: 45s.
	CommitWait time.Duration
	// ApplicationName is what the stores show of a session whose own URL says
	// nothing.
	ApplicationName string

	// Logger takes what nobody waits for (a branch left to recovery, a store
	// that is down). Nil: slog.Default. It has no place in a DSN.
	Logger *slog.Logger
	// Observer sees every step and outcome, synchronously. Nil: nobody does. It
	// has no place in a DSN.
	Observer Observer
}

// StoreConfig is one store: a URL, or a ready Connector, or Options that say
// which adapter they are of; Options also go with a URL.
type StoreConfig struct {
	// URL is the store's own, as pasted.
	URL string
	// Connector is a ready connector instead of a URL. It is taken for a
	// PostgreSQL one, since only that adapter goes over database/sql, unless
	// Options name another.
	Connector driver.Connector
	// Options are the adapter's own (postgres.Options, …), handed to it as they
	// are. They stand without a URL if they have a method Scheme() string.
	Options any
}

// JournalConfig is the journal: as [StoreConfig]. The zero value is none.
type JournalConfig struct {
	URL       string
	Connector driver.Connector
	Options   any
}

// IsZero reports whether there is no journal.
func (j JournalConfig) IsZero() bool {
	return j.URL == "" && j.Connector == nil && j.Options == nil
}

// Scheme is the scheme of the adapter that opens the store: of its URL, of its
// Options, or postgres for a Connector. Empty when nothing says it.
func (s StoreConfig) Scheme() string {
	if name, _, found := strings.Cut(s.URL, ":"); found {
		return name
	}
	if o, ok := s.Options.(interface{ Scheme() string }); ok {
		return o.Scheme()
	}
	if s.Connector != nil {
		return "postgres"
	}
	return ""
}

// Scheme is the scheme of the adapter that opens the journal.
func (j JournalConfig) Scheme() string { return StoreConfig(j).Scheme() }

// NoLockTimeout is lock_timeout=0: waits for locks are not bounded by us.
const NoLockTimeout time.Duration = -1

// OnPending is what Commit returns of a pending unit.
type OnPending uint8

// The values of on_pending.
const (
	PendingError OnPending = iota // *CommittedPending
	PendingOK                     // nil, for code that cannot be changed
)

// Markers say which one-phase commits leave a marker.
type Markers uint8

// The values of markers.
const (
	MarkersAuto Markers = iota // where there is a journal or a second store
	MarkersOn                  // also with one store and no journal
)

// Ping is what a ping reaches.
type Ping uint8

// The values of ping.
const (
	PingAll     Ping = iota // the journal and every store
	PingDefault             // the default store
)

var (
	onPendingWords = []string{"error", "ok"}
	markersWords   = []string{"auto", "on"}
	pingWords      = []string{"all", "default"}
)

func (o OnPending) String() string { return wordOf(onPendingWords, o) }
func (m Markers) String() string   { return wordOf(markersWords, m) }
func (p Ping) String() string      { return wordOf(pingWords, p) }

// StoreNames lists the names of the stores in order.
func (c *Config) StoreNames() []string { return slices.Sorted(maps.Keys(c.Stores)) }

// WithDefaults returns a copy that states every default. Default becomes the
// only store. LockTimeout stays [NoLockTimeout] where it is off.
func (c *Config) WithDefaults() *Config {
	filled := *c
	filled.Stores = maps.Clone(c.Stores)
	for _, o := range options {
		if o.fallback != "" && o.get(&filled) == "" {
			_ = o.set(&filled, o.fallback) // a test sets every fallback of the table
		}
	}
	if names := filled.StoreNames(); filled.Default == "" && len(names) == 1 {
		filled.Default = names[0]
	}
	if filled.Logger == nil {
		filled.Logger = slog.Default()
	}
	return &filled
}
