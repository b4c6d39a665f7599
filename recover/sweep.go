package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// found is one prepared transaction of a listing.
type found struct {
	s *storePass
	branches.Prepared
}

// sweep looks at every prepared transaction that has no unfinished record. Those
// that have one are the stale rule's.
func (p *pass) sweep(ctx context.Context) error {
	byTxn := map[branches.TxnID][]found{}
	for _, name := range sortedKeys(p.stores) {
		s := p.stores[name]
		for _, g := range s.listed {
			if _, unfinished := p.live[g.GID.Txn()]; unfinished {
				s.oldest(p, g)
				continue
			}
			if p.w.stranger(g, p.w.wall.Now()) {
				p.foreign(found{s, g})
				continue
			}
			byTxn[g.GID.Txn()] = append(byTxn[g.GID.Txn()], found{s, g})
		}
	}
	p.forgetStrangers()
	records, err := p.w.readAll(ctx, keys(byTxn))
	if err != nil {
		return err
	}
	horizon, err := p.w.horizon(ctx) // after the reading: it only rises
	if err != nil {
		return err
	}
	var final []found
	for txn, gids := range byTxn {
		r := records[txn]
		var missing []found
		for _, g := range gids {
			switch {
			case errors.Is(r.err, journal.ErrNotFound) && p.presumed(g, horizon):
				missing = append(missing, g)
			case errors.Is(r.err, journal.ErrNotFound):
			case r.err != nil:
				p.report.add(g.item(p, KindDamaged, r.err.Error()))
			case !p.answersFor(g):
			case r.rec.State.Final():
				g.s.oldest(p, g.Prepared)
				final = append(final, g)
			default: // it became COMMITTED while the journal was read
			}
		}
		if len(missing) > 0 {
			p.rollBack(journal.Record{Txn: txn}, missing)
		}
	}
	return p.sweepFinal(ctx, records, final)
}

// presumed judges a gid whose record is missing: true only when the unit is to
// be presumed aborted.
func (p *pass) presumed(g found, horizon time.Time) bool {
	switch {
	case !g.Ours:
		p.w.strangers[g.GID] = p.w.wall.Now()
		p.foreign(g)
		return false
	case !g.GID.Txn().Time().After(horizon):
		// Its record may have been DONE and compacted: COMMIT PREPARED may be
		// what is missing here, or ROLLBACK PREPARED. Nobody can tell (R5).
		g.s.oldest(p, g.Prepared)
		p.report.add(g.item(p, KindUnexplained, "it has no record and is older than the newest that compaction has removed: rhizorecover show "+g.GID.Txn().String()))
		return false
	case p.suspect:
		g.s.oldest(p, g.Prepared)
		p.report.add(g.item(p, KindHeld, textSuspect))
		return false
	case !g.MayFinish:
		g.s.oldest(p, g.Prepared)
		p.report.add(g.item(p, KindNoRight, "its owner is "+g.Owner))
		return false
	}
	g.s.oldest(p, g.Prepared)
	return true
}

const textSuspect = "a store has seen sweeps that this journal does not know of: nothing is presumed aborted"

// foreign reports a gid that is not ours, unless it is another store's of this
// DSN: that one lists it too, and can tell.
func (p *pass) foreign(g found) {
	if other := p.stores[g.GID.Store()]; other == nil || other == g.s {
		g.s.Foreign++
		p.report.add(g.item(p, KindForeign, "another deployment's"))
	}
}

// stranger reports whether a gid was found to be somebody else's a while ago. Its
// record would have preceded it, so it can only get one by a person's decision;
// hundreds of them are not looked up on every pass.
func (w *Worker) stranger(g branches.Prepared, now time.Time) bool {
	at, known := w.strangers[g.GID]
	return known && !g.Ours && now.Sub(at) < auditEvery
}

// forgetStrangers forgets those that no store lists any more.
func (p *pass) forgetStrangers() {
	listed := map[branches.GID]bool{}
	for _, s := range p.stores {
		for _, g := range s.listed {
			listed[g.GID] = true
		}
	}
	maps.DeleteFunc(p.w.strangers, func(g branches.GID, _ time.Time) bool { return !listed[g] })
}

// answersFor reports whether a gid that has a record is this listing's to act
// on. Several stores of one database list the same gids.
func (p *pass) answersFor(g found) bool {
	if !g.Ours && g.GID.Store() != g.s.name {
		if p.stores[g.GID.Store()] == nil {
			p.report.add(g.item(p, KindNotConfigured, "this DSN has no store "+g.GID.Store()))
		}
		return false
	}
	if !g.MayFinish {
		p.report.add(g.item(p, KindNoRight, "its owner is "+g.Owner))
		return false
	}
	return true
}

