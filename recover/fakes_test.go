package recovery_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
	"github.com/rhizodat/rhizodat-go/journal/sqlite"
	recovery "github.com/rhizodat/rhizodat-go/recover"
)

// trace is what the stores and the journal were asked, in order.
type trace struct {
	mu     sync.Mutex
	events []string
}

func (t *trace) add(event string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event)
}

// index finds the first event with that text; -1 for none.
func (t *trace) index(event string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Index(t.events, event)
}

func (t *trace) count(event string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, e := range t.events {
		if e == event {
			n++
		}
	}
	return n
}

// fullJournal is everything that recovery can use of a journal.
type fullJournal interface {
	journal.Journal
	journal.Registry
	journal.Compactor
	journal.Timekeeper
	branches.Installer
}

func (s *tracedSession) Abort(ctx context.Context, txn branches.TxnID, d journal.Durability) (journal.State, error) {
	state, err := s.Session.Abort(ctx, txn, d)
	if d == journal.Forced {
		s.trace.add("journal forced " + state.String())
	}
	return state, err
}

// fakeStore is a store in memory that can be told what to answer.
type fakeStore struct {
	name  string
	trace *trace

	mu       sync.Mutex
	meta     branches.Meta
	prepared map[branches.GID]branches.Prepared
	applied  map[branches.TxnID]bool
	payloads map[branches.TxnID]string // of Finish
	lists    int
	listErr  error
	endErr   error
	onList   func(n int)
	onFinish func(branches.Ref)
}

var (
	_ branches.Store  = (*fakeStore)(nil)
	_ branches.Lister = (*fakeStore)(nil)
	_ branches.Keeper = (*fakeStore)(nil)
	_ branches.Placer = (*fakeStore)(nil)
)

var errFake = errors.New("the store fails as it was told")

func (s *fakeStore) Connect(context.Context) (branches.Session, error) { return nil, errFake }
func (s *fakeStore) Close() error                                      { return nil }
func (s *fakeStore) IsRetryable(error) bool                            { return true }

