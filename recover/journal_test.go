package recovery_test

import (
	"context"
	"slices"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// tracedJournal is a real journal whose answers can be spoilt.
type tracedJournal struct {
	fullJournal
	trace  *trace
	harden error
	crash  func() // called at a Harden that succeeds: what was only visible is lost
	scan   func() // called before a scan of unfinished records
	finish error  // of every Finish
}

func (j *tracedJournal) Finish(ctx context.Context, txns []branches.TxnID) (int, error) {
	if j.finish != nil {
		return 0, j.finish
	}
	return j.fullJournal.Finish(ctx, txns)
}

func (j *tracedJournal) Scan(ctx context.Context, f journal.Filter, each func(journal.Record) error) error {
	j.trace.add("journal scan")
	if j.scan != nil && slices.Contains(f.States, journal.StateActive) {
		j.scan()
	}
	return j.fullJournal.Scan(ctx, f, each)
}

func (j *tracedJournal) Harden(ctx context.Context) error {
	j.trace.add("journal harden")
	if j.harden != nil {
		return j.harden
	}
	if j.crash != nil {
		j.crash()
	}
	return j.fullJournal.Harden(ctx)
}

func (j *tracedJournal) Session(ctx context.Context) (journal.Session, error) {
	s, err := j.fullJournal.Session(ctx)
	return &tracedSession{s, j.trace}, err
}

type tracedSession struct {
	journal.Session
	trace *trace
}

func (s *tracedSession) Read(ctx context.Context, txn branches.TxnID) (journal.Record, error) {
	s.trace.add("journal read")
	return s.Session.Read(ctx, txn)
}
