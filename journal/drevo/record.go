package drevo

import (
	"context"
	"errors"
	"fmt"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/internal/guard"
	"github.com/rhizodat/rhizodat-go/journal"
)

// find reads a record inside a transaction, without its payloads.
func (j *Journal) find(ctx context.Context, tx *bolt.Tx, txn branches.TxnID) (rec stored, found bool, err error) {
	rows, err := tx.Run(ctx, j.words.find, map[string]any{"title": j.words.title(txn)})
	if err != nil || len(rows) == 0 {
		return stored{}, false, err
	}
	row, err := bolt.Only(rows, nil)
	if err != nil {
		return stored{}, false, err
	}
	rec, err = decode(row)
	return rec, err == nil, err
}

// set changes the record that find has read in the same transaction, and makes a
// new version of it.
func (j *Journal) set(ctx context.Context, tx *bolt.Tx, stands stored, props map[string]any) error {
	props["updated_ms"] = max(stands.UpdatedMS+1, j.nowMS())
	return one(tx.Run(ctx, j.words.change, map[string]any{"title": j.words.title(stands.Txn), "props": props}))
}

// one checks the count that a change of one node returns.
func one(rows [][]any, err error) error {
	n, err := count(rows, err)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d nodes changed where there is one", n)
	}
	return err
}

func count(rows [][]any, err error) (int, error) {
	row, err := bolt.Only(rows, err)
	if err != nil {
		return 0, err
	}
	return asInt[int](row[0])
}

// readTries: compaction may remove the payloads between the two nodes of one read.
const readTries = 3

// read reads a record with its payloads.
func (j *Journal) read(ctx context.Context, txn branches.TxnID) (journal.Record, error) {
	var damaged error
	for range readTries {
		rows, err := j.graph.Read(ctx, j.words.read, map[string]any{
			"title": j.words.title(txn), "payload": j.words.payloadTitle(txn),
		})
		if err != nil {
			return journal.Record{}, err
		}
		if len(rows) == 0 {
			return journal.Record{}, journal.ErrNotFound
		}
		row, err := bolt.Only(rows, nil)
		if err != nil {
			return journal.Record{}, err
		}
		rec, err := decode(row)
		if err != nil {
			return rec.Record, err
		}
		if damaged = rec.withPayloads(row[len(row)-1]); damaged == nil {
			return rec.Record, nil
		}
	}
	return journal.Record{}, damaged
}

// Harden implements journal.Journal. What is visible here is on the disk already.
// But drevo, when it starts on a log whose last record lacks nothing but its
// newline, takes the record and writes the next one behind it on the same line; at
// the start after that it drops both as torn. So the decision that was read is
// followed by a record that may be lost with it, and by one that stands on its own
// line: then the server refuses to start, which is not silent.
func (j *Journal) Harden(ctx context.Context) error {
	return journal.Wrap("harden journal", j.with(ctx, func() error { return j.harden(ctx, nil) }))
}

// harden calls look, if there is one, in its last transaction.
func (j *Journal) harden(ctx context.Context, look func(tx *bolt.Tx) error) error {
	writes := 2 // one may be lost with the record that it was to make durable
	if guard.Off(guard.Line) {
		writes = 1
	}
	for i := range writes {
		if err := j.write(ctx, func(tx *bolt.Tx) error {
			meta, err := j.metaIn(ctx, tx)
			if err != nil {
				return err
			}
			if look != nil && i == writes-1 {
				if err := look(tx); err != nil {
					return err
				}
			}
			return j.setMeta(ctx, tx, map[string]any{"beat": meta.beat + 1})
		}); err != nil {
			return err
		}
	}
	return nil
}

// hardened is the state of a record after writes that follow it: what was only
// found may be lost in a crash of the server as long as it is the last in the log.
func (j *Journal) hardened(ctx context.Context, txn branches.TxnID) (state journal.State, err error) {
	err = j.harden(ctx, func(tx *bolt.Tx) error {
		stands, found, err := j.find(ctx, tx, txn)
		if err == nil && !found {
			err = errGone
		}
		state = stands.State
		return err
	})
	if err != nil {
		return "", err
	}
	return state, nil
}

var errGone = errors.New("the record was removed meanwhile")
