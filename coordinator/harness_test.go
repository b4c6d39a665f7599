package coordinator_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/fake"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/journal"
)

var update = flag.Bool("update", false, "rewrite testdata/traces")

// TestMain plays more random histories than rapid's 100, and lets no goroutine
// outlive the tests.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", "3000"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// part is one branch of a unit.
type part struct {
	store string
	work  fake.Work
	doom  error // coordinator.Part.Doom
}

func writer(store string) part { return part{store: store} }

func certain(store string) part { return part{store: store, work: fake.Work{Certain: true}} }

func reader(store string) part {
	return part{store: store, work: fake.Work{Vote: branches.VoteReadOnly}}
}

func payload(store string) part {
	return part{store: store, work: fake.Work{Vote: branches.VoteApply}}
}

// scene is one program that commits units in a world of its own.
type scene struct {
	ctx   context.Context // the test's
	world *fake.World
	app   *fake.Process
	clock *hlc.Clock
	coord *coordinator.Coordinator
	obs   *trace.Observer

	mu      sync.Mutex
	hooks   map[string][]func(*scene)
	ended   []coordinator.OutcomeEvent
	units   []*played
	skipped []string

	patience time.Duration // of the caller; 0 is no end
	giveUp   error         // why the caller gives up, beyond the end of its context
}

// played is a unit with its parts and its outcome.
type played struct {
	unit      *coordinator.Unit
	parts     []part
	out       *coordinator.Outcome
	heuristic bool
}

// newScene REQUIRES a synctest bubble.
func newScene(ctx context.Context, stores []string, config coordinator.Config, places int) *scene {
	s := &scene{ctx: ctx, world: fake.NewWorld(), hooks: map[string][]func(*scene){}}
	for _, name := range stores {
		s.world.NewStore(name)
	}
	s.app = s.world.NewProcess("app")
	s.clock = hlc.NewClock(hlc.System, time.Minute)
	s.obs = &trace.Observer{Log: s.world.Log, Proc: "app", Stores: stores, At: s.at, Outcomes: s.outcome}
	if config.Journal == nil {
		config.Journal = s.world.Journal.Client(s.app, places)
	} else if _, none := config.Journal.(noJournal); none {
		config.Journal = nil
	}
	config.Clock, config.Observer = s.clock, s.obs
	s.coord = coordinator.New(config)
	return s
}

// noJournal in a Config asks for none.
type noJournal struct{ journal.Journal }

// on runs f at the first pass of a point, on the commit's own goroutine.
func (s *scene) on(point string, f func(*scene)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[point] = append(s.hooks[point], f)
}

func (s *scene) at(e coordinator.StepEvent) {
	s.mu.Lock()
	var f func(*scene)
	if waiting := s.hooks[e.Point()]; len(waiting) > 0 {
		f, s.hooks[e.Point()] = waiting[0], waiting[1:]
	}
	s.mu.Unlock()
	if f != nil {
		f(s)
	}
}

func (s *scene) outcome(e coordinator.OutcomeEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, e)
}

// txnOf makes the nth unit's id: the same in every run.
func txnOf(n int) branches.TxnID {
	id, err := branches.ParseTxnID(fmt.Sprintf("00000000-0000-7000-8000-%012d", n))
	if err != nil {
		panic(err)
	}
	return id
}

