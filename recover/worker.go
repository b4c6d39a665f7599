package recovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

// ErrNoJournal means that there is nothing to recover without a journal.
var ErrNoJournal = errors.New("rhizodat: open recovery: the DSN names no journal: units of one branch need no recovery")

// errNoRegistry is for a journal of somebody's own making.
var errNoRegistry = errors.New("rhizodat: open recovery: this journal cannot tell whose a prepared transaction is (journal.Registry)")

// Worker is one recovery worker. Its methods may be called from any goroutine;
// passes of one worker run one after the other.
type Worker struct {
	cfg      Config
	registry journal.Registry
	wall     hlc.Wall
	log      *slog.Logger

	mu       sync.Mutex // held by a pass
	seen     sightings
	health   map[string]*health
	journal  health
	audited  time.Time // when records that are final were last looked through
	flagging sync.Mutex
	flagged  map[branches.TxnID]Item // aborted records that wait for a person
	compacts time.Time               // when compaction is due

	strangers map[branches.GID]time.Time // gids found to be other deployments', and when
	payloads  *budget
}

// New makes a worker. It connects to nothing. ErrNoJournal when cfg has none.
func New(cfg Config) (*Worker, error) {
	if cfg.Journal == nil {
		return nil, ErrNoJournal
	}
	registry, ok := cfg.Journal.(journal.Registry)
	if !ok {
		return nil, errNoRegistry
	}
	cfg = cfg.withDefaults()
	w := &Worker{
		cfg: cfg, registry: registry, wall: cfg.Clock.Wall(), log: cfg.Logger,
		seen: sightings{}, health: map[string]*health{}, flagged: map[branches.TxnID]Item{}, strangers: map[branches.GID]time.Time{},
		payloads: newBudget(cfg.MaxPayload),
	}
	for name := range cfg.Stores {
		w.health[name] = &health{}
	}
	return w, nil
}

// Once makes one pass. The report tells what was done and what is left, also
// beside an error; an error means that the pass could not be finished, most
// often because the journal could not be reached.
func (w *Worker) Once(ctx context.Context) (Report, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	began := w.wall.Now()
	p := &pass{w: w, stores: map[string]*storePass{}, live: map[branches.TxnID]journal.Record{}}
	p.report.At = began
	err := p.run(ctx)
	p.report.TookMS = w.wall.Now().Sub(began).Milliseconds()
	w.journalAnswered(ctx, err)
	w.say(ctx, &p.report)
	if w.cfg.Observer != nil {
		w.cfg.Observer.Pass(ctx, p.report, err)
	}
	return p.report, err
}

// Run makes passes until ctx ends, and returns nil then: the transactions it was
// working on are finished first, each within its timeouts. A pass that fails
// is followed by longer and longer pauses.
func (w *Worker) Run(ctx context.Context) error {
	w.log.InfoContext(ctx, "rhizodat: recovery runs", "holder", w.cfg.Holder, "interval", w.cfg.Interval)
	for failures := 0; ctx.Err() == nil; {
		if _, err := w.Once(ctx); err == nil {
			failures = 0
			w.compactIfDue(ctx)
		} else {
			failures++
		}
		_ = w.wall.Sleep(ctx, jitter(backoff(w.cfg.Interval, failures))) // it fails when ctx ends
	}
	w.log.InfoContext(ctx, "rhizodat: recovery stopped", "holder", w.cfg.Holder)
	return nil
}

// compactIfDue spares the journal a compaction on the first pass of every
// process, which would make a crash loop expensive.
func (w *Worker) compactIfDue(ctx context.Context) {
	now := w.wall.Now()
	switch {
	case w.cfg.CompactEvery < 0:
	case w.compacts.IsZero():
		w.compacts = now.Add(jitter(w.cfg.CompactEvery))
	case now.After(w.compacts):
		w.compacts = now.Add(jitter(w.cfg.CompactEvery))
		done, err := w.Compact(ctx, CompactOptions{})
		if err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "rhizodat: compaction ended early", "error", err)
		}
		w.log.InfoContext(ctx, "rhizodat: compacted", "records", done.Records, "markers", done.Markers, "kept", done.Kept)
	}
}

// slowest pause between two passes, or between two looks at a store, that fail.
const slowest = time.Minute

// backoff is interval, doubled with every failure in a row.
func backoff(interval time.Duration, failures int) time.Duration {
	limit := max(interval, slowest)
	for ; failures > 0 && interval < limit; failures-- {
		interval *= 2
	}
	return min(interval, limit)
}

// jitter keeps workers that were started together from meeting on every pass.
func jitter(d time.Duration) time.Duration {
	spread := int64(d) / 5
	if spread <= 0 {
		return d
	}
	return d - time.Duration(spread) + time.Duration(mathrand.Int64N(2*spread+1)) //nolint:gosec // G404: not a secret
}

// newHolder names this worker so that a person finds it.
func newHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:6])
}
