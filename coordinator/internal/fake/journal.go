package fake

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/coordinator/internal/trace"
	"github.com/rhizodat/rhizodat-go/hlc"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/journal"
)

// JournalServer is a journal with real compare-and-set, and with a disk: what
// was not forced is lost in a crash.
type JournalServer struct {
	server
	Fence hlc.Time // the read fence

	records map[branches.TxnID]*journal.Record
	durable map[branches.TxnID]journal.Record
	version int64
	fences  map[string]journal.Fence
	claims  map[journal.StepKey]string // the token of each claim
	values  map[journal.StepKey][]byte
}

func newJournalServer(w *World) *JournalServer {
	return &JournalServer{
		server:  server{world: w, name: trace.Journal, rank: 20 * time.Microsecond, every: 3 * time.Millisecond, busy: map[branches.TxnID]chan struct{}{}},
		records: map[branches.TxnID]*journal.Record{},
		durable: map[branches.TxnID]journal.Record{},
		fences:  map[string]journal.Fence{},
		claims:  map[journal.StepKey]string{},
		values:  map[journal.StepKey][]byte{},
	}
}

// Grant gives a lease to somebody else, with the next fence.
func (j *JournalServer) Grant(lease string) journal.Fence {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	j.fences[lease]++
	j.world.Log.Add(trace.Event{What: trace.Granted, Lease: lease, Fence: j.fences[lease]})
	return j.fences[lease]
}

// Claim makes a step token's.
func (j *JournalServer) Claim(key journal.StepKey, token string) {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	j.claims[key] = token
}

// Value of a step; ok is false while nothing is recorded.
func (j *JournalServer) Value(key journal.StepKey) (value []byte, ok bool) {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	value, ok = j.values[key]
	return value, ok
}

// SetLatency sets the time that a request takes.
func (j *JournalServer) SetLatency(d time.Duration) { j.every = d }

// Crash loses every write since the last forced one, and every request that is
// under way.
func (j *JournalServer) Crash() {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	j.epoch++
	j.records = map[branches.TxnID]*journal.Record{}
	for txn, rec := range j.durable {
		j.records[txn] = clone(rec)
	}
	j.world.Log.Add(trace.Event{What: trace.Crashed})
}

// Record returns a record as it stands.
func (j *JournalServer) Record(txn branches.TxnID) (journal.Record, bool) {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	rec, ok := j.records[txn]
	if !ok {
		return journal.Record{}, false
	}
	return *clone(*rec), true
}

// Deliver makes an S7 of txn take effect that its sender knows nothing of: a
// request that was delivered twice.
func (j *JournalServer) Deliver(txn branches.TxnID) {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	rec := j.records[txn]
	got, err := j.decide(journal.Decision{Txn: txn, TxTime: rec.TxTime, WithPrepare: true}, false)
	j.world.Log.Add(trace.Event{What: trace.Took, Actor: j.name, Op: trace.Decide, Txn: txn, Forced: true, State: got.state, Err: err})
}

// Annotated changes a record as a person would.
func (j *JournalServer) Annotated(txn branches.TxnID, f func(*journal.Branch)) {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	for i := range j.records[txn].Branches {
		f(&j.records[txn].Branches[i])
	}
	j.touch(j.records[txn])
	j.flush()
}

func clone(rec journal.Record) *journal.Record {
	rec.Branches = slices.Clone(rec.Branches)
	return &rec
}

// flush REQUIRES the world's mutex, as what follows does.
func (j *JournalServer) flush() {
	j.durable = map[branches.TxnID]journal.Record{}
	for txn, rec := range j.records {
		j.durable[txn] = *clone(*rec)
	}
}

func (j *JournalServer) touch(rec *journal.Record) {
	j.version++
	rec.UpdatedMS = j.version
}

func (j *JournalServer) create(rec *journal.Record) (answer, error) {
	if old, ok := j.records[rec.Txn]; ok {
		return answer{}, &journal.Conflict{Txn: rec.Txn, To: journal.StateActive, Found: old.State}
	}
	stored := clone(*rec)
	stored.State = journal.StateActive
	stored.TxTime = max(stored.TxTime, j.Fence+1)
	j.touch(stored)
	j.records[rec.Txn] = stored
	return answer{state: journal.StateActive, time: stored.TxTime}, nil
}

