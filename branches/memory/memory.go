// Package memory is a store that fits on one page: the example of an adapter.
// It keeps a set of keys in memory, takes part in two-phase commit, and passes
// branches/branchtest. It also serves tests that want a store to play with.
//
// Read it as the answer to "what does the least adapter hold?": what is open
// (a branch's keys), what is prepared (by gid), what was decided (a marker per
// unit, FateNever being a tombstone). A real store keeps the last two on disk.
package memory

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"

	"github.com/rhizodat/rhizodat-go/branches"
)

// DB is the place: what a server would hold. Make it with New.
type DB struct {
	mu       sync.Mutex
	keys     map[string]bool
	prepared map[branches.GID][]string
	markers  map[branches.TxnID]branches.Fate // FateUnknown: staged, not yet ended
}

// New makes an empty place.
func New() *DB {
	return &DB{
		keys: map[string]bool{}, prepared: map[branches.GID][]string{},
		markers: map[branches.TxnID]branches.Fate{},
	}
}

// Has reports whether a key is committed.
func (db *DB) Has(key string) bool { db.mu.Lock(); defer db.mu.Unlock(); return db.keys[key] }

// end takes a unit's keys and marker in, or its staged marker out.
func (db *DB) end(txn branches.TxnID, keys []string, commit bool) {
	for _, key := range keys {
		db.keys[key] = db.keys[key] || commit
	}
	if commit {
		db.markers[txn] = branches.FateApplied
	} else if db.markers[txn] == branches.FateUnknown {
		delete(db.markers, txn)
	}
}

// Store is an instance over a DB, as one process has it.
type Store struct{ *DB }

// Open makes an instance.
func (db *DB) Open() branches.Store { return Store{db} }

// Connect opens a session.
func (s Store) Connect(context.Context) (branches.Session, error) { return &session{db: s.DB}, nil }

// Close does nothing: prepared branches stay.
func (s Store) Close() error { return nil }

// Applied reads the marker.
func (s Store) Applied(_ context.Context, txn branches.TxnID) (branches.Fate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fate := s.markers[txn]; fate != branches.FateUnknown {
		return fate, nil
	}
	return branches.FateAbsent, nil
}

var errBusy = errors.New("memory: settle: the unit is still committing")

// Settle sets a tombstone where there is no marker.
func (s Store) Settle(_ context.Context, txn branches.TxnID) (branches.Fate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fate, staged := s.markers[txn]
	switch {
	case fate != branches.FateUnknown:
		return fate, nil
	case staged:
		return branches.FateUnknown, errBusy
	}
	s.markers[txn] = branches.FateNever
	return branches.FateNever, nil
}

// Finish commits a prepared branch.
func (s Store) Finish(ctx context.Context, ref branches.Ref) error { return s.resolve(ctx, ref, true) }

// Abort rolls a prepared branch back.
func (s Store) Abort(ctx context.Context, ref branches.Ref) error { return s.resolve(ctx, ref, false) }

func (s Store) resolve(ctx context.Context, ref branches.Ref, commit bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if keys, ok := s.prepared[ref.GID]; ok {
		delete(s.prepared, ref.GID)
		s.end(ref.Txn, keys, commit)
		return nil
	}
	if applied := s.markers[ref.Txn] == branches.FateApplied; applied != commit {
		return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Committed: applied, Evidence: "marker"}
	}
	return nil
}

type session struct {
	db     *DB
	branch *branch
}

// Exec knows one statement: put KEY.
func (s *session) Exec(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	key, ok := strings.CutPrefix(query, "put ")
	if !ok || s.branch == nil {
		return nil, errors.New("memory: run statement: want put KEY in a branch")
	}
	s.branch.keys = append(s.branch.keys, key)
	return driver.RowsAffected(1), nil
}

// Query answers every question with no rows.
func (s *session) Query(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return noRows{}, nil
}

func (s *session) Prepare(context.Context, string) (driver.Stmt, error) {
	return nil, errors.New("memory: prepare statement: not supported")
}

func (s *session) Begin(_ context.Context, opts branches.BeginOptions) (branches.Branch, error) {
	s.branch = &branch{session: s, txn: opts.Txn}
	return s.branch, nil
}

func (s *session) Usable() bool { return s.branch == nil }

func (s *session) Close() error {
	if s.branch == nil {
		return nil
	}
	return s.branch.end(false)
}

type branch struct {
	session *session
	txn     branches.TxnID
	keys    []string
	staged  bool
}

var errMarker = errors.New("memory: stage branch: a marker of this unit stands")

func (b *branch) Stage(context.Context, branches.Unit) (branches.Staged, error) {
	if len(b.keys) == 0 {
		return branches.Staged{Vote: branches.VoteReadOnly}, nil
	}
	db := b.session.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, stands := db.markers[b.txn]; stands {
		return branches.Staged{}, errMarker
	}
	db.markers[b.txn], b.staged = branches.FateUnknown, true
	return branches.Staged{Vote: branches.VotePrepare}, nil
}

func (b *branch) Prepare(_ context.Context, gid branches.GID) error {
	if !b.staged {
		return nil // it wrote nothing, and its session lives as long as it does
	}
	b.session.db.mu.Lock()
	defer b.session.db.mu.Unlock()
	b.session.db.prepared[gid] = b.keys
	b.session.branch = nil
	return nil
}

func (b *branch) Finish(ctx context.Context, ref branches.Ref) error {
	return Store{b.session.db}.Finish(ctx, ref)
}

func (b *branch) Commit(context.Context) error   { return b.end(b.staged) }
func (b *branch) Rollback(context.Context) error { return b.end(false) }
func (b *branch) Doomed() error                  { return nil }

// end ends a branch that is not prepared.
func (b *branch) end(commit bool) error {
	b.session.db.mu.Lock()
	defer b.session.db.mu.Unlock()
	if commit || b.staged {
		b.session.db.end(b.txn, b.keys, commit)
	}
	b.session.branch = nil
	return nil
}
