package drevo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

// session is one place of the journal, held by one commit. Connections are the
// pool's, which has one for every place.
type session struct {
	j        *Journal
	release  func()
	released bool
}

var errReleased = errors.New("the session was released")

var _ journal.Session = (*session)(nil)

func (s *session) ready(ctx context.Context) error {
	if s.released {
		return errReleased
	}
	return s.j.ready(ctx)
}

// Create implements journal.Session.
func (s *session) Create(ctx context.Context, rec *journal.Record) error {
	return journal.Wrap("write journal record", s.create(ctx, rec))
}

func (s *session) create(ctx context.Context, rec *journal.Record) error {
	born, payloads, err := s.encode(rec)
	if err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	j := s.j
	txTime, now := rec.TxTime, int64(0)
	err = j.write(ctx, func(tx *bolt.Tx) error {
		// Read when it is sent: the time that a refused try took is no drift.
		now = j.nowMS()
		meta, err := j.metaIn(ctx, tx)
		if err != nil {
			return err
		}
		if max(meta.nowMS-now, now-meta.nowMS) > j.opts.MaxDrift.Milliseconds() {
			return &journal.Drift{Caller: time.UnixMilli(now), Journal: time.UnixMilli(meta.nowMS), Max: j.opts.MaxDrift}
		}
		// A reader who raises the fence after this makes our COMMIT fail.
		txTime = max(rec.TxTime, meta.fence+1)
		born["dat_tx_time"], born["created_ms"], born["updated_ms"] = int64(txTime), now, now
		if payloads != "" {
			if _, err := tx.Run(ctx, j.words.createPayload, map[string]any{"payload": j.words.payloadTitle(rec.Txn), "payloads": payloads}); err != nil {
				return err
			}
		}
		_, err = tx.Run(ctx, j.words.create, map[string]any{"props": born})
		return err
	})
	if bolt.IsDuplicateTitle(err) {
		return s.notCreated(ctx, rec.Txn, err)
	}
	if err != nil {
		return err
	}
	rec.TxTime, rec.State, rec.CreatedMS, rec.UpdatedMS = txTime, journal.StateActive, now, now
	return nil
}

// notCreated finds out what has the title. The engine keeps titles unique, and has
// an index of them that a look-up inside a transaction has not.
func (s *session) notCreated(ctx context.Context, txn branches.TxnID, cause error) error {
	stands, err := s.j.read(ctx, txn)
	switch {
	case err == nil:
		return &journal.Conflict{Txn: txn, To: journal.StateActive, Found: stands.State}
	case errors.Is(err, journal.ErrNotFound):
		return cause // a node of somebody else's has the title
	}
	return &journal.Conflict{Txn: txn, To: journal.StateActive}
}

// encode makes the properties of a record that is to be born, and its payloads.
func (s *session) encode(rec *journal.Record) (born map[string]any, payloads string, err error) {
	var size int64
	for _, b := range rec.Branches {
		size += int64(len(b.Payload))
	}
	if size > s.j.opts.MaxPayload {
		return nil, "", fmt.Errorf("%w: payloads of %d bytes, max_payload=%d", journal.ErrFull, size, s.j.opts.MaxPayload)
	}
	list, err := encodeBranches(rec.Branches)
	if err != nil {
		return nil, "", err
	}
	note, err := encodeNote(rec.Note)
	if err != nil {
		return nil, "", err
	}
	if payloads, err = payloadsOf(rec.Branches); err != nil {
		return nil, "", err
	}
	born = s.j.born(rec.Txn, journal.StateActive, list)
	born["note"], born["payloads"] = note, payloads != ""
	if rec.Lease != "" {
		born["lease"], born["fence"] = rec.Lease, int64(rec.Fence)
	}
	return born, payloads, nil
}

// born are the properties that every record has.
func (j *Journal) born(txn branches.TxnID, state journal.State, list string) map[string]any {
	return map[string]any{
		"title": j.words.title(txn), "dat_txn": txn.String(), "state": string(state), "branches": list,
		"dat_tx_time": int64(0), "payloads": false,
	}
}

// Prepare implements journal.Session.
func (s *session) Prepare(ctx context.Context, d journal.Decision) error {
	return journal.Wrap("prepare journal record", s.change(ctx, d, journal.StatePrepared, journal.Sources(journal.StatePrepared)))
}

