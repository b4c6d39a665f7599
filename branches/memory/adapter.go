// Package memory is the example of an adapter: a store in memory that takes
// part in meta-transactions. adapter.go holds all that the contract asks of a
// two-phase store, in some sixty lines; server.go is the toy server it talks to. It
// passes branches/branchtest.
//
// Read it beside the contract: what is open belongs to a session, what is
// prepared belongs to the server under its gid, and what was committed is proved
// by a marker.
package memory

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Store is one process's view of a Server.
type Store struct{ Server *Server }

// Connect opens a session.
func (s Store) Connect(context.Context) (branches.Session, error) {
	return &session{server: s.Server}, nil
}

// Finish commits a prepared branch.
func (s Store) Finish(ctx context.Context, ref branches.Ref) error { return s.end(ctx, ref, true) }

// Abort rolls a prepared branch back.
func (s Store) Abort(ctx context.Context, ref branches.Ref) error { return s.end(ctx, ref, false) }

// That a branch is not there proves nothing by itself: its marker does.
func (s Store) end(ctx context.Context, ref branches.Ref, commit bool) error {
	if err := ctx.Err(); err != nil || s.Server.End(ref.GID, commit) {
		return err
	}
	if applied := s.Server.Marker(ref.Txn) == branches.FateApplied; applied != commit {
		return &branches.Heuristic{Store: ref.Store, GID: ref.GID, Committed: applied, Evidence: "its marker"}
	}
	return nil
}

// Applied looks a unit's marker up.
func (s Store) Applied(_ context.Context, txn branches.TxnID) (branches.Fate, error) {
	return s.Server.Marker(txn), nil
}

// Settle forbids what has not happened.
func (s Store) Settle(_ context.Context, txn branches.TxnID) (branches.Fate, error) {
	return s.Server.Tombstone(txn)
}

// Close leaves prepared branches as they are.
func (s Store) Close() error { return nil }

// session is one connection; tx is the open branch's transaction.
type session struct {
	server *Server
	tx     *Tx
}

var errStatement = errors.New("memory: run statement: want put KEY in a transaction")

func (s *session) Exec(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	key, ok := strings.CutPrefix(query, "put ")
	if !ok || s.tx == nil {
		return nil, errStatement
	}
	s.tx.Put(key)
	return driver.RowsAffected(1), nil
}

func (s *session) Query(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return noRows{}, nil
}
func (s *session) Prepare(context.Context, string) (driver.Stmt, error) { return nil, errStatement }

func (s *session) Begin(_ context.Context, opts branches.BeginOptions) (branches.Branch, error) {
	s.tx = s.server.Begin(opts.Txn)
	return &branch{s, s.tx}, nil
}
func (s *session) Usable() bool { return s.tx == nil }
func (s *session) Close() error { return s.end(false) }

func (s *session) end(commit bool) error {
	s.tx.End(commit)
	s.tx = nil
	return nil
}

type branch struct {
	session *session
	tx      *Tx
}

func (b *branch) Stage(context.Context, branches.Unit) (branches.Staged, error) {
	if !b.tx.Wrote() {
		return branches.Staged{Vote: branches.VoteReadOnly}, nil
	}
	return branches.Staged{Vote: branches.VotePrepare}, b.tx.Mark()
}

func (b *branch) Prepare(_ context.Context, gid branches.GID) error {
	if b.tx.Wrote() {
		b.tx.Prepare(gid)
		b.session.tx = nil // the session is free for the next unit
	}
	return nil
}

func (b *branch) Finish(ctx context.Context, ref branches.Ref) error {
	return Store{b.session.server}.Finish(ctx, ref)
}
func (b *branch) Commit(context.Context) error   { return b.session.end(true) }
func (b *branch) Rollback(context.Context) error { return b.session.end(false) }
func (b *branch) Doomed() error                  { return nil }