// sweepFinal ends gids whose record is final. ABORTED needs no second look.
// DONE does: a commit that ended while the journal was read leaves just that
// picture, and an alert about it would be false.
func (p *pass) sweepFinal(ctx context.Context, records map[branches.TxnID]reading, final []found) error {
	aborted, done := map[branches.TxnID][]found{}, []found{}
	for _, g := range final {
		rec := records[g.GID.Txn()].rec
		switch {
		case rec.State != journal.StateAborted && !lists(rec, g.GID):
			p.report.add(g.item(p, KindUnexplained, "its unit is DONE and its record does not name this branch"))
		case rec.State != journal.StateAborted:
			done = append(done, g)
		case outcomeOf(rec, g.GID) == journal.OutcomeApplied:
			p.report.add(g.item(p, KindHeuristic, "a person resolved it as applied, but its unit is aborted and it is still prepared"))
		default:
			aborted[rec.Txn] = append(aborted[rec.Txn], g)
		}
	}
	for txn, gids := range aborted {
		p.rollBack(records[txn].rec, gids)
	}
	if len(done) == 0 {
		return nil
	}
	still := p.listAgain(ctx, done)
	byTxn := map[branches.TxnID][]found{}
	for _, g := range done {
		if still[g.s.name][g.GID] {
			byTxn[g.GID.Txn()] = append(byTxn[g.GID.Txn()], g)
		}
	}
	for txn, gids := range byTxn {
		rec := records[txn].rec
		for _, g := range gids {
			text := "prepared although its unit is DONE: the store was restored from an older copy; rolled forward"
			if outcomeOf(rec, g.GID) == journal.OutcomeSkipped {
				text = "prepared although a person gave it up; rolled back"
			}
			p.report.add(g.item(p, KindRestored, text))
		}
		p.restore(rec, gids)
	}
	return nil
}

// listAgain lists the stores of done once more. A listing that fails proves
// nothing, so its gids wait for the next pass.
func (p *pass) listAgain(ctx context.Context, done []found) map[string]map[branches.GID]bool {
	still := map[string]map[branches.GID]bool{}
	for _, g := range done {
		if still[g.s.name] != nil {
			continue
		}
		still[g.s.name] = map[branches.GID]bool{}
		lister, ok := p.w.cfg.Stores[g.s.name].(branches.Lister)
		if !ok {
			continue
		}
		limit, cancel := context.WithTimeout(ctx, p.w.cfg.StoreTimeout)
		listed, err := lister.Prepared(limit)
		cancel()
		if err != nil {
			continue
		}
		for _, l := range listed {
			still[g.s.name][l.GID] = true
		}
	}
	return still
}

// oldest keeps the age of the oldest prepared transaction that is ours.
func (s *storePass) oldest(p *pass, g branches.Prepared) {
	s.OldestMS = max(s.OldestMS, p.preparedFor(g).Milliseconds())
}

// preparedFor is how long a transaction has been prepared.
func (p *pass) preparedFor(g branches.Prepared) time.Duration {
	if g.Since.IsZero() {
		return 0
	}
	return max(p.clock.Sub(g.Since), 0)
}

func (g found) item(p *pass, kind Kind, text string) Item {
	return Item{
		Kind: kind, Txn: g.GID.Txn(), Store: g.s.name, GID: g.GID, Owner: g.Owner,
		AgeMS: p.preparedFor(g.Prepared).Milliseconds(), Text: text,
	}
}

// lists reports whether the record names the branch.
func lists(rec journal.Record, gid branches.GID) bool {
	return slices.ContainsFunc(rec.Branches, func(b journal.Branch) bool { return b.GID == gid })
}

// outcomeOf is what the record says of one branch.
func outcomeOf(rec journal.Record, gid branches.GID) journal.Outcome {
	for _, b := range rec.Branches {
		if b.GID == gid {
			return b.Outcome
		}
	}
	return journal.OutcomeNormal
}

// reading is the answer to one look at a record.
type reading struct {
	rec journal.Record
	err error
}

// readAll reads records one by one, several at a time. Damaged and missing ones
// are answers; any other error ends the pass.
func (w *Worker) readAll(ctx context.Context, txns []branches.TxnID) (map[branches.TxnID]reading, error) {
	answers := make([]reading, len(txns))
	err := fan(w.cfg.Parallel, len(txns), func(i int) error {
		session, err := w.cfg.Journal.Session(ctx)
		if err != nil {
			return err
		}
		defer session.Release()
		rec, err := session.Read(ctx, txns[i])
		for j := range rec.Branches {
			rec.Branches[j].Payload = nil // read again, within the budget, by whoever needs it
		}
		answers[i] = reading{rec, err}
		var damaged *journal.Damaged
		if err != nil && !errors.Is(err, journal.ErrNotFound) && !errors.As(err, &damaged) {
			return fmt.Errorf("rhizodat: sweep: %w", err)
		}
		return nil
	})
	m := make(map[branches.TxnID]reading, len(txns))
	for i, txn := range txns {
		m[txn] = answers[i]
	}
	return m, err
}

// horizon is the newest dat_txn time that compaction has ever removed.
func (w *Worker) horizon(ctx context.Context) (time.Time, error) {
	if c, ok := w.cfg.Journal.(journal.Compactor); ok {
		return c.Horizon(ctx)
	}
	return time.Time{}, nil
}