// Decide implements journal.Session. With d.WithPrepare both transitions are one
// write, and nobody can see the record in between (docs/adr/0002).
func (s *session) Decide(ctx context.Context, d journal.Decision) error {
	from := journal.Sources(journal.StateCommitted)
	if d.WithPrepare {
		from = append(from, journal.Sources(journal.StatePrepared)...)
	}
	return journal.Wrap("decide journal record", s.change(ctx, d, journal.StateCommitted, from))
}

// change is the compare-and-set of one record.
func (s *session) change(ctx context.Context, d journal.Decision, to journal.State, from []journal.State) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	j := s.j
	return j.write(ctx, func(tx *bolt.Tx) error {
		if d.Lease == "" && d.Step == nil {
			if swapped, err := j.swap(ctx, tx, d, to, from); swapped || err != nil {
				return err
			}
		}
		stands, found, err := j.find(ctx, tx, d.Txn)
		if err != nil {
			return err
		}
		if !found || !slices.Contains(from, stands.State) {
			return &journal.Conflict{Txn: d.Txn, To: to, Found: stands.State}
		}
		if to == journal.StateCommitted {
			if err := j.checkConditions(ctx, tx, d); err != nil {
				return err
			}
		}
		props := map[string]any{"state": string(to)}
		if stampsTime(d, to) {
			// A final time below the one S4 stamped would slip under the read fence.
			props["dat_tx_time"] = int64(max(stands.TxTime, d.TxTime))
		}
		return j.set(ctx, tx, stands, props)
	})
}

// stampsTime: S6 writes the final time, also where it goes with S7.
func stampsTime(d journal.Decision, to journal.State) bool {
	return to == journal.StatePrepared || d.WithPrepare
}

// swap is the change in one statement, for a record that is as it nearly always is:
// open, older than now, and with no later time. Inside a transaction each statement
// looks at every node of the graph, and at this point branches are prepared.
func (j *Journal) swap(ctx context.Context, tx *bolt.Tx, d journal.Decision, to journal.State, from []journal.State) (bool, error) {
	now, newest := j.nowMS(), int64(math.MaxInt64)
	props := map[string]any{"state": string(to), "updated_ms": now}
	if stampsTime(d, to) {
		newest, props["dat_tx_time"] = int64(d.TxTime), int64(d.TxTime)
	}
	n, err := count(tx.Run(ctx, j.words.swap, map[string]any{
		"title": j.words.title(d.Txn), "from": texts(from...), "now": now, "time": newest, "props": props,
	}))
	if err == nil && n > 1 {
		err = errCount
	}
	return n == 1, err
}

// Abort implements journal.Session.
func (s *session) Abort(ctx context.Context, txn branches.TxnID, durability journal.Durability) (journal.State, error) {
	state, err := s.abort(ctx, txn, durability)
	return state, journal.Wrap("abort journal record", err)
}

// abort proves by writing. A lost request that is still on its way cannot commit
// after this transaction did, and if it committed first this one is refused and
// reads what it left.
func (s *session) abort(ctx context.Context, txn branches.TxnID, durability journal.Durability) (journal.State, error) {
	if err := s.ready(ctx); err != nil {
		return "", err
	}
	j := s.j
	var state journal.State
	wrote := false
	err := j.write(ctx, func(tx *bolt.Tx) error {
		stands, found, err := j.find(ctx, tx, txn)
		if err != nil {
			return err
		}
		state, wrote = journal.StateAborted, true
		switch {
		case !found:
			now, props := j.nowMS(), j.born(txn, state, "[]")
			props["created_ms"], props["updated_ms"] = now, now
			_, err := tx.Run(ctx, j.words.create, map[string]any{"props": props})
			return err
		case stands.State.To(state):
			return j.set(ctx, tx, stands, map[string]any{"state": string(state)})
		}
		state, wrote = stands.State, false
		return errUnchanged
	})
	if err != nil {
		return "", err
	}
	if wrote || durability != journal.Forced {
		return state, nil
	}
	return j.hardened(ctx, txn)
}

// Read implements journal.Session.
func (s *session) Read(ctx context.Context, txn branches.TxnID) (journal.Record, error) {
	if err := s.ready(ctx); err != nil {
		return journal.Record{}, journal.Wrap("read journal record", err)
	}
	rec, err := s.j.read(ctx, txn)
	return rec, journal.Wrap("read journal record", err)
}

// Release implements journal.Session.
func (s *session) Release() {
	if !s.released {
		s.released = true
		s.release()
	}
}