func (j *JournalServer) change(txn branches.TxnID, to journal.State, change func(*journal.Record)) (answer, error) {
	rec := j.records[txn]
	if rec == nil {
		return answer{}, &journal.Conflict{Txn: txn, To: to}
	}
	if !rec.State.To(to) {
		return answer{}, &journal.Conflict{Txn: txn, To: to, Found: rec.State}
	}
	rec.State = to
	if change != nil {
		change(rec)
	}
	j.touch(rec)
	return answer{state: to}, nil
}

func (j *JournalServer) decide(d journal.Decision, soft bool) (answer, error) {
	if rec := j.records[d.Txn]; rec != nil && !rec.State.Final() && !rec.State.Decided() { // else the state refuses it
		if err := j.conditions(d); err != nil {
			return answer{}, err
		}
	}
	if d.WithPrepare {
		_, _ = j.change(d.Txn, journal.StatePrepared, func(rec *journal.Record) { rec.TxTime = d.TxTime }) // the next one tells
	}
	got, err := j.change(d.Txn, journal.StateCommitted, nil)
	if err == nil && d.Step != nil {
		j.values[d.Step.Key] = d.Step.Value
	}
	if err == nil && !soft {
		j.flush()
	}
	return got, err
}

// conditions of S7 beside the record's state.
func (j *JournalServer) conditions(d journal.Decision) error {
	if d.Lease != "" && j.fences[d.Lease] != d.Fence && !guard.Off(guard.Fence) {
		return &journal.Fenced{Lease: d.Lease, Fence: d.Fence, Current: j.fences[d.Lease]}
	}
	if d.Step != nil {
		if _, recorded := j.values[d.Step.Key]; recorded || j.claims[d.Step.Key] != d.Step.Token {
			return &journal.Superseded{Key: d.Step.Key}
		}
	}
	return nil
}

func (j *JournalServer) abort(txn branches.TxnID, durability journal.Durability) (answer, error) {
	rec := j.records[txn]
	if rec == nil {
		rec = &journal.Record{Txn: txn, State: journal.StateActive}
		j.records[txn] = rec
	}
	_, _ = j.change(txn, journal.StateAborted, nil) // refused where it is decided: the state tells
	if durability == journal.Forced && rec.State == journal.StateAborted {
		j.flush()
	}
	return answer{state: rec.State}, nil
}

func (j *JournalServer) annotate(rec journal.Record) (answer, error) {
	stored := j.records[rec.Txn]
	if stored == nil || stored.State != rec.State || stored.UpdatedMS != rec.UpdatedMS {
		return answer{}, &journal.Conflict{Txn: rec.Txn}
	}
	stored.Branches, stored.Note = slices.Clone(rec.Branches), rec.Note
	j.touch(stored)
	j.flush()
	return answer{state: stored.State}, nil
}

// Client is a process's pool of places in the journal.
type Client struct {
	p      *Process
	j      *JournalServer
	places chan struct{}
}

var _ journal.Journal = (*Client)(nil)

// Client opens the journal for p. One place shows that nobody waits for a
// second one while it keeps the first.
func (j *JournalServer) Client(p *Process, places int) *Client {
	return &Client{p: p, j: j, places: make(chan struct{}, places)}
}

