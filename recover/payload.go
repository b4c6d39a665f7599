package recovery

import (
	"context"
	"slices"
	"sync"

	"github.com/rhizodat/rhizodat-go/journal"
)

// budget bounds the bytes of payloads that a worker holds at a time. A record
// larger than the whole budget is taken when nothing else is held.
type budget struct {
	limit int64
	turn  chan struct{} // held while one payload is awaited and read

	mu    sync.Mutex
	used  int64
	freed chan struct{} // closed and replaced when bytes come back
}

func newBudget(limit int64) *budget {
	return &budget{limit: limit, turn: make(chan struct{}, 1), freed: make(chan struct{})}
}

// read calls get when there is room, and holds what it returned until free.
func (b *budget) read(ctx context.Context, get func() (journal.Record, error)) (rec journal.Record, free func(), err error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return rec, nil, ctx.Err()
	}
	defer func() { <-b.turn }()
	for {
		b.mu.Lock()
		full, freed := b.used >= b.limit, b.freed
		b.mu.Unlock()
		if !full {
			break
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return rec, nil, ctx.Err()
		}
	}
	if rec, err = get(); err != nil {
		return rec, nil, err
	}
	var size int64
	for _, branch := range rec.Branches {
		size += int64(len(branch.Payload))
	}
	b.give(size)
	return rec, func() { b.give(-size) }, nil
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
	if n < 0 {
		close(b.freed)
		b.freed = make(chan struct{})
	}
}

// hasPayload reports whether a branch is still to be ended by its payload.
func hasPayload(rec journal.Record) bool {
	return slices.ContainsFunc(rec.Branches, func(b journal.Branch) bool { return !b.TwoPhase && !b.Outcome.Settled() })
}

// load reads a record's payloads where it has any. What the listing saw of its
// state and version stays.
func (w *Worker) load(ctx context.Context, rec journal.Record) (journal.Record, func(), error) {
	if !hasPayload(rec) {
		return rec, func() {}, nil
	}
	whole, free, err := w.payloads.read(ctx, func() (journal.Record, error) {
		session, err := w.cfg.Journal.Session(ctx)
		if err != nil {
			return journal.Record{}, err
		}
		defer session.Release()
		return session.Read(ctx, rec.Txn)
	})
	if err != nil {
		return rec, nil, err
	}
	rec.Branches = whole.Branches
	return rec, free, nil
}
