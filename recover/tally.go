package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// tally counts what is left.
func (p *pass) tally(ctx context.Context) error {
	if err := p.w.audit(ctx); err != nil {
		return err
	}
	said := map[branches.TxnID]bool{}
	for _, i := range p.report.Items {
		said[i.Txn] = said[i.Txn] || i.Kind == KindHeuristic
	}
	for _, txn := range sortedIDs(p.w.flagged) {
		if !said[txn] {
			p.report.add(p.w.flagged[txn])
		}
	}
	p.report.Left = map[journal.State]int{}
	for _, rec := range p.live {
		p.report.Left[rec.State]++
		p.report.OldestLeftMS = max(p.report.OldestLeftMS, p.age(rec.CreatedMS).Milliseconds())
	}
	for _, name := range sortedKeys(p.stores) {
		p.report.Stores = append(p.report.Stores, p.stores[name].StoreReport)
	}
	slices.SortStableFunc(p.report.Items, func(a, b Item) int { return slices.Compare(a.Txn[:], b.Txn[:]) })
	return nil
}

// auditEvery lies between two looks through all aborted records for branches
// that took effect in spite of it. Nothing else comes back to those records.
const auditEvery = 10 * time.Minute

// audit keeps the list of aborted records that wait for a person.
func (w *Worker) audit(ctx context.Context) error {
	now := w.wall.Now()
	if w.audited.IsZero() || now.Sub(w.audited) >= auditEvery {
		found := map[branches.TxnID]Item{}
		err := w.cfg.Journal.Scan(ctx, journal.Filter{States: []journal.State{journal.StateAborted}}, func(rec journal.Record) error {
			if heuristic(rec) {
				found[rec.Txn] = flaggedItem(rec)
			}
			return nil
		})
		if _, complete := damagedIn(err); !complete {
			return err
		}
		w.flagged, w.audited = found, now
		return nil
	}
	answers, err := w.readAll(ctx, keys(w.flagged))
	if err != nil {
		return err
	}
	for txn, r := range answers {
		if errors.Is(r.err, journal.ErrNotFound) || r.err == nil && !heuristic(r.rec) {
			delete(w.flagged, txn) // a person has resolved it
		}
	}
	return nil
}

// flag is called by jobs, which run beside each other.
func (w *Worker) flag(txn branches.TxnID, i Item) {
	w.flagging.Lock()
	defer w.flagging.Unlock()
	w.flagged[txn] = i
}

func flaggedItem(rec journal.Record) Item {
	i := Item{Kind: KindHeuristic, Txn: rec.Txn, State: rec.State}
	var texts []string
	for _, b := range rec.Branches {
		if b.Outcome == journal.OutcomeHeuristic {
			i.Store, i.GID = b.Store, b.GID
			texts = append(texts, b.Store+": "+b.Reason)
		}
	}
	i.Text = strings.Join(texts, "; ")
	return i
}

// spoken bounds the lines of one kind in the log of one pass.
const spoken = 20

// say logs a pass: what was done, and again on every pass what needs a person.
func (w *Worker) say(ctx context.Context, r *Report) {
	if r.RolledBack+r.RolledForward+r.Raced > 0 {
		w.log.InfoContext(ctx, "rhizodat: recovered", "rolled_back", r.RolledBack, "rolled_forward", r.RolledForward,
			"raced", r.Raced, "pending", r.Pending, "took_ms", r.TookMS)
	}
	said := map[Kind]int{}
	for _, i := range r.Items {
		switch i.Kind {
		case KindStuck, KindHeuristic, KindUnexplained, KindRestored, KindDamaged, KindNotConfigured:
			if said[i.Kind]++; said[i.Kind] <= spoken {
				w.log.ErrorContext(ctx, "rhizodat: a person is needed", "kind", i.Kind, "dat_txn", i.Txn,
					"store", i.Store, "state", i.State, "age", time.Duration(i.AgeMS)*time.Millisecond, "text", i.Text)
			}
		case KindPending, KindFresh, KindClaimed, KindHeld, KindNoRight, KindForeign:
		}
	}
	for _, kind := range sortedKeys(asStrings(said)) {
		if n := said[Kind(kind)]; n > spoken {
			w.log.ErrorContext(ctx, "rhizodat: a person is needed", "kind", kind, "text", fmt.Sprintf("and %d more: rhizorecover list", n-spoken))
		}
	}
}

func asStrings(m map[Kind]int) map[string]int {
	out := make(map[string]int, len(m))
	for k, v := range m {
		out[string(k)] = v
	}
	return out
}

func sortedIDs[V any](m map[branches.TxnID]V) []branches.TxnID {
	ids := keys(m)
	slices.SortFunc(ids, func(a, b branches.TxnID) int { return slices.Compare(a[:], b[:]) })
	return ids
}
