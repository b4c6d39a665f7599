package sqljournal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/journal"
)

// session is one place of the journal, held by one commit.
type session struct {
	j        *Journal
	conn     Conn
	released bool
}

var errReleased = errors.New("the session was released")

// ready: a session that was released has no place, and must not connect again.
func (s *session) ready(ctx context.Context) (*statements, error) {
	if s.released {
		return nil, errReleased
	}
	return s.j.ready(ctx, s.conn)
}

var _ journal.Session = (*session)(nil)

// Create implements journal.Session.
func (s *session) Create(ctx context.Context, rec *journal.Record) error {
	if err := s.create(ctx, rec); err != nil {
		return journal.Wrap("write journal record", err)
	}
	return nil
}

func (s *session) create(ctx context.Context, rec *journal.Record) error {
	branchText, note, err := s.encode(rec)
	if err != nil {
		return err
	}
	q, err := s.ready(ctx)
	if err != nil {
		return err
	}
	var lease, fence any
	if rec.Lease != "" {
		lease, fence = rec.Lease, int64(rec.Fence)
	}
	id, txTime, drift := rec.Txn.String(), int64(rec.TxTime), s.j.opts.MaxDrift.Milliseconds()
	var now int64
	create := func() Stmt {
		// Read when it is sent, not before a connection had to be made or another
		// write waited for: the time that this took is no drift.
		now = s.j.nowMS()
		stmt := Ask(q.create, id, txTime, branchText, now, lease, fence, note, drift)
		stmt.Under = q.Share
		return stmt
	}
	res, err := s.j.records.run(ctx, s.conn, create)
	if err != nil {
		return err
	}
	ok, err := hit(res)
	if err != nil {
		return err
	}
	if !ok {
		return s.notCreated(ctx, q, rec.Txn, now)
	}
	row, err := oneRow(res)
	if err != nil {
		return err
	}
	if rec.TxTime, err = asTime(row[0]); err != nil {
		return err
	}
	rec.State, rec.CreatedMS, rec.UpdatedMS = journal.StateActive, now, now
	return nil
}

func (s *session) encode(rec *journal.Record) (branchText string, note any, err error) {
	var size int64
	for _, b := range rec.Branches {
		size += int64(len(b.Payload))
	}
	if size > s.j.opts.MaxPayload {
		return "", nil, fmt.Errorf("%w: payloads of %d bytes, max_payload=%d", journal.ErrFull, size, s.j.opts.MaxPayload)
	}
	list := rec.Branches
	if list == nil {
		list = []journal.Branch{}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", nil, err
	}
	note, err = encodeNote(rec.Note)
	return string(text), note, err
}

// notCreated finds out why S4 changed nothing: the id exists, or a clock is wrong.
func (s *session) notCreated(ctx context.Context, q *statements, txn branches.TxnID, sentMS int64) error {
	res, err := single(ctx, s.conn, Read, Ask(q.whyNot, txn.String()))
	if err != nil {
		return err
	}
	row, err := oneRow(res)
	if err != nil {
		return err
	}
	if found := asText(row[1]); found != "" {
		return &journal.Conflict{Txn: txn, To: journal.StateActive, Found: journal.State(found)}
	}
	theirMS, err := asInt[int64](row[0])
	if err != nil {
		return err
	}
	if apart := max(theirMS-sentMS, sentMS-theirMS); apart < s.j.opts.MaxDrift.Milliseconds()/2 {
		// Clocks agree and there is no record: it was there a moment ago.
		return errors.New("the record was neither there nor could be inserted")
	}
	return &journal.Drift{Caller: time.UnixMilli(sentMS), Journal: time.UnixMilli(theirMS), Max: s.j.opts.MaxDrift}
}

// Prepare implements journal.Session.
func (s *session) Prepare(ctx context.Context, d journal.Decision) error {
	q, err := s.ready(ctx)
	var res Result
	if err == nil {
		res, err = single(ctx, s.conn, Unforced, Do(q.prepare, d.Txn.String(), s.j.nowMS(), int64(d.TxTime)))
	}
	if err == nil {
		err = s.changed(ctx, q, d.Txn, journal.StatePrepared, res)
	}
	return journal.Wrap("prepare journal record", err)
}

// Decide implements journal.Session.
func (s *session) Decide(ctx context.Context, d journal.Decision) error {
	q, err := s.ready(ctx)
	switch {
	case err != nil:
	case d.Lease != "" || d.Step != nil:
		err = s.decideUnder(ctx, q, d)
	default:
		var res Result
		if res, err = s.j.decisions.run(ctx, s.conn, func() Stmt { return q.decided(d, s.j.nowMS()) }); err == nil {
			err = s.changed(ctx, q, d.Txn, journal.StateCommitted, res)
		}
	}
	return journal.Wrap("decide journal record", err)
}

