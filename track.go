package rhizodat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Handle tells how the unit that was begun with its context ended, whatever
// database/sql made of it: after the context's end, Commit answers
// sql.ErrTxDone or the context's error, and only the handle knows that our
// Rollback ran. It is safe for concurrent use.
type Handle struct {
	mu        sync.Mutex
	connector *Connector
	outcome   Outcome
}

type handleKey struct{}

// Track returns a context and the handle of the units begun with it; the
// newest, when there are several.
func Track(ctx context.Context) (context.Context, *Handle) {
	h := &Handle{}
	return context.WithValue(ctx, handleKey{}, h), h
}

// Tracked returns the handle that ctx carries, nil for none. Run and Retry give
// every attempt one of its own: inside their functions it tells the dat_txn,
// for rows that keep it.
func Tracked(ctx context.Context) *Handle {
	h, _ := ctx.Value(handleKey{}).(*Handle)
	return h
}

// Outcome returns what is known so far: the unit's DatTxn once it has begun,
// and its Verdict once it has ended. Nothing is known to a nil Handle.
func (h *Handle) Outcome() Outcome {
	if h == nil {
		return Outcome{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.outcome
}

func (h *Handle) begin(c *Connector, txn branches.TxnID) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.connector, h.outcome = c, Outcome{DatTxn: txn}
}

func (h *Handle) end(out Outcome) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outcome = out
}

// kindOf classifies an error of the unit's work.
func (h *Handle) kindOf(err error) branches.Kind {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connector == nil {
		return branches.Permanent
	}
	return h.connector.kindOf(err)
}

// Lookup tells the fate of a meta-transaction, in any process and at any time
// until compaction: from the journal, else from the markers. VerdictNone means
// that it is not decided yet, or never came as far as the journal.
func Lookup(ctx context.Context, db *sql.DB, txn TxnID) (Outcome, error) {
	connector, err := connectorOf(ctx, db)
	if err != nil {
		return Outcome{}, err
	}
	return connector.lookup(ctx, txn)
}

// Wait calls Lookup until the fate is final or ctx ends.
func Wait(ctx context.Context, db *sql.DB, txn TxnID) (Outcome, error) {
	connector, err := connectorOf(ctx, db)
	if err != nil {
		return Outcome{}, err
	}
	for delay := 10 * time.Millisecond; ; delay = min(2*delay, time.Second) {
		out, err := connector.lookup(ctx, txn)
		if err == nil && out.Verdict != VerdictNone && out.Verdict != VerdictPending {
			return out, nil
		}
		if sleep := connector.clock.Wall().Sleep(ctx, delay); sleep != nil {
			return out, errors.Join(err, sleep)
		}
	}
}

func (c *Connector) lookup(ctx context.Context, txn TxnID) (Outcome, error) {
	out := Outcome{DatTxn: txn}
	if c.journal != nil {
		rec, err := c.readRecord(ctx, txn)
		if err == nil {
			return outcomeOf(rec), nil
		}
		if !errors.Is(err, journal.ErrNotFound) {
			return out, fmt.Errorf("rhizodat: look up %s: %w", txn, err)
		}
	}
	if !c.markers() {
		return out, errors.New("rhizodat: look up: one store and no journal leave no marker: add markers=on to the DSN")
	}
	for _, name := range c.cfg.StoreNames() {
		fate, err := c.stores[name].Applied(ctx, txn)
		if err != nil {
			return out, fmt.Errorf("rhizodat: look up %s in store %s: %w", txn, name, err)
		}
		switch fate {
		case branches.FateApplied:
			out.Verdict = VerdictCommitted
			return out, nil
		case branches.FateNever:
			out.Verdict = VerdictAborted
			return out, nil
		case branches.FateUnknown, branches.FateAbsent:
		}
	}
	return out, nil
}

func (c *Connector) readRecord(ctx context.Context, txn TxnID) (journal.Record, error) {
	session, err := c.journal.Session(ctx)
	if err != nil {
		return journal.Record{}, err
	}
	defer session.Release()
	return session.Read(ctx, txn)
}

// outcomeOf says what a record means to the application.
func outcomeOf(rec journal.Record) Outcome {
	out := Outcome{DatTxn: rec.Txn, DatTxTime: rec.TxTime, Journaled: true}
	switch rec.State {
	case journal.StateActive, journal.StatePrepared:
	case journal.StateAborted:
		out.Verdict = VerdictAborted
		if heuristic(rec) { // a store had committed its branch all the same
			out.Verdict = VerdictHeuristic
		}
	case journal.StateDone:
		out.Verdict = VerdictCommitted
	case journal.StateCommitted:
		out.Verdict = VerdictPending
		if heuristic(rec) {
			out.Verdict = VerdictHeuristic
		}
		for _, b := range rec.Branches {
			if !b.Outcome.Settled() && b.Outcome != journal.OutcomeHeuristic {
				out.Pending = append(out.Pending, b.Store)
			}
		}
	}
	return out
}

// heuristic reports whether a store resolved a branch of the record by itself.
func heuristic(rec journal.Record) bool {
	return slices.ContainsFunc(rec.Branches, func(b journal.Branch) bool { return b.Outcome == journal.OutcomeHeuristic })
}

// connectorOf finds the connector behind a pool, also under wrappers that give
// access to the connection they wrap. It holds a connection only for that.
func connectorOf(ctx context.Context, db *sql.DB) (*Connector, error) {
	pooled, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = pooled.Close() }() // back to the pool
	var found *Connector
	err = pooled.Raw(func(driverConn any) error {
		c, ok := innermost(driverConn).(*conn)
		if !ok {
			return errors.New("rhizodat: find connector: not a rhizodat pool, or a wrapper that hides its connection")
		}
		found = c.connector
		return nil
	})
	return found, err
}
