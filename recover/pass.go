package recovery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// pass is one pass of a worker, from the first look at the stores to the report.
type pass struct {
	w       *Worker
	journal journal.Identity
	clock   time.Time // the journal's own, when it was read
	stores  map[string]*storePass
	live    map[branches.TxnID]journal.Record // every record that is not final
	suspect bool                              // nothing is presumed: see behind
	jobs    []*job
	report  Report
	mu      sync.Mutex // guards report while jobs run
}

// storePass is one store in one pass.
type storePass struct {
	name   string
	store  branches.Store // bounded and paced; see paced
	id     identity
	err    error // why the store is not worked on
	listed []branches.Prepared
	// returned: it was down in the pass before.
	returned bool
	StoreReport
}

func (s *storePass) ok() bool { return s.Standing == StandingOK }

// run is the pass, in the order of the package comment.
func (p *pass) run(ctx context.Context) error {
	var err error
	if p.journal, err = p.w.registry.Identify(ctx); err != nil {
		return err
	}
	p.report.Journal = p.journal.ID
	p.meetStores(ctx)
	p.listStores(ctx)
	p.suspect = p.behind()
	// INVARIANT R1: every listing is complete before the journal is read.
	if err := p.readJournal(ctx); err != nil {
		return err
	}
	if err := p.sweep(ctx); err != nil {
		return err
	}
	p.takeStale()
	if err := p.work(ctx); err != nil {
		return err
	}
	return p.tally(ctx)
}

// meetStores finds out who the stores are, all at once.
func (p *pass) meetStores(ctx context.Context) {
	for name, store := range p.w.cfg.Stores {
		s := &storePass{name: name, store: newPaced(store, p.w.cfg.StoreTimeout)}
		s.Store = name
		p.stores[name] = s
	}
	now := p.w.wall.Now()
	p.eachStore(func(s *storePass) {
		if s.err = p.w.health[s.name].resting(now); s.err != nil {
			return
		}
		limit, cancel := context.WithTimeout(ctx, p.w.cfg.StoreTimeout)
		defer cancel()
		store := p.w.cfg.Stores[s.name]
		if s.id, s.err = p.w.identify(limit, s.name, store); s.err != nil {
			return
		}
		if refused := s.id.refusal(s.name, p.journal); refused != nil {
			s.err = refused
		}
	})
	p.refuseShared()
	p.eachStore(func(s *storePass) {
		if s.err != nil {
			return
		}
		limit, cancel := context.WithTimeout(ctx, p.w.cfg.StoreTimeout)
		defer cancel()
		s.err = p.w.enroll(limit, p.journal, s.name, &s.id)
	})
}

// refuseShared refuses both of two stores that are one place: the marker of one
// would make the other's branch look applied.
func (p *pass) refuseShared() {
	at := map[branches.Place]*storePass{}
	for _, name := range sortedKeys(p.stores) {
		s := p.stores[name]
		other, taken := at[s.id.place]
		switch {
		case s.id.place == "":
		case !taken:
			at[s.id.place] = s
		default:
			for _, pair := range [][2]*storePass{{s, other}, {other, s}} {
				pair[0].err = &Refused{
					Store: pair[0].name, Reason: ReasonShared, Way: hintApart,
					Detail: "store " + pair[1].name + " is at the same place, " + string(s.id.place),
				}
			}
		}
	}
}

// behind reports whether a store has seen sweeps that this journal does not know
// of. Then the journal is a copy or was restored, for every store: what is final
// in it is true all the same, but nothing may be presumed from what it lacks.
func (p *pass) behind() bool {
	for _, s := range p.stores {
		if refused, ok := errors.AsType[*Refused](s.err); ok && refused.Reason == ReasonAhead {
			return true
		}
	}
	return false
}

// listStores counts the sweep and lists the prepared transactions. A listing
// that fails ends this store's part of the pass (R4).
func (p *pass) listStores(ctx context.Context) {
	behind := p.behind()
	p.eachStore(func(s *storePass) {
		store := p.w.cfg.Stores[s.name]
		if s.err == nil && !behind { // else the true journal would be behind this store too
			limit, cancel := context.WithTimeout(ctx, p.w.cfg.StoreTimeout)
			defer cancel()
			s.err = p.w.countSweep(limit, p.journal, s.name, store, &s.id)
		}
		if lister, ok := store.(branches.Lister); ok && s.err == nil {
			limit, cancel := context.WithTimeout(ctx, p.w.cfg.StoreTimeout)
			defer cancel()
			s.listed, s.err = lister.Prepared(limit)
		}
		if s.err != nil {
			s.listed = nil
		}
		s.judge()
		s.Listed, s.Sweeps = len(s.listed), s.id.entry.Sweeps
	})
	now := p.w.wall.Now()
	for _, name := range sortedKeys(p.stores) {
		s := p.stores[name]
		p.w.health[name].note(ctx, p.w, s, now)
	}
}

// judge turns what happened to a store into its standing.
func (s *storePass) judge() {
	var refused *Refused
	switch {
	case s.err == nil:
		s.Standing = StandingOK
	case errors.As(s.err, &refused):
		s.Standing, s.Problem, s.Way = StandingRefused, refused.Detail, refused.Way
	case errors.Is(s.err, branches.ErrNotInstalled):
		s.Standing, s.Problem, s.Way = StandingRefused, string(ReasonNotInstalled), hintInit
	default:
		s.Standing, s.Problem = StandingDown, s.err.Error()
	}
}

// eachStore runs f for every store at once and waits for all.
func (p *pass) eachStore(f func(*storePass)) {
	var wg sync.WaitGroup
	for _, s := range p.stores {
		wg.Go(func() { f(s) })
	}
	wg.Wait()
}

// readJournal reads every record that is not final, in one scan.
func (p *pass) readJournal(ctx context.Context) error {
	clock, err := p.w.journalClock(ctx)
	if err != nil {
		return err
	}
	p.clock = clock
	err = p.w.cfg.Journal.Scan(ctx, journal.Filter{States: unfinished}, func(rec journal.Record) error {
		p.live[rec.Txn] = rec
		return nil
	})
	damaged, complete := damagedIn(err)
	if !complete {
		return err
	}
	for _, d := range damaged {
		txn, _ := branches.ParseTxnID(d.Text) // the zero id where even that is damaged
		p.report.add(Item{Kind: KindDamaged, Txn: txn, Text: d.Error()})
	}
	return nil
}

// unfinished are the states of a record that somebody still has to work on.
var unfinished = []journal.State{journal.StateActive, journal.StatePrepared, journal.StateCommitted}

// journalClock is the journal's own clock, or this host's for a journal that
// has none.
func (w *Worker) journalClock(ctx context.Context) (time.Time, error) {
	if keeper, ok := w.cfg.Journal.(journal.Timekeeper); ok {
		return keeper.Clock(ctx)
	}
	return w.wall.Now(), nil
}

// age of something that began at ms, by the journal's clock.
func (p *pass) age(ms int64) time.Duration {
	return max(p.clock.Sub(time.UnixMilli(ms)), 0)
}

// damagedIn finds the records that a listing could not read. complete reports
// whether the listing had no other fault.
func damagedIn(err error) (damaged []*journal.Damaged, complete bool) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here, node by node
	case nil:
		return nil, true
	case *journal.Damaged:
		return []*journal.Damaged{e}, true
	case interface{ Unwrap() []error }:
		complete = true
		for _, inner := range e.Unwrap() {
			found, ok := damagedIn(inner)
			damaged, complete = append(damaged, found...), complete && ok
		}
		return damaged, complete
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return damagedIn(inner)
		}
	}
	return nil, false
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