func (c *Client) take(ctx context.Context) error {
	select {
	case c.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) with(ctx context.Context, r request) (answer, error) {
	if err := c.take(ctx); err != nil {
		return answer{}, err
	}
	defer func() { <-c.places }()
	return c.do(ctx, r)
}

// do takes the stores' mark off a lost answer: a journal's error is one unless
// it is a Conflict.
func (c *Client) do(ctx context.Context, r request) (answer, error) {
	got, err := c.p.do(ctx, &c.j.server, r)
	if branches.IsUnknown(err) {
		err = errors.Unwrap(err)
	}
	return got, err
}

// Session implements journal.Journal.
func (c *Client) Session(ctx context.Context) (journal.Session, error) {
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	return &session{c: c}, nil
}

// Finish implements journal.Journal.
func (c *Client) Finish(ctx context.Context, txns []branches.TxnID) (int, error) {
	changed := 0
	for _, txn := range txns { // one write; one request each keeps the trace plain
		if _, err := c.with(ctx, request{op: trace.Done, txn: txn, waits: true, effect: func(FaultKind) (answer, error) {
			got, _ := c.j.change(txn, journal.StateDone, nil) // refused where somebody else was first
			return got, nil
		}}); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// Scan implements journal.Journal, for States alone.
func (c *Client) Scan(ctx context.Context, filter journal.Filter, f func(journal.Record) error) error {
	got, err := c.with(ctx, request{op: trace.Scan, effect: func(FaultKind) (answer, error) {
		var list []journal.Record
		for _, txn := range slices.SortedFunc(maps.Keys(c.j.records), compareTxn) {
			rec := clone(*c.j.records[txn])
			if !slices.Contains(filter.States, rec.State) {
				continue
			}
			for i := range rec.Branches {
				rec.Branches[i].Payload = nil
			}
			list = append(list, *rec)
		}
		return answer{list: list}, nil
	}})
	if err != nil {
		return err
	}
	for _, rec := range got.list {
		if err := f(rec); err != nil {
			return err
		}
	}
	return nil
}

func compareTxn(a, b branches.TxnID) int { return slices.Compare(a[:], b[:]) }

// Annotate implements journal.Journal.
func (c *Client) Annotate(ctx context.Context, rec journal.Record) error {
	_, err := c.with(ctx, request{op: trace.Annotate, txn: rec.Txn, forced: true, waits: true, effect: func(FaultKind) (answer, error) {
		return c.j.annotate(rec)
	}})
	return err
}

// Harden implements journal.Journal.
func (c *Client) Harden(ctx context.Context) error {
	_, err := c.with(ctx, request{op: trace.Harden, forced: true, effect: func(FaultKind) (answer, error) {
		c.j.flush()
		return answer{}, nil
	}})
	return err
}

// Close implements journal.Journal.
func (c *Client) Close() error { return nil }

// session is one place.
type session struct {
	c        *Client
	released bool
}

var _ journal.Session = (*session)(nil)

func (s *session) do(ctx context.Context, r request) (answer, error) {
	if s.released {
		panic("fake: a session of the journal was used after its release")
	}
	return s.c.do(ctx, r)
}

func (s *session) Create(ctx context.Context, rec *journal.Record) error {
	sent := clone(*rec)
	got, err := s.do(ctx, request{op: trace.Create, txn: rec.Txn, waits: true, effect: func(FaultKind) (answer, error) {
		return s.c.j.create(sent)
	}})
	if err == nil {
		rec.TxTime = got.time
	}
	return err
}

func (s *session) Prepare(ctx context.Context, d journal.Decision) error {
	_, err := s.do(ctx, request{op: trace.Prepared, txn: d.Txn, waits: true, effect: func(FaultKind) (answer, error) {
		return s.c.j.change(d.Txn, journal.StatePrepared, func(rec *journal.Record) { rec.TxTime = d.TxTime })
	}})
	return err
}

func (s *session) Decide(ctx context.Context, d journal.Decision) error {
	text := ""
	if d.WithPrepare {
		text = "PREPARED + COMMITTED"
	}
	if d.Step != nil {
		text += " + STEP"
	}
	_, err := s.do(ctx, request{op: trace.Decide, text: text, txn: d.Txn, lease: d.Lease, fence: d.Fence, forced: true, waits: true, effect: func(f FaultKind) (answer, error) {
		return s.c.j.decide(d, f == Soft)
	}})
	return err
}

func (s *session) Abort(ctx context.Context, txn branches.TxnID, durability journal.Durability) (journal.State, error) {
	got, err := s.do(ctx, request{op: trace.Forbid, txn: txn, forced: durability == journal.Forced, waits: true, effect: func(FaultKind) (answer, error) {
		return s.c.j.abort(txn, durability)
	}})
	return got.state, err
}

func (s *session) Read(ctx context.Context, txn branches.TxnID) (journal.Record, error) {
	got, err := s.do(ctx, request{op: trace.Read, txn: txn, effect: func(FaultKind) (answer, error) {
		rec, ok := s.c.j.records[txn]
		if !ok {
			return answer{}, journal.ErrNotFound
		}
		return answer{state: rec.State, record: *clone(*rec)}, nil
	}})
	return got.record, err
}

func (s *session) Release() {
	if !s.released {
		s.released = true
		<-s.c.places
	}
}
