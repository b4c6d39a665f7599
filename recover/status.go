package recovery

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Status is the state of a deployment. Reading it changes nothing.
type Status struct {
	Journal      string                `json:"journal"` // its id
	Place        branches.Place        `json:"place"`   // where it is
	Clock        time.Time             `json:"clock"`   // the journal's own
	Moved        bool                  `json:"moved"`   // it is not where it was made or adopted
	Horizon      time.Time             `json:"horizon"` // of compaction; zero before the first
	States       map[journal.State]int `json:"states"`
	OldestLeftMS int64                 `json:"oldest_left_ms"` // age of the oldest record that is not final
	Heuristic    int                   `json:"heuristic"`      // records that wait for a person
	Stuck        int                   `json:"stuck"`
	Damaged      int                   `json:"damaged"`
	Stores       []StoreStatus         `json:"stores"`
}

// StoreStatus is one store, with every prepared transaction that it holds.
type StoreStatus struct {
	StoreReport
	Place    branches.Place   `json:"place,omitempty"`
	Prepared []PreparedStatus `json:"prepared"`
}

// PreparedStatus is one prepared transaction.
type PreparedStatus struct {
	GID       branches.GID   `json:"gid"`
	Txn       branches.TxnID `json:"dat_txn"`
	AgeMS     int64          `json:"age_ms"`
	Owner     string         `json:"owner"`
	State     string         `json:"state"` // of its record; "none" without one
	Foreign   bool           `json:"foreign"`
	MayFinish bool           `json:"may_finish"`
}

// noRecord is the State of a transaction that has none. The text is format.
const noRecord = "none"

// Status reads the journal and every store that can be reached.
func (w *Worker) Status(ctx context.Context) (Status, error) {
	v, err := w.view(ctx)
	if err != nil {
		return Status{}, err
	}
	s := Status{
		Journal: v.journal.ID, Place: v.journal.Here, Clock: v.clock, Moved: v.journal.Moved(),
		States: map[journal.State]int{},
	}
	if s.Horizon, err = w.horizon(ctx); err != nil {
		return s, err
	}
	states := map[branches.TxnID]journal.State{}
	err = w.cfg.Journal.Scan(ctx, journal.Filter{States: journal.States}, func(rec journal.Record) error {
		s.States[rec.State]++
		states[rec.Txn] = rec.State
		switch {
		case heuristic(rec):
			s.Heuristic++
		case v.overdue(rec):
			s.Stuck++
		}
		if !rec.State.Final() {
			s.OldestLeftMS = max(s.OldestLeftMS, v.age(rec.CreatedMS).Milliseconds())
		}
		return nil
	})
	damaged, complete := damagedIn(err)
	if !complete {
		return s, err
	}
	s.Damaged = len(damaged)
	for _, name := range sortedKeys(v.stores) {
		s.Stores = append(s.Stores, v.storeStatus(v.stores[name], states))
	}
	return s, nil
}

func (p *pass) storeStatus(s *storePass, states map[branches.TxnID]journal.State) StoreStatus {
	status := StoreStatus{Place: s.id.place, Prepared: []PreparedStatus{}}
	for _, g := range s.listed {
		state, known := states[g.GID.Txn()]
		one := PreparedStatus{
			GID: g.GID, Txn: g.GID.Txn(), AgeMS: p.preparedFor(g).Milliseconds(), Owner: g.Owner,
			State: orDefault(string(state), noRecord), Foreign: !known && !g.Ours, MayFinish: g.MayFinish,
		}
		if one.Foreign {
			s.Foreign++
		} else {
			s.oldest(p, g)
		}
		status.Prepared = append(status.Prepared, one)
	}
	status.StoreReport = s.StoreReport
	return status
}

// view is a pass that only looks: identities, clocks and listings, nothing
// bound, counted or written.
func (w *Worker) view(ctx context.Context) (*pass, error) {
	p := &pass{w: w, stores: map[string]*storePass{}}
	var err error
	if p.journal, err = w.registry.Identify(ctx); err != nil {
		return p, err
	}
	if p.clock, err = w.journalClock(ctx); err != nil {
		return p, err
	}
	for name, store := range w.cfg.Stores {
		s := &storePass{name: name, store: newPaced(store, w.cfg.StoreTimeout)}
		s.Store = name
		p.stores[name] = s
	}
	p.eachStore(func(s *storePass) {
		limit, cancel := context.WithTimeout(ctx, w.cfg.StoreTimeout)
		defer cancel()
		store := w.cfg.Stores[s.name]
		if s.id, s.err = w.identify(limit, s.name, store); s.err != nil {
			return
		}
		if lister, ok := store.(branches.Lister); ok {
			s.listed, s.err = lister.Prepared(limit)
		}
		// A store that is refused is listed all the same: a person has to see
		// what it holds.
		if refused := s.id.refusal(s.name, p.journal); refused != nil && s.err == nil {
			s.err = refused
		}
		s.Listed, s.Sweeps = len(s.listed), s.id.entry.Sweeps
	})
	p.refuseShared()
	for _, s := range p.stores {
		s.judge()
	}
	return p, nil
}

// Filter of List.
type Filter struct {
	States []journal.State // empty: those that are not final
	Limit  int             // 0: no limit
}

// Entry is one record in a list.
type Entry struct {
	Txn         branches.TxnID `json:"dat_txn"`
	State       journal.State  `json:"state"`
	TxTime      string         `json:"dat_tx_time,omitempty"`
	AgeMS       int64          `json:"age_ms"`
	UnchangedMS int64          `json:"unchanged_ms"`
	Stores      []string       `json:"stores"`
	Notes       []string       `json:"notes,omitempty"` // what is out of the ordinary
}

// List lists records, oldest first. It reads the journal alone.
func (w *Worker) List(ctx context.Context, f Filter) ([]Entry, error) {
	clock, err := w.journalClock(ctx)
	if err != nil {
		return nil, err
	}
	p := &pass{w: w, clock: clock}
	if len(f.States) == 0 {
		f.States = unfinished
	}
	entries := []Entry{}
	err = w.cfg.Journal.Scan(ctx, journal.Filter{States: f.States, Limit: f.Limit}, func(rec journal.Record) error {
		entries = append(entries, p.entryOf(rec))
		return nil
	})
	return entries, err
}

func (p *pass) entryOf(rec journal.Record) Entry {
	e := Entry{
		Txn: rec.Txn, State: rec.State, AgeMS: p.age(rec.CreatedMS).Milliseconds(),
		UnchangedMS: p.age(rec.UpdatedMS).Milliseconds(), Stores: storeNames(rec),
	}
	if !rec.TxTime.IsZero() {
		e.TxTime = rec.TxTime.String()
	}
	for _, b := range rec.Branches {
		if b.Outcome != journal.OutcomeNormal {
			e.Notes = append(e.Notes, b.Store+" "+string(b.Outcome))
		}
		if _, here := p.w.cfg.Stores[b.Store]; !here {
			e.Notes = append(e.Notes, b.Store+" not configured here")
		}
	}
	if p.overdue(rec) && !heuristic(rec) {
		e.Notes = append(e.Notes, string(KindStuck))
	}
	return e
}

// missing lists the stores of a record that this DSN lacks.
func (w *Worker) missing(rec journal.Record) string {
	names := slices.DeleteFunc(storeNames(rec), func(name string) bool {
		_, here := w.cfg.Stores[name]
		return here
	})
	return strings.Join(names, ", ")
}