// begin opens a unit's branches: S1 and S2.
func (s *scene) begin(n int, parts []part) *played {
	p := &played{unit: &coordinator.Unit{Txn: txnOf(n)}, parts: parts}
	for _, part := range parts {
		store := s.world.Store(part.store).Client(s.app)
		p.unit.Parts = append(p.unit.Parts, &coordinator.Part{
			Name: part.store, Store: store, Branch: store.Begin(p.unit.Txn, part.work), Doom: part.doom,
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units = append(s.units, p)
	return p
}

// commit commits p, and notes what it was told unless it is dead by then.
func (s *scene) commit(ctx context.Context, p *played) {
	out := s.coord.Commit(ctx, p.unit)
	if s.app.Dead() {
		return
	}
	s.mu.Lock()
	p.out = &out
	s.mu.Unlock()
	s.world.Log.Add(trace.Event{What: trace.Ended, Proc: "app", Txn: p.unit.Txn, End: out})
}

func (s *scene) tell(format string, args ...any) {
	s.world.Log.Add(trace.Event{What: trace.Told, Text: fmt.Sprintf(format, args...)})
}

// recovery is one pass of a worker that finds every record stale.
func (s *scene) recovery(name string) error {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	proc := s.world.NewProcess(name)
	log := &trace.Observer{Log: s.world.Log, Proc: name, Stores: s.obs.Stores}
	j := s.world.Journal.Client(proc, 1)
	worker := coordinator.New(coordinator.Config{Journal: j, Clock: s.clock, Observer: log})
	stores := func(name string) branches.Store { return s.world.Store(name).Client(proc) }
	return errors.Join(
		sweep(ctx, worker, j, s.world.Stores, proc, stores),
		finishStale(ctx, worker, j, stores),
		worker.Close())
}

func sweep(ctx context.Context, worker *coordinator.Coordinator, j journal.Journal, servers []*fake.StoreServer, proc *fake.Process, stores coordinator.Stores) error {
	for _, server := range servers {
		list, err := server.Client(proc).Prepared(ctx) // gids first, the journal afterwards
		if err != nil {
			return err
		}
		for _, prepared := range list {
			rec, err := readRecord(ctx, j, prepared.GID.Txn())
			if err == nil && rec.State != journal.StateAborted {
				continue
			}
			if err != nil && !errors.Is(err, journal.ErrNotFound) {
				return err
			}
			// An ABORTED that was inserted for want of a record names no branch.
			rec = journal.Record{Txn: prepared.GID.Txn(), Branches: []journal.Branch{
				{Store: prepared.GID.Store(), GID: prepared.GID, TwoPhase: true},
			}}
			if _, err := worker.RollBack(ctx, rec, stores); err != nil {
				return err
			}
		}
	}
	return nil
}

func finishStale(ctx context.Context, worker *coordinator.Coordinator, j journal.Journal, stores coordinator.Stores) error {
	var stale, decided []branches.TxnID
	open := journal.Filter{States: []journal.State{journal.StateActive, journal.StatePrepared, journal.StateCommitted}}
	if err := j.Scan(ctx, open, func(rec journal.Record) error {
		stale = append(stale, rec.Txn)
		if rec.State.Decided() {
			decided = append(decided, rec.Txn)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := j.Harden(ctx); err != nil { // what was seen is durable, if it is still there to be read
		return err
	}
	for _, txn := range stale {
		rec, err := readRecord(ctx, j, txn)
		switch {
		case errors.Is(err, journal.ErrNotFound): // lost in a crash meanwhile
			continue
		case err == nil && rec.State.Decided():
			if slices.Contains(decided, txn) { // else it was decided since: the next pass's
				_, err = worker.RollForward(ctx, rec, stores)
			}
		case err == nil:
			_, err = worker.RollBack(ctx, rec, stores)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readRecord(ctx context.Context, j journal.Journal, txn branches.TxnID) (journal.Record, error) {
	session, err := j.Session(ctx)
	if err != nil {
		return journal.Record{}, err
	}
	defer session.Release()
	return session.Read(ctx, txn)
}

// settle ends the scene: the faults are over, what was late lands, the program
// ends, and recovery does its work.
func (s *scene) settle() error {
	s.world.Play(nil)
	s.tell("the faults are over")
	if err := hlc.System.Sleep(s.ctx, 2*time.Minute); err != nil {
		return err
	}
	err := s.coord.Close()
	for range 2 { // the second pass shows that the first one left nothing
		err = errors.Join(err, s.recovery("recovery"))
	}
	return err
}

// violations judges the whole trace and what is left.
func (s *scene) violations() []trace.Violation {
	found := trace.Check(s.world.Log.Events(), s.skipped...)
	for _, p := range s.units {
		found = append(found, s.fate(p).Violations()...)
	}
	return found
}

func (s *scene) fate(p *played) trace.Fate {
	f := trace.Fate{Txn: p.unit.Txn, Writers: map[string]bool{}, Reported: p.out, Heuristic: p.heuristic}
	times := map[hlc.Time]bool{}
	for _, part := range p.parts {
		store := s.world.Store(part.store)
		state := store.State(p.unit.Txn)
		if state == fake.InPrepare {
			f.Prepared = append(f.Prepared, part.store)
		}
		if part.work.Vote != branches.VoteReadOnly && !slices.Contains(s.skipped, part.store) {
			f.Writers[part.store] = state == fake.Committed
		}
		if at := store.TxTime(p.unit.Txn); at != 0 && part.work.Vote != branches.VoteReadOnly {
			times[at] = true
		}
	}
	f.Times = len(times)
	if rec, ok := s.world.Journal.Record(p.unit.Txn); ok {
		f.Record = rec.State
	}
	return f
}

// inBubble runs f where time is free.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
