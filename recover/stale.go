package recovery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// sightings is what a worker remembers of the records that are not final.
type sightings map[branches.TxnID]*sighting

// sighting is one record as this worker has seen it.
type sighting struct {
	state     journal.State
	updatedMS int64
	first     time.Time // when this worker first saw it so; time.Now's is monotonic
	tries     int       // of rolling it forward, in a row
	next      time.Time // not before then
	waiting   []string  // stores that it waits for
}

// see takes in a record and returns what is known of it. A claim of this
// worker's own is no change.
func (w *Worker) see(rec journal.Record, now time.Time) *sighting {
	s := w.seen[rec.Txn]
	if s == nil || s.state != rec.State {
		s = &sighting{state: rec.State, updatedMS: rec.UpdatedMS, first: now}
		w.seen[rec.Txn] = s
	}
	if s.updatedMS != rec.UpdatedMS {
		s.updatedMS = rec.UpdatedMS
		if rec.Note.Claim == nil || rec.Note.Claim.Holder != w.cfg.Holder {
			s.first = now
		}
	}
	return s
}

// stale reports whether a record's coordinator may be taken for dead. The
// clocks of other hosts are not trusted: either this worker has itself seen the
// record unchanged for stale_after, or the record is older than that even if its
// clock was max_clock_drift ahead of the journal's.
func (p *pass) stale(rec journal.Record, s *sighting, now time.Time) bool {
	return now.Sub(s.first) >= p.w.cfg.StaleAfter ||
		p.age(rec.UpdatedMS) > p.w.cfg.StaleAfter+p.w.cfg.MaxClockDrift
}

// takeStale finds the records to take over, and says of every other one why not.
func (p *pass) takeStale() {
	now := p.w.wall.Now()
	for txn := range p.w.seen {
		if _, there := p.live[txn]; !there {
			delete(p.w.seen, txn)
		}
	}
	for _, txn := range sortedIDs(p.live) { // oldest first
		rec := p.live[txn]
		s := p.w.see(rec, now)
		switch kind, text := p.hold(rec, s, now); {
		case kind != "":
			p.leave(rec, kind, text)
		case rec.State == journal.StateCommitted:
			p.jobs = append(p.jobs, &job{rec: rec, decided: true, run: p.rollForward})
		default:
			p.jobs = append(p.jobs, &job{rec: rec, run: p.abort})
		}
	}
}

// hold says why a record is left as it is in this pass; the empty Kind: it is
// to be worked on.
func (p *pass) hold(rec journal.Record, s *sighting, now time.Time) (Kind, string) {
	if names := p.storesOf(rec, func(s *storePass) bool { return s == nil }); names != nil {
		return KindNotConfigured, "this DSN has no store " + strings.Join(names, ", ")
	}
	if names := p.storesOf(rec, func(s *storePass) bool { return s.Standing == StandingRefused }); names != nil {
		// Not even ABORTED is written: where the journal is a restored one, its
		// PREPARED may long be COMMITTED, and a person can still put that right.
		return KindHeld, "store left alone: " + strings.Join(names, ", ")
	}
	if p.suspect && rec.State != journal.StateCommitted {
		return KindHeld, textSuspect
	}
	down := p.storesOf(rec, func(s *storePass) bool { return s.Standing == StandingDown })
	if down != nil && len(down) == len(p.storesOf(rec, func(*storePass) bool { return true })) {
		return KindHeld, "store down: " + strings.Join(down, ", ")
	}
	claim := rec.Note.Claim
	claimed := rec.State == journal.StateCommitted && claim != nil
	switch {
	case claimed && claim.Holder != p.w.cfg.Holder && claim.UntilMS > p.clock.UnixMilli():
		return KindClaimed, "worker " + claim.Holder + " is at it"
	case claimed: // it was taken from its coordinator once: it stays recovery's
	case !p.stale(rec, s, now):
		return KindFresh, fmt.Sprintf("changed less than %s ago: its coordinator may be alive", p.w.cfg.StaleAfter)
	}
	if len(s.waiting) > 0 && subset(s.waiting, down) {
		return KindPending, "store down: " + strings.Join(s.waiting, ", ")
	}
	if now.Before(s.next) && !p.returned(s.waiting) {
		return KindPending, "tried a moment ago: " + strings.Join(s.waiting, ", ")
	}
	return "", ""
}

// storesOf lists the stores of branches that are not settled yet and that is
// chosen by is, which gets nil for a store this DSN lacks.
func (p *pass) storesOf(rec journal.Record, is func(*storePass) bool) []string {
	var names []string
	for _, b := range rec.Branches {
		if !b.Outcome.Settled() && is(p.stores[b.Store]) {
			names = append(names, b.Store)
		}
	}
	return names
}

// returned reports whether one of the stores was down in the last pass and is
// not in this one: what waited for it need not wait longer.
func (p *pass) returned(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		s := p.stores[name]
		return s != nil && s.ok() && s.returned
	})
}

// leave keeps a record as it is, with the reason, and says so of what is stuck.
// It returns the item that says it.
func (p *pass) leave(rec journal.Record, kind Kind, text string) Item {
	if heuristic(rec) { // it matters more than why the record was left
		kind, text = KindHeuristic, flaggedItem(rec).Text
	}
	item := Item{Kind: kind, Txn: rec.Txn, State: rec.State, AgeMS: p.age(rec.CreatedMS).Milliseconds(), Text: text}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.add(item)
	if p.overdue(rec) && kind != KindHeuristic {
		stuck := item
		stuck.Kind = KindStuck
		p.report.add(stuck)
	}
	return item
}

// overdue reports whether a decided unit is unfinished for longer than alert_after.
func (p *pass) overdue(rec journal.Record) bool {
	return rec.State == journal.StateCommitted && p.age(rec.CreatedMS) > p.w.cfg.AlertAfter
}

// heuristic reports whether a branch of the record waits for a person.
func heuristic(rec journal.Record) bool {
	return slices.ContainsFunc(rec.Branches, func(b journal.Branch) bool { return b.Outcome == journal.OutcomeHeuristic })
}

func subset(names, of []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(of, n) })
}

func keys[K comparable, V any](m map[K]V) []K {
	list := make([]K, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	return list
}