// changed reads the answer of the compare-and-set of one record.
func (s *session) changed(ctx context.Context, q *statements, txn branches.TxnID, to journal.State, res Result) error {
	if ok, err := hit(res); ok || err != nil {
		return err
	}
	// What stands instead helps the caller; that this write lost is known
	// without it.
	found, err := stateOf(ctx, s.conn, q, txn)
	if err != nil {
		return &journal.Conflict{Txn: txn, To: to}
	}
	return &journal.Conflict{Txn: txn, To: to, Found: found}
}

// stateOf is empty where there is no record.
func stateOf(ctx context.Context, conn Conn, q *statements, txn branches.TxnID) (journal.State, error) {
	res, err := single(ctx, conn, Read, Ask(q.state, txn.String()))
	if err != nil {
		return "", err
	}
	return foundState(res)
}

func foundState(res Result) (journal.State, error) {
	if len(res.Rows) == 0 {
		return "", nil
	}
	row, err := oneRow(res)
	if err != nil {
		return "", err
	}
	return journal.ParseState(asText(row[0]))
}

// Abort implements journal.Session.
func (s *session) Abort(ctx context.Context, txn branches.TxnID, durability journal.Durability) (journal.State, error) {
	state, err := s.abort(ctx, txn, durability)
	return state, journal.Wrap("abort journal record", err)
}

// abort proves by writing. Reading ACTIVE, PREPARED or nothing would prove
// nothing: the backend of a lost request may still be committing. The UPDATE
// waits for it on the row, the INSERT on the key, and READ COMMITTED lets each
// see what it left. Where the INSERT waited for a lost S4, the record is ACTIVE
// now and was not there when the UPDATE looked: then the next round ends it.
func (s *session) abort(ctx context.Context, txn branches.TxnID, durability journal.Durability) (journal.State, error) {
	mode := Unforced
	if durability == journal.Forced && !guard.Off(guard.Forced) {
		mode = Forced
	}
	for range abortRounds {
		q, err := s.ready(ctx)
		if err != nil {
			return "", err
		}
		id, now := txn.String(), s.j.nowMS()
		results, err := s.conn.Run(ctx, mode,
			Do(q.abort, id, now),
			Do(q.forbid, id, now),
			Ask(q.state, id))
		if err != nil {
			return "", err
		}
		wrote := false
		for _, res := range results[:2] {
			ok, err := hit(res)
			if err != nil {
				return "", err
			}
			wrote = wrote || ok
		}
		state, err := foundState(results[2])
		if err != nil {
			return "", err
		}
		if state == journal.StateAborted || state.Decided() {
			if wrote || mode != Forced {
				return state, nil
			}
			still, err := s.hardened(ctx, q, id)
			if err != nil || still == state {
				return still, err
			}
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
	return "", errors.New("the record can be neither changed nor inserted: is a trigger or a policy on the table?")
}

// hardened is the state of a record after a forced write that follows it: what
// was only found may not have been forced. The state is read in the same
// transaction. In a later one a crash of the server in between would have taken
// what was found, and the forced write would vouch for nothing.
func (s *session) hardened(ctx context.Context, q *statements, id string) (journal.State, error) {
	results, err := s.conn.Run(ctx, Forced, Do(q.harden), Ask(q.state, id))
	if err != nil {
		return "", err
	}
	if ok, err := hit(results[0]); err != nil || !ok { // a transaction that wrote nothing is not flushed
		return "", errors.Join(err, branches.ErrNotInstalled)
	}
	return foundState(results[1])
}

// abortRounds: one for the record, one for a lost S4 that came in between, one
// for a record that compaction removed.
const abortRounds = 4

// Read implements journal.Session.
func (s *session) Read(ctx context.Context, txn branches.TxnID) (journal.Record, error) {
	q, err := s.ready(ctx)
	if err != nil {
		return journal.Record{}, journal.Wrap("read journal record", err)
	}
	rec, err := readOne(ctx, s.conn, q, txn)
	return rec, journal.Wrap("read journal record", err)
}

func readOne(ctx context.Context, conn Conn, q *statements, txn branches.TxnID) (journal.Record, error) {
	res, err := single(ctx, conn, Read, Ask(q.read, txn.String()))
	if err != nil {
		return journal.Record{}, err
	}
	if len(res.Rows) == 0 {
		return journal.Record{}, journal.ErrNotFound
	}
	row, err := oneRow(res)
	if err != nil {
		return journal.Record{}, err
	}
	return decode(row, true)
}

// Release implements journal.Session.
func (s *session) Release() {
	if !s.released {
		s.released = true
		s.conn.Release()
	}
}

func (j *Journal) nowMS() int64 { return j.opts.Wall.Now().UnixMilli() }
