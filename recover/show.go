package recovery

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Story is everything known of one meta-transaction, in facts and in words.
type Story struct {
	Txn         branches.TxnID   `json:"dat_txn"`
	State       journal.State    `json:"state"` // empty without a record
	TxTime      string           `json:"dat_tx_time,omitempty"`
	AgeMS       int64            `json:"age_ms"`
	UnchangedMS int64            `json:"unchanged_ms"`
	Lease       string           `json:"lease,omitempty"` // that it was to commit under
	Fence       journal.Fence    `json:"fence,omitempty"`
	Branches    []BranchStory    `json:"branches"`
	Claim       *journal.Claim   `json:"claim,omitempty"`
	Remarks     []journal.Remark `json:"remarks,omitempty"`

	Happened string `json:"happened"` // what has happened
	Next     string `json:"next"`     // what will happen
	Why      string `json:"why"`      // and why
}

// BranchStory is one branch.
type BranchStory struct {
	Store    string          `json:"store"`
	GID      branches.GID    `json:"gid,omitempty"`
	TwoPhase bool            `json:"two_phase"`
	Payload  int             `json:"payload_bytes,omitempty"`
	Outcome  journal.Outcome `json:"outcome,omitempty"`
	Reason   string          `json:"reason,omitempty"`

	Prepared bool   `json:"prepared"`
	ForMS    int64  `json:"prepared_ms,omitempty"`
	Owner    string `json:"owner,omitempty"`
	Marker   string `json:"marker"`            // applied, never, absent, unknown
	Problem  string `json:"problem,omitempty"` // why the store could not be asked

	// Work is what the payload holds, in the store's words.
	Work []string `json:"work,omitempty"`

	listed    *branches.Prepared
	fate      branches.Fate
	reachable bool
}

// Show reads all that journal and stores know of txn. It changes nothing.
func (w *Worker) Show(ctx context.Context, txn branches.TxnID) (Story, error) {
	p, err := w.view(ctx)
	if err != nil {
		return Story{}, err
	}
	session, err := w.cfg.Journal.Session(ctx)
	if err != nil {
		return Story{}, err
	}
	rec, err := session.Read(ctx, txn)
	session.Release()
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return Story{}, err
	}
	missing := err != nil
	story := Story{Txn: txn, Branches: []BranchStory{}}
	if missing {
		story.Branches = p.traces(ctx, txn)
		horizon, err := w.horizon(ctx)
		if err != nil {
			return story, err
		}
		story.tellMissing(p, horizon)
		return story, nil
	}
	story.State, story.Claim, story.Remarks = rec.State, rec.Note.Claim, rec.Note.Remarks
	story.Lease, story.Fence = rec.Lease, rec.Fence
	story.AgeMS, story.UnchangedMS = p.age(rec.CreatedMS).Milliseconds(), p.age(rec.UpdatedMS).Milliseconds()
	if !rec.TxTime.IsZero() {
		story.TxTime = rec.TxTime.String()
	}
	for _, b := range rec.Branches {
		told := BranchStory{
			Store: b.Store, GID: b.GID, TwoPhase: b.TwoPhase, Payload: len(b.Payload), Outcome: b.Outcome, Reason: b.Reason,
		}
		p.ask(ctx, txn, &told)
		p.describe(ctx, rec, b, &told)
		story.Branches = append(story.Branches, told)
	}
	story.tell(p, rec)
	return story, nil
}

// traces looks for a transaction without a record in every store.
func (p *pass) traces(ctx context.Context, txn branches.TxnID) []BranchStory {
	found := []BranchStory{}
	for _, name := range sortedKeys(p.stores) {
		b := BranchStory{Store: name, GID: branches.NewGID(txn, name)}
		p.ask(ctx, txn, &b)
		if b.Prepared || b.Problem != "" || b.fate == branches.FateApplied || b.fate == branches.FateNever {
			found = append(found, b)
		}
	}
	return found
}

// ask fills in what the store knows of a branch.
func (p *pass) ask(ctx context.Context, txn branches.TxnID, b *BranchStory) {
	b.Marker = branches.FateUnknown.String()
	s := p.stores[b.Store]
	switch {
	case s == nil:
		b.Problem = "this DSN has no such store"
		return
	case !s.ok():
		b.Problem = string(s.Standing) + ": " + s.Problem
		return
	}
	limit, cancel := context.WithTimeout(ctx, p.w.cfg.StoreTimeout)
	defer cancel()
	fate, err := s.store.Applied(limit, txn)
	if err != nil {
		b.Problem = err.Error()
		return
	}
	b.reachable, b.fate, b.Marker = true, fate, fate.String()
	for i, g := range s.listed {
		if g.GID == b.GID {
			b.listed = &s.listed[i]
			b.Prepared, b.Owner, b.ForMS = true, g.Owner, p.preparedFor(g).Milliseconds()
			b.TwoPhase = true
		}
	}
}

// describe asks the store what a branch's payload holds.
func (p *pass) describe(ctx context.Context, rec journal.Record, b journal.Branch, told *BranchStory) {
	s := p.stores[b.Store]
	if len(b.Payload) == 0 || s == nil || !told.reachable {
		return
	}
	able, ok := p.w.cfg.Stores[b.Store].(branches.Describer) // s.store is a wrapper
	if !ok {
		return
	}
	limit, cancel := context.WithTimeout(ctx, p.w.cfg.StoreTimeout)
	defer cancel()
	lines, err := able.Describe(limit, branches.Ref{
		Txn: rec.Txn, Store: b.Store, GID: b.GID, TwoPhase: b.TwoPhase, TxTime: rec.TxTime, Payload: b.Payload,
	})
	if err != nil {
		lines = []string{"its payload cannot be described: " + err.Error()}
	}
	told.Work = lines
}
