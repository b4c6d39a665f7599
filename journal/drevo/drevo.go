// Package drevo keeps a journal in a drevo graph of its own.
//
// One node is one record. A change of a record is one transaction that reads
// what stands, checks it by the transition table of package journal, writes, and
// commits. drevo lets it commit only if nobody has committed anything to the
// graph since it began, which makes every transaction here a compare-and-set,
// and its refusal ("Outdated") the order to read again. Nothing is ever written
// by autocommit: drevo logs such a write behind others that came after it, and a
// restart could undo a decision.
//
// Every write is forced: drevo acknowledges no COMMIT before its log is on the
// disk, so what may stay unforced is forced here as well. What is read is on the
// disk, too.
//
// A journal is refused on the graph of a store of the deployment: a prepared
// branch holds the whole graph against every other write, the decision that
// would end it included.
//
// docs/journal.md is the format.
package drevo

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/internal/places"
)

// Options of a journal in drevo. The zero Options are the defaults.
type Options struct {
	journal.Options

	// Label is the label of the records (journal_label). Empty: DatJournal.
	Label string
	// Configure may change the configuration of the Neo4j driver.
	Configure func(*config.Config)
}

// DefaultLabel is the label of records where Options name none.
const DefaultLabel = "DatJournal"

// Journal is a journal in a drevo graph. It is safe for concurrent use.
type Journal struct {
	graph  *bolt.Graph
	words  words
	opts   journal.Options
	places *places.Places
	turn   turn
	closed atomic.Bool

	// examined is set once a layout was found that this program knows.
	examined atomic.Bool

	// proving lets one goroutine at a time probe the conditional writes.
	proving chan struct{}
	proved  bool
}

var (
	_ journal.Journal     = (*Journal)(nil)
	_ journal.Registry    = (*Journal)(nil)
	_ journal.Compactor   = (*Journal)(nil)
	_ journal.Timekeeper  = (*Journal)(nil)
	_ journal.Adopter     = (*Journal)(nil)
	_ journal.Conditional = (*Journal)(nil)
	_ journal.Separate    = (*Journal)(nil)
	_ branches.Installer  = (*Journal)(nil)
	_ branches.Classifier = (*Journal)(nil)
	_ branches.Placer     = (*Journal)(nil)
)

var label = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,31}$`)

// Open makes the journal of a bolt:// URL. It does not connect. Its errors hold
// nothing of the URL.
func Open(location string, opts Options) (*Journal, error) {
	target, err := bolt.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("rhizodat: open journal: %w", err)
	}
	if opts.Label == "" {
		opts.Label = DefaultLabel
	}
	if !label.MatchString(opts.Label) || ownSuffix(opts.Label) {
		return nil, fmt.Errorf("rhizodat: open journal: journal_label %q: a label is a letter, then letters, digits and _, 32 at most, and does not end as our other labels do (%s)",
			opts.Label, strings.Join(suffixes, ", "))
	}
	opts.Options = opts.WithDefaults()
	graph, err := bolt.Open(target, bolt.Options{
		Connections: opts.Places + 2, Wall: opts.Wall, Configure: opts.Configure,
	})
	if err != nil {
		return nil, fmt.Errorf("rhizodat: open journal: %w", err)
	}
	return &Journal{
		graph: graph, words: newWords(opts.Label), opts: opts.Options,
		places: places.New(opts.Places), turn: make(turn, 1), proving: make(chan struct{}, 1),
	}, nil
}

// Session implements journal.Journal.
func (j *Journal) Session(ctx context.Context) (journal.Session, error) {
	release, err := j.places.Take(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("rhizodat: take journal session: %w", err)
	}
	return &session{j: j, release: release}, nil
}

// Separate says that no store may be in the journal's graph.
func (j *Journal) Separate() {}

// Classify implements branches.Classifier: it tells whether a unit that failed
// before its decision is worth re-running.
func (j *Journal) Classify(err error) branches.Kind {
	var own interface{ Kind() branches.Kind }
	var conflict *journal.Conflict
	switch {
	case errors.As(err, &own):
		return own.Kind()
	case errors.As(err, &conflict), errors.Is(err, branches.ErrNotInstalled), errors.Is(err, context.Canceled):
		return branches.Permanent
	case branches.DeviceFull(err):
		return branches.StoreFull
	case bolt.IsDuplicateTitle(err):
		return branches.Permanent // it would be no rule of the user's
	}
	return bolt.Classify(err)
}

// Close implements journal.Journal.
func (j *Journal) Close() error {
	if j.closed.Swap(true) {
		return nil
	}
	j.places.Close()
	if err := j.graph.Close(); err != nil {
		return fmt.Errorf("rhizodat: close journal: %w", err)
	}
	return nil
}

// ready examines the journal once.
func (j *Journal) ready(ctx context.Context) error {
	if j.examined.Load() {
		return nil
	}
	meta, err := j.meta(ctx)
	if err != nil {
		return j.noGraph(err)
	}
	if meta.layout != Layout {
		return &journal.Layout{Found: meta.layout, Known: Layout}
	}
	j.examined.Store(true)
	return nil
}

// noGraph says how to make a graph that is not there: the Bolt protocol cannot.
func (j *Journal) noGraph(err error) error {
	if bolt.Code(err) == bolt.CodeNoGraph {
		return fmt.Errorf("there is no graph %s: make it with POST /databases of the server's HTTP side: %w", j.graph.Name(), err)
	}
	return err
}

// with runs f over a place of its own, for what is not part of a commit.
func (j *Journal) with(ctx context.Context, f func() error) error {
	release, err := j.places.Take(ctx, true)
	if err != nil {
		return err
	}
	defer release()
	if err := j.ready(ctx); err != nil {
		return err
	}
	return f()
}

// errUnchanged ends a transaction that found nothing to write. It is rolled back:
// drevo refuses even an empty COMMIT when another writer was first.
var errUnchanged = errors.New("nothing to write")

// write runs f in one transaction, as often as drevo asks for it. f starts from
// what it reads each time.
func (j *Journal) write(ctx context.Context, f func(tx *bolt.Tx) error) error {
	defer j.turn.take(ctx)()
	err := j.graph.Write(ctx, f)
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// turn lets the writers of one process go one after the other: side by side all
// but one would be refused. It is a courtesy and no lock. A writer that has waited
// long goes without, so that one with a dead connection holds up nobody.
type turn chan struct{}

// patience is how long a writer waits for its turn.
const patience = time.Second

func (t turn) take(ctx context.Context) (give func()) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case t <- struct{}{}:
		return func() { <-t }
	case <-ctx.Done():
		return func() {}
	}
}

func (j *Journal) nowMS() int64 { return j.opts.Wall.Now().UnixMilli() }
