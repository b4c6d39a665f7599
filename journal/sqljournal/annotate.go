package sqljournal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rhizodat/rhizodat-go/journal"
)

// Annotate implements journal.Journal. Payloads and keys that the caller does
// not have are taken from the record as it stands. A note alone, which is what a
// claim is, touches no branch: payloads are large.
func (j *Journal) Annotate(ctx context.Context, rec journal.Record) error {
	write := j.writeNote
	if slices.ContainsFunc(rec.Branches, journal.Branch.Amended) {
		write = j.writeBranches
	}
	return journal.Wrap("annotate journal record", j.with(ctx, func(conn Conn, q *statements) error {
		return write(ctx, conn, q, rec)
	}))
}

func (j *Journal) writeNote(ctx context.Context, conn Conn, q *statements, rec journal.Record) error {
	note, err := encodeNote(rec.Note)
	if err != nil {
		return err
	}
	res, err := single(ctx, conn, Forced, Do(q.writeNote,
		rec.Txn.String(), note, j.nowMS(), string(rec.State), rec.UpdatedMS))
	if err != nil {
		return err
	}
	ok, err := hit(res)
	if err != nil || ok {
		return err
	}
	refused := &journal.Conflict{Txn: rec.Txn}
	if found, err := stateOf(ctx, conn, q, rec.Txn); err == nil {
		refused.Found = found
	}
	return refused
}

func (j *Journal) writeBranches(ctx context.Context, conn Conn, q *statements, rec journal.Record) error {
	refused := &journal.Conflict{Txn: rec.Txn}
	stored, err := readOne(ctx, conn, q, rec.Txn)
	if errors.Is(err, journal.ErrNotFound) {
		return refused
	}
	if err != nil {
		return err
	}
	refused.Found = stored.State
	if stored.State != rec.State || stored.UpdatedMS != rec.UpdatedMS {
		return refused
	}
	if err := amend(stored.Branches, rec.Branches); err != nil {
		return err
	}
	text, err := json.Marshal(stored.Branches)
	if err != nil {
		return err
	}
	note, err := encodeNote(rec.Note)
	if err != nil {
		return err
	}
	res, err := single(ctx, conn, Forced, Do(q.writeBranches,
		rec.Txn.String(), note, j.nowMS(), string(rec.State), rec.UpdatedMS, string(text)))
	if err != nil {
		return err
	}
	ok, err := hit(res)
	if err == nil && !ok {
		return refused
	}
	return err
}

func amend(stored, amended []journal.Branch) error {
	for _, b := range amended {
		i := slices.IndexFunc(stored, func(s journal.Branch) bool { return s.Store == b.Store && s.GID == b.GID })
		if i < 0 {
			return fmt.Errorf("the record has no branch %s", b.GID)
		}
		stored[i].Outcome, stored[i].Reason = b.Outcome, b.Reason
	}
	return nil
}