func (s *fakeStore) Prepared(context.Context) ([]branches.Prepared, error) {
	s.trace.add("list " + s.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.onList != nil {
		s.onList(s.lists)
	}
	var list []branches.Prepared
	for _, p := range s.prepared {
		list = append(list, p)
	}
	return list, s.listErr
}

func (s *fakeStore) Finish(_ context.Context, ref branches.Ref) error {
	s.trace.add("finish " + s.name)
	s.mu.Lock()
	hook := s.onFinish
	s.mu.Unlock()
	if hook != nil {
		hook(ref)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endErr != nil {
		return s.endErr
	}
	delete(s.prepared, ref.GID)
	s.applied[ref.Txn] = true
	s.payloads[ref.Txn] = string(ref.Payload)
	return nil
}

func (s *fakeStore) Abort(_ context.Context, ref branches.Ref) error {
	s.trace.add("abort " + s.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endErr != nil {
		return s.endErr
	}
	delete(s.prepared, ref.GID)
	return nil
}

func (s *fakeStore) Applied(_ context.Context, txn branches.TxnID) (branches.Fate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.applied[txn] {
		return branches.FateApplied, nil
	}
	return branches.FateAbsent, nil
}

func (s *fakeStore) Settle(ctx context.Context, txn branches.TxnID) (branches.Fate, error) {
	return s.Applied(ctx, txn)
}

func (s *fakeStore) Place(context.Context) (branches.Place, error) {
	return branches.Place("fake:" + s.name), nil
}

func (s *fakeStore) Meta(context.Context) (branches.Meta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta, nil
}

func (s *fakeStore) Bind(_ context.Context, old, bound branches.Meta) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta != old {
		return false, nil
	}
	s.meta = bound
	return true, nil
}

func (s *fakeStore) RaiseSweeps(_ context.Context, to int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta.Sweeps = max(s.meta.Sweeps, to)
	return nil
}

// set changes the store under its lock.
func (s *fakeStore) set(f func(*fakeStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *fakeStore) holds(txn branches.TxnID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.prepared[branches.NewGID(txn, s.name)]
	return there
}

// world is a deployment of fake stores a and b over a journal in a file.
type world struct {
	trace   *trace
	journal *tracedJournal
	a, b    *fakeStore
	wall    *hlc.Manual
	config  recovery.Config
	file    string // of the journal
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{trace: &trace{}, wall: hlc.NewManual(time.Now()), file: filepath.Join(t.TempDir(), "journal.db")}
	opened, err := sqlite.Open("file://"+w.file, journal.Options{
		Wall: w.wall, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	w.journal = &tracedJournal{fullJournal: opened.(fullJournal), trace: w.trace}
	if err := w.journal.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.a, w.b = w.store("a"), w.store("b")
	w.config = recovery.Config{
		Journal: w.journal, Stores: map[string]branches.Store{"a": w.a, "b": w.b},
		Clock: hlc.NewClock(w.wall, time.Minute), StaleAfter: -1, Interval: 10 * time.Second,
	}
	return w
}

func (w *world) store(name string) *fakeStore {
	return &fakeStore{
		name: name, trace: w.trace, meta: branches.Meta{StoreID: "id of " + name},
		prepared: map[branches.GID]branches.Prepared{}, applied: map[branches.TxnID]bool{}, payloads: map[branches.TxnID]string{},
	}
}

func (w *world) worker(t *testing.T, change func(*recovery.Config)) *recovery.Worker {
	t.Helper()
	cfg := w.config
	if change != nil {
		change(&cfg)
	}
	worker, err := recovery.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return worker
}

func (w *world) pass(t *testing.T, worker *recovery.Worker) recovery.Report {
	t.Helper()
	r, err := worker.Once(t.Context())
	if err != nil {
		t.Fatalf("pass: %v", err)
	}
	return r
}

// leave leaves a unit in a state, with a and b prepared, and with a payload for
// b instead where one is given.
func (w *world) leave(t *testing.T, state journal.State, payload string) branches.TxnID {
	t.Helper()
	txn, err := branches.NewTxnID()
	if err != nil {
		t.Fatal(err)
	}
	rec := journal.Record{Txn: txn, TxTime: w.config.Clock.Now(), Branches: []journal.Branch{
		{Store: "a", GID: branches.NewGID(txn, "a"), TwoPhase: true},
		{Store: "b", GID: branches.NewGID(txn, "b"), TwoPhase: payload == ""},
	}}
	if payload != "" {
		rec.Branches[1].Payload = []byte(payload)
	}
	session, err := w.journal.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Release()
	decision := journal.Decision{Txn: txn, TxTime: rec.TxTime, WithPrepare: true}
	if err := session.Create(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	switch state {
	case journal.StateActive:
	case journal.StatePrepared:
		err = session.Prepare(t.Context(), decision)
	case journal.StateAborted:
		_, err = session.Abort(t.Context(), txn, journal.Unforced)
	case journal.StateCommitted, journal.StateDone:
		if err = session.Decide(t.Context(), decision); err == nil && state == journal.StateDone {
			_, err = w.journal.Finish(t.Context(), []branches.TxnID{txn})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	w.a.hold(txn)
	if payload == "" {
		w.b.hold(txn)
	}
	return txn
}

// hold makes a store hold a branch prepared.
func (s *fakeStore) hold(txn branches.TxnID) {
	s.set(func(s *fakeStore) {
		gid := branches.NewGID(txn, s.name)
		s.prepared[gid] = branches.Prepared{GID: gid, Owner: "app", Ours: true, MayFinish: true}
	})
}

// damage makes a record unreadable.
func (w *world) damage(t *testing.T, txn branches.TxnID) {
	t.Helper()
	w.tamper(t, "UPDATE dat_journal SET branches = 'torn' WHERE dat_txn = ?", txn.String())
}

// older makes the records look older; the file's clock is the machine's.
func (w *world) older(t *testing.T, by time.Duration) {
	t.Helper()
	w.tamper(t, "UPDATE dat_journal SET created_ms = created_ms - ?1, updated_ms = updated_ms - ?1", by.Milliseconds())
}

func (w *world) tamper(t *testing.T, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func (w *world) state(t *testing.T, txn branches.TxnID) journal.State {
	t.Helper()
	return w.record(t, txn).State
}

// record is what the journal holds; the zero Record without one.
func (w *world) record(t *testing.T, txn branches.TxnID) journal.Record {
	t.Helper()
	session, err := w.journal.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Release()
	rec, err := session.Read(t.Context(), txn)
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		t.Fatal(err)
	}
	return rec
}
