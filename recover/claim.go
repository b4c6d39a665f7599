package recovery

import (
	"context"
	"errors"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// claim writes into a decided record that this worker is rolling it forward,
// so that others spare themselves the work. It is not what makes finishing safe
// (B1). false: the record has changed since it was read.
//
// Only payloads are worth it. A claim is one forced write of the journal; two
// workers that meet at a prepared transaction cost each other one refused
// request (claiming everything more than doubled a pass over 1,000 records).
func (w *Worker) claim(ctx context.Context, rec journal.Record, now time.Time) (bool, error) {
	if !hasPayload(rec) {
		return true, nil
	}
	c := &journal.Claim{Holder: w.cfg.Holder, Fence: 1, UntilMS: now.Add(w.claimFor(rec)).UnixMilli()}
	if old := rec.Note.Claim; old != nil {
		c.Fence = old.Fence + 1
	}
	rec.Note.Claim = c
	err := w.cfg.Journal.Annotate(ctx, rec)
	if _, conflict := errors.AsType[*journal.Conflict](err); conflict {
		return false, nil
	}
	return err == nil, err
}

// claimFor is how long the work on a record may take.
func (w *Worker) claimFor(rec journal.Record) time.Duration {
	return w.cfg.StoreTimeout * time.Duration(2+len(rec.Branches))
}

// unclaim lets others go on with a record that this worker could not finish.
// The claim stays, ended: it says that the record is recovery's.
func (w *Worker) unclaim(ctx context.Context, txn branches.TxnID) error {
	return w.annotate(ctx, txn, func(rec *journal.Record) bool {
		c := rec.Note.Claim
		if c == nil || c.UntilMS == 0 || c.Holder != w.cfg.Holder {
			return false
		}
		ended := *c
		ended.UntilMS = 0
		rec.Note.Claim = &ended
		return true
	})
}
