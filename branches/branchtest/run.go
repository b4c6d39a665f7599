package branchtest

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
)

// Run is one play of an item. Its methods end the item when something goes
// wrong, as those of testing.T do; unlike there, the failure is a value, so that
// the suite can be tested itself.
type Run struct {
	Harness
	Ctx context.Context //nolint:containedctx // the item's, as testing.T holds the test's

	missing  string
	failures []error
	cleanups []func()
}

// over ends an item.
type over struct{}

func (r *Run) play(item func(*Run)) {
	defer func() {
		for _, cleanup := range slices.Backward(r.cleanups) {
			cleanup()
		}
	}()
	defer func() {
		if caught := recover(); caught != nil {
			if _, ok := caught.(over); !ok {
				r.failures = append(r.failures, fmt.Errorf("panic: %v", caught))
			}
		}
	}()
	item(r)
}

func (r *Run) err() error { return errors.Join(r.failures...) }

// Fatalf fails the item and ends it.
func (r *Run) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(over{})
}

// Errorf fails the item.
func (r *Run) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Errorf(format, args...))
}

// Must ends the item unless err is nil.
func (r *Run) Must(doing string, err error) {
	if err != nil {
		r.Fatalf("%s: %w", doing, err)
	}
}

// Needs leaves the item out unless ok.
func (r *Run) Needs(ok bool, missing string) {
	if !ok {
		r.missing = missing
		panic(over{})
	}
}

// Store opens an instance of the store: a process of its own.
func (r *Run) Store() branches.Store {
	store, err := r.Open(r.Ctx)
	r.Must("open store", err)
	r.cleanups = append(r.cleanups, func() {
		if err := store.Close(); err != nil {
			r.Errorf("close store: %w", err)
		}
	})
	return store
}

// Session opens a session.
func (r *Run) Session(store branches.Store) branches.Session {
	session, err := store.Connect(r.Ctx)
	r.Must("connect", err)
	if session == nil {
		r.Fatalf("connect: no session and no error")
	}
	r.cleanups = append(r.cleanups, func() { _ = session.Close() }) // may be severed
	return session
}

// Unit is a branch under test.
type Unit struct {
	r       *Run
	Txn     branches.TxnID
	TxTime  hlc.Time // given at S3
	GID     branches.GID
	Key     string // the key that Wrote writes
	Session branches.Session
	branches.Branch
	staged branches.Staged
}

// storeName is the store's name in gids.
const storeName = "s"

// Begin opens a branch of a new unit.
func (r *Run) Begin(session branches.Session) *Unit {
	txn, err := branches.NewTxnID()
	r.Must("make dat_txn", err)
	return r.BeginAs(session, txn)
}

// BeginAs opens a branch of a unit whose id is given. It is staged in the
// millisecond it was born in, unless its TxTime is set to another.
func (r *Run) BeginAs(session branches.Session, txn branches.TxnID) *Unit {
	branch, err := session.Begin(r.Ctx, branches.BeginOptions{Txn: txn, Shared: true})
	r.Must("begin", err)
	if branch == nil {
		r.Fatalf("begin: no branch and no error")
	}
	return &Unit{
		r: r, Txn: txn, TxTime: hlc.FromMillis(txn.Time().UnixMilli()) + 1, GID: branches.NewGID(txn, storeName), Key: "k" + rand.Text(),
		Session: session, Branch: branch,
	}
}

// Exec runs a statement that must succeed.
func (u *Unit) Exec(text string) *Unit {
	_, err := u.Session.Exec(u.r.Ctx, text, nil)
	u.r.Must("run "+text, err)
	return u
}

// Query runs a statement that returns rows, and reads them.
func (u *Unit) Query(text string) *Unit {
	rows, err := u.Session.Query(u.r.Ctx, text, nil)
	u.r.Must("query "+text, err)
	if rows == nil {
		u.r.Fatalf("query %s: no rows and no error", text)
	}
	row := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			u.r.Fatalf("read rows of %s: %w", text, err)
		}
	}
	u.r.Must("close rows", rows.Close())
	return u
}

// Wrote writes the unit's key.
func (u *Unit) Wrote() *Unit { return u.Exec(u.r.Write(u.Key)) }

// try is Stage.
func (u *Unit) try(onePhase bool) error {
	var err error
	u.staged, err = u.Stage(u.r.Ctx, branches.Unit{Txn: u.Txn, TxTime: u.TxTime, OnePhase: onePhase, Marker: true})
	return err
}

// Staged stages, and expects the vote of a branch that wrote.
func (u *Unit) Staged() *Unit {
	u.r.Must("stage", u.try(false))
	u.voted(u.r.Vote)
	return u
}

func (u *Unit) voted(want branches.Vote) {
	if u.staged.Vote != want {
		u.r.Fatalf("voted %s, want %s", u.staged.Vote, want)
	}
}

// Committed ends the unit in one phase.
func (u *Unit) Committed() *Unit {
	u.r.Must("stage", u.try(true))
	u.r.Must("commit", u.Commit(u.r.Ctx))
	return u
}

// Prepared stages and prepares; a payload store needs no more than Stage.
func (u *Unit) Prepared() *Unit {
	u.Staged()
	if u.staged.Vote == branches.VotePrepare {
		u.r.Must("prepare", u.Prepare(u.r.Ctx, u.GID))
	}
	return u
}

// Ref is how another process knows the branch.
func (u *Unit) Ref() branches.Ref {
	return branches.Ref{
		Txn: u.Txn, Store: storeName, GID: u.GID, TwoPhase: u.staged.Vote == branches.VotePrepare,
		TxTime: u.TxTime, Payload: u.staged.Payload,
	}
}

// Rows expects n rows with the unit's key, as others see it.
func (u *Unit) Rows(n int, when string) {
	got, err := u.r.Count(u.r.Ctx, u.Key)
	u.r.Must("count rows "+when, err)
	if got != n {
		u.r.Errorf("%d rows %s, want %d", got, when, n)
	}
}

// Fate expects what the store proves about a unit.
func (r *Run) Fate(store branches.Store, txn branches.TxnID, want branches.Fate, when string) {
	got, err := store.Applied(r.Ctx, txn)
	r.Must("look up marker "+when, err)
	if got != want {
		r.Errorf("marker %s is %s, want %s", when, got, want)
	}
}

// Heuristic expects err to be one, of this kind.
func (r *Run) Heuristic(doing string, err error, committed bool) {
	h, ok := errors.AsType[*branches.Heuristic](err)
	if !ok {
		r.Errorf("%s = %v, want a Heuristic", doing, err)
		return
	}
	if h.Committed != committed {
		r.Errorf("%s: Heuristic.Committed = %t, want %t", doing, h.Committed, committed)
	}
}

// Failed expects err to be an answer: not nil, not unknown.
func (r *Run) Failed(doing string, err error) {
	if err == nil {
		r.Errorf("%s = nil, want an error", doing)
	}
	if branches.IsUnknown(err) {
		r.Errorf("%s = %w, want an error that proves that nothing happened", doing, err)
	}
}

// Both runs two calls at once and joins their errors.
func both(a, b func() error) error {
	second := make(chan error, 1)
	go func() { second <- b() }()
	return errors.Join(a(), <-second)
}

// a moment is long enough to see that something waits.
const moment = 50 * time.Millisecond

// Ability is what a store or a session may be able to do beside the contract.
func ability[T any](r *Run, of any) T {
	able, ok := of.(T)
	r.Needs(ok, fmt.Sprintf("%T lacks an optional ability", of))
	return able
}
